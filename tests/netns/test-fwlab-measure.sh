# Every system of fwlab is built, passes its functional check and is measured, in all modes. A
# system that does not apply its rules is detected before the measurement.
# alone
# long: more than 200 s beside five others
. "$(dirname "$0")/lab.sh"

SAMPLES='sorted(set(s["system"] for p in run["series"][0]["points"] for s in p["samples"]))'

measure --rules 3 --json "$WORK/all.json" >"$WORK/all" || cat "$WORK/all"
same "complete" True "$(said "$WORK/all.json" 'run["complete"]')"
for system in null router router-again iptables-legacy@3 iptables-legacy-jumps@3 iptables-nft@3 \
	nft-flat@3 nft-maps@3 \
	nft-conntrack@3 nft-flowtable@3 skipstep-linear@3 skipstep-skip-steps@3 skipstep-states@3; \
	do
	if grep -q "${system%@3} is left out" "$WORK/all"; then
		echo "left out here: $system"
	else
		same "samples of $system" 2 \
			"$(said "$WORK/all.json" \
			"sum(s['system'] == '$system' for s in run['series'][0]['points'][0]['samples'])")"
	fi
done
holds "the result can be read" "$BIN/fwlab" compare "$WORK/all.json" "$WORK/all.json"

measure --topology bridge --systems nft-flat,iptables-legacy,skipstep-linear --ip 6 --transport \
	tcp --size 128 --rules 0,5 --json "$WORK/bridge.json" >/dev/null
same "on a bridge, complete" True "$(said "$WORK/bridge.json" 'run["complete"]')"
same "with two numbers of rules" "[0.0, 5.0]" \
	"$(said "$WORK/bridge.json" '[p["at"] for p in run["series"][0]["points"]]')"
measure --topology three-legged --systems nft-maps --rules-transport tcp --json "$WORK/legs.json" \
	>/dev/null
same "at a router with three legs" "['nft-maps@100', 'null', 'router', 'router-again']" \
	"$(said "$WORK/legs.json" "$SAMPLES")"
measure --topology three-legged --to dmz --both-ways --systems skipstep-states --rules 3 --json \
	"$WORK/dmz.json" >/dev/null
same "to the dmz and back" "(True, 'from client to dmz and back')" \
	"$(said "$WORK/dmz.json" \
	'(run["complete"], run["series"][0]["load"]["details"].split(",")[0])')"
same "whose rules name it" True \
	"$(said "$WORK/dmz.json" '"192.0.2.2 port 20000" in run["systems"][-1]["configuration"]')"
measure --mtu 9000 --size 9018 --engine packet --systems nft-flat --rules 3 --json \
	"$WORK/jumbo.json" >/dev/null
same "jumbo frames" "(True, {9000})" \
	"$(said "$WORK/jumbo.json" '(run["complete"], {t["mtu"] for t in run["topologies"]})')"
same "on longer cables the kernel's generator is refused" 1 \
	"$(measure --mtu 9000 >/dev/null; echo $?)"
if [ "$(nproc)" -ge 2 ]; then
	measure --mode queue --systems nft-flat --rules 3 --rate 20000 --json "$WORK/queue.json" \
		>/dev/null
	same "with a queue" "('queue', True)" \
		"$(said "$WORK/queue.json" '(run["mode"], run["complete"])')"
fi
host wire
on wire ip link add one type veth peer other
on wire ip link set one up
on wire ip link set other up
on wire "$BIN/fwlab" measure --rounds 2 --seconds 0.02 --mode wire --client-if one --server-if \
	other --rate 20000 \
	--json "$WORK/wire.json" >/dev/null
same "between two interfaces" "('wire', ['wire'])" \
	"$(said "$WORK/wire.json" "(run['mode'], $SAMPLES)")"

mkdir "$WORK/fake"
printf '#!/bin/sh\nexec cat >/dev/null\n' >"$WORK/fake/nft"
chmod +x "$WORK/fake/nft"
PATH="$WORK/fake:$PATH" measure --systems nft-flat --rules 3 >"$WORK/leaks"
same "a filter that does not filter" 1 $?
holds "what it let pass is said" grep \
	-q "nft-flat: 64 of 64 frames to port 20000 came through, expected 0" "$WORK/leaks"
printf '#!/bin/sh\necho no such table >&2\nexit 1\n' >"$WORK/fake/nft"
PATH="$WORK/fake:$PATH" measure --systems nft-flat --rules 3 >"$WORK/refused"
same "one that refuses its rules" 1 $?
holds "why is said" grep -q "nft-flat: nft: no such table" "$WORK/refused"
rm "$WORK/fake/nft"
ln -s "$(command -v ip)" "$WORK/fake/ip"
PATH="$WORK/fake" "$BIN/fwlab" measure --rounds 1 --seconds 0.02 --systems nft-flat \
	>"$WORK/missing" 2>&1
same "a program that is missing" 1 $?
holds "which one is said" grep -q "nft-flat: no such program: nft" "$WORK/missing"

"$BIN/fwlab" measure --rounds 1000 --systems nft-flat --rules 3 --json "$WORK/cut.json" \
	>"$WORK/cut" 2>&1 &
process=$!
await 20 grep -q '"incomplete_because": "[1-9]' "$WORK/cut.json" ||
	die "no round is done: $(cat "$WORK/cut")"
kill -INT $process
wait $process
same "a run that is interrupted" 1 $?
same "is not complete" "(False, 'interrupted')" \
	"$(said "$WORK/cut.json" '(run["complete"], run["incomplete_because"])')"
at_least 4 "it keeps its samples" \
	"$(said "$WORK/cut.json" 'len(run["series"][0]["points"][0]["samples"])')"
same "its hosts are gone" 0 "$(ip netns list | grep -c "^fwlab-$process-")"
verdict
