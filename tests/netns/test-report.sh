# fwlab's report in a real browser at a phone's width: all parts are drawn inside the page, nothing
# is fetched, and there are no errors. fwlab-run.json is an invented run of three systems.
. "$(dirname "$0")/lab.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	unable "no chromium or google-chrome"

"$BIN/fwlab" report "$HERE/fwlab-run.json" "$HERE/fwlab-run.json" --out "$WORK/report.html" ||
	die "no report"

# Measures the page in the browser; a script writes the results to the title. A frame has the width
# of a phone, because a window has a larger minimum.
cat >"$WORK/look.html" <<'END'
<iframe id="page" style="width: 360px; height: 800px"></iframe>
<script>
const frame = document.getElementById("page");
const complaints = [];
window.addEventListener("securitypolicyviolation", event => complaints.push(event.violatedDirective));
frame.srcdoc = decodeURIComponent(PAGE);
frame.onload = () => {
	const page = frame.contentDocument, all = selector => [...page.querySelectorAll(selector)];
	const inside = (outer, inner) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
		inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
	const box = element => element.getBoundingClientRect();
	const charts = all("figure > svg");
	all("details").forEach(fold => fold.open = true);
	const facts = {
		charts: charts.filter(chart => box(chart).height > 100).length,
		lines: all("polyline").filter(line => box(line).width > 100).length,
		astray: charts.flatMap(chart => [...chart.querySelectorAll("text, polyline, polygon")]
			.filter(part => !inside(box(chart), box(part)))).length,
		rows: all("tbody tr").filter(row => box(row).height > 10).length > 30,
		configurations: all("details").filter(fold => fold.querySelector("pre")?.textContent.startsWith("drop <&> \"quoted\"\n")).length,
		wide: page.documentElement.scrollWidth > 360,
		fetched: frame.contentWindow.performance.getEntriesByType("resource").length,
		complaints: complaints.length,
	};
	document.title = JSON.stringify(facts);
};
</script>
END
python3 - "$WORK" <<'END'
import json, sys, urllib.parse
folder = sys.argv[1]
page = urllib.parse.quote(open(folder + "/report.html").read())
look = open(folder + "/look.html").read()
policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'unsafe-inline'\">"
open(folder + "/look.html", "w").write(policy + look.replace("PAGE", json.dumps(page)))
END
seen=$(HOME=$WORK timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
	--virtual-time-budget=5000 \
	--user-data-dir="$WORK/profile" --dump-dom "file://$WORK/look.html" 2>"$WORK/said" |
	sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p')
[ -n "$seen" ] || { cat "$WORK/said"; die "the browser shows nothing"; }
same "what the browser shows" \
	'{"charts":2,"lines":8,"astray":0,"rows":true,"configurations":4,"wide":false,"fetched":0,"complaints":0}' "$seen"
verdict
