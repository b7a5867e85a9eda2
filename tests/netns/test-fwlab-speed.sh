# The table of targets is measured to its end, and each row has a verdict or a reason. An
# interrupted run keeps its results so far. The figures are not checked.
# alone
# long: it measures, as fwlab-measure does; not measured
. "$(dirname "$0")/lab.sh"

rows='run["paper"]["tables"][0]["rows"]'

"$BIN/fwlab" speed --smoke --systems \
	xdp-route,tc-route,nft-conntrack,nft-maps,skipstep-states,skipstep-states-xdp,skipstep-compiled,skipstep-compiled-xdp \
	--out "$WORK/out" >"$WORK/text" 2>"$WORK/errors" || cat "$WORK/errors"
result=$WORK/out/speed.json
same "complete" True "$(said "$result" 'run["complete"]')"
at_least 40 "rows" "$(said "$result" "len($rows)")"
at_least 12 "rows with a figure and a verdict" \
	"$(said "$result" "sum(bool(r[4]) and 'met' in r[2].lower() for r in $rows)")"
same "rows with neither figure nor reason" 0 \
	"$(said "$result" "sum(not r[4] and 'not measured: ' not in r[2] for r in $rows)")"
same "a figure of what was left out" "not measured: a part was left out" \
	"$(said "$result" \
	"[r[2] for r in $rows if r[:2] == ['500 rules, no state, XDP', 'nftables, flat']][0]")"
why() {
	said "$result" "[r[2] for r in $rows if r[0].startswith('$1')][0]"
}
same "lists that nobody gave" "not measured: no rule lists: name their folder by --classbench" \
	"$(why "lookup alone, ClassBench acl1")"
same "what --smoke leaves out" "not measured: takes too long for --smoke" \
	"$(why "state hit, one of")"
holds "lookups among rules of ours, which all found what the model finds" [ \
	"$(why "lookup alone, our sample")" = "to compare with" ]
holds "the worst of the adversarial ones is named" grep \
	-q "lookup alone, worst adversarial sample: [a-z]* " "$WORK/text"
if [ "$(nproc)" -gt 1 ]; then
	holds "two CPUs at once" [ "$(why "two cores, headers alone")" = "to compare with" ]
	same "their rows have figures" 2 \
		"$(said "$result" \
		"sum(bool(r[4]) for r in $rows if r[0].startswith('program time'))")"
fi
for place in text out/speed.html out/speed.md; do
	holds "the table is in $place" grep -q "state hit, forwarded, XDP" "$WORK/$place"
done
holds "can be compared" "$BIN/fwlab" compare "$result" "$result"

setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/fwlab" speed --smoke >"$WORK/text" 2>&1
same "without root" 1 $?
holds "why is said" grep -q "speed: must run as root" "$WORK/text"

instances() {
	ls /sys/fs/bpf/skipstep 2>/dev/null
}
instances >"$WORK/instances"
interrupted speed 3
# other processes may have removed instances meanwhile
same "and so is what was pinned for them" "" "$(instances | grep -vxFf "$WORK/instances")"
verdict
