# Every paper is repeated to its end, with its table and a verdict on each finding; what is interrupted keeps what it has.
# What the figures are does not matter here.
# alone
. "$(dirname "$0")/lab.sh"
lab_begin

PAPERS="adamo-tablo hartmeier molitor freebsd-openbsd gigabit"
[ "$(nproc)" -ge 2 ] || unable "one CPU: hartmeier needs another for the firewall"

"$BIN/fwlab" paper all --smoke --out "$WORK/all" >"$WORK/text" 2>"$WORK/errors" || cat "$WORK/errors"
for paper in $PAPERS; do
	result=$WORK/all/$paper.json
	same "$paper: complete" True "$(said "$result" 'run["complete"]')"
	at_least 4 "$paper: rows of its tables" "$(said "$result" 'sum(len(t["rows"]) for t in run["paper"]["tables"])')"
	at_least 3 "$paper: findings" "$(said "$result" 'len(run["findings"])')"
	if grep -q "left out: [^s]" "$WORK/errors"; then
		echo "left out here, so findings may lack figures: $(grep -c 'left out' "$WORK/errors")"
	else
		same "$paper: findings without figures" "[]" \
			"$(said "$result" '[f["claim"] for f in run["findings"] if f["evidence"] == "not measured"]')"
	fi
	same "$paper: cells without a figure of ours" 0 "$(said "$result" \
		'sum(not row[-1] for t in run["paper"]["tables"] for row in t["rows"])')"
	title=$(said "$result" 'run["paper"]["title"]')
	for place in text all/$paper.html all/$paper.md; do
		holds "$paper: its title is in $place" grep -qF "$title" "$WORK/$place"
	done
	holds "$paper: can be compared" "$BIN/fwlab" compare "$result" "$result"
	holds "$paper: can be reported" "$BIN/fwlab" report "$result" --out "$WORK/report.html"
done
holds "verdicts are printed" grep -q "HOLDS HERE\|DOES NOT HOLD HERE" "$WORK/text"

mkdir "$WORK/few"
for program in ip nsenter nft; do
	ln -s "$(command -v $program)" "$WORK/few/$program"
done
PATH="$WORK/few" "$BIN/fwlab" paper adamo-tablo --smoke --out "$WORK/some" >"$WORK/text" 2>"$WORK/errors"
same "without iptables" 0 $?
holds "what is left out is said" grep -q "left out: iptables-legacy: no such program" "$WORK/errors"
same "and written down" True \
	"$(said "$WORK/some/adamo-tablo.json" 'any("iptables-legacy: no such" in text for text in run["paper"]["differences"])')"

setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/fwlab" paper gigabit --smoke >"$WORK/text" 2>&1
same "without root" 1 $?
holds "why is said" grep -q "paper: needs root" "$WORK/text"

"$BIN/fwlab" paper gigabit --full --out "$WORK/cut" >"$WORK/text" 2>&1 &
process=$!
await 60 grep -q '"position": 5' "$WORK/cut/gigabit.json" || die "no round is done: $(cat "$WORK/text")"
kill -INT $process
wait $process
same "a run that is interrupted" 1 $?
same "is not complete" "(False, 'interrupted')" \
	"$(said "$WORK/cut/gigabit.json" '(run["complete"], run["incomplete_because"])')"
holds "says so" grep -q "not complete: interrupted" "$WORK/text"
at_least 1 "keeps its rows" "$(said "$WORK/cut/gigabit.json" 'len(run["paper"]["tables"][0]["rows"])')"
same "its hosts are gone" 0 "$(ip netns list | grep -c "^fwlab-$process-")"
verdict
