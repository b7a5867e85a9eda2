# Every paper is repeated to its end, with its table and a verdict on each finding. The figures are
# not checked. PAPERS names the papers, by default all.
# alone
. "$(dirname "$0")/lab.sh"

PAPERS=${PAPERS:-all}
papers=$PAPERS
[ "$PAPERS" != all ] || papers="adamo-tablo hartmeier molitor freebsd-openbsd gigabit"
[ "$(nproc)" -ge 2 ] || unable "one CPU: hartmeier needs another for the firewall"

"$BIN/fwlab" paper "$PAPERS" --smoke --out "$WORK/all" >"$WORK/text" 2>"$WORK/errors" ||
	cat "$WORK/errors"
for paper in $papers; do
	result=$WORK/all/$paper.json
	same "$paper: complete" True "$(said "$result" 'run["complete"]')"
	at_least 4 "$paper: rows of its tables" \
		"$(said "$result" 'sum(len(t["rows"]) for t in run["paper"]["tables"])')"
	at_least 3 "$paper: findings" "$(said "$result" 'len(run["findings"])')"
	if grep -q "left out: [^s]" "$WORK/errors"; then
		echo "left out here, so findings may lack figures: $(grep -c 'left out' \
			"$WORK/errors")"
	else
		same "$paper: findings without figures" "[]" \
			"$(said "$result" \
			'[f["claim"] for f in run["findings"] if f["evidence"] == "not measured"]')"
	fi
	# if each frame was lost, as on a busy machine, there is no latency
	same "$paper: cells without a figure of ours" 0 "$(said "$result" \
		'sum(not row[-1] and "100.00 %" not in row for t in run["paper"]["tables"] for row in t["rows"])')"
	title=$(said "$result" 'run["paper"]["title"]')
	for place in text all/$paper.html all/$paper.md; do
		holds "$paper: its title is in $place" grep -qF "$title" "$WORK/$place"
	done
	holds "$paper: can be compared" "$BIN/fwlab" compare "$result" "$result"
	holds "$paper: can be reported" "$BIN/fwlab" report "$result" --out "$WORK/report.html"
done
holds "verdicts are printed" grep -q "HOLDS HERE\|DOES NOT HOLD HERE" "$WORK/text"
verdict
