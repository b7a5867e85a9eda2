# Loads of real sockets cross a firewall of fwlab, and give values.
# alone
# long: it measures, as fwlab-measure does; not measured
. "$(dirname "$0")/lab.sh"

for traffic in rr crr send receive both http; do
	measure --traffic $traffic --systems nft-conntrack --rules 3 --transport tcp --size 1000 \
		--json "$WORK/talk.json" >/dev/null
	same "sockets, $traffic" "(True, '$traffic', True)" \
		"$(said "$WORK/talk.json" \
		'(run["complete"], run["series"][0]["load"]["kind"], all(s["value"] > 0 for s in run["series"][0]["points"][0]["samples"]))')"
done
measure --traffic ping --size 8 --ip 6 --topology bridge --systems nft-flat --rules 3 --json \
	"$WORK/talk.json" >/dev/null
same "sockets, ping" "(True, 'ns', 8)" \
	"$(said "$WORK/talk.json" \
	'(run["complete"], run["series"][0]["quantity"]["unit"], run["series"][0]["load"]["size"])')"
measure --topology three-legged --to dmz --traffic rr --systems nft-flat --rules 3 --json \
	"$WORK/talk.json" >/dev/null
same "sockets to the dmz" True "$(said "$WORK/talk.json" 'run["complete"]')"
measure --mtu 9000 --traffic send --transport tcp --systems nft-flat --rules 3 --json \
	"$WORK/talk.json" >/dev/null
same "sockets and jumbo frames" True "$(said "$WORK/talk.json" 'run["complete"]')"
if command -v iperf3 >/dev/null; then
	measure --traffic iperf3 --clients 2 --transport tcp --systems nft-flat --rules 3 --json \
		"$WORK/talk.json" >"$WORK/said" || cat "$WORK/said"
	same "iperf3" "(True, True, True)" \
		"$(said "$WORK/talk.json" \
		'(run["complete"], run["series"][0]["load"]["details"].endswith("by iperf3"), "iperf3" in run["environment"]["programs"])')"
else
	echo "left out here: iperf3"
fi
measure --traffic netperf-rr --systems nft-flat >"$WORK/said"
command -v netperf >/dev/null ||
	holds "no netperf is said" grep -q "no such program: netperf" "$WORK/said"
same "datagrams have no connections" 1 "$(measure --traffic crr >/dev/null; echo $?)"
verdict
