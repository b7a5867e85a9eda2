# Searches on a real firewall in their own network end, report their limitations, and leave nothing
# behind, also after Ctrl-C.
# alone
# long: 81 s of a processor, 207 s beside five others
. "$(dirname "$0")/lab.sh"
[ "$(nproc)" -ge 2 ] || unable "a search needs two CPUs"

# Other processes may steal the CPU from any trial, so only the form of the results is checked.
for test in mlr throughput loss-rate; do
	"$BIN/fwlab" search $test --system nft-flat --rules 10 --seconds 0.05  --no-pauses --json \
		--result "$WORK/$test.run" >"$WORK/$test" 2>"$WORK/said" ||
		cat "$WORK/said"
	same "$test is complete" True \
		"$(said "$WORK/$test" 'run["complete"] and len(run["trials"]) > 0')"
	same "$test: frames came" True \
		"$(said "$WORK/$test" 'sum(trial["received"] for trial in run["trials"]) > 0')"
	same "$test claims no standard" "the link is virtual" \
		"$(said "$WORK/$test" 'run["conformance"]["partial"][0]')"
	same "$test: rules in the configuration" 10 \
		"$(said "$WORK/$test" 'run["system"]["configuration"].count("drop")')"
	holds "$test can be compared" "$BIN/fwlab" compare "$WORK/$test.run" "$WORK/$test.run"
	same "$test: its report has latency by rate" True \
		"$("$BIN/fwlab" report --markdown "$WORK/$test.run" | grep -q 'Latency by rate' &&
		echo True)"
done

"$BIN/fwlab" search loss-rate --system skipstep-states --rules 10 --ip 6 --extension chain --size \
	124 --seconds 0.05 --no-pauses --json \
	--result "$WORK/ip6.run" >"$WORK/ip6" 2>"$WORK/said" || cat "$WORK/said"
same "over IPv6, frames came" True \
	"$(said "$WORK/ip6" \
	'run["setting"]["ip6"] and sum(trial["received"] for trial in run["trials"]) > 0')"
same "what is missing of RFC 5180 is said" True \
	"$(said "$WORK/ip6" \
	'any(point.startswith("RFC 5180: only traffic with the extension headers chain") for point in run["conformance"]["partial"])')"
same "the file says it, too" "('inet6', True)" \
	"$(said "$WORK/ip6.run" \
	'(run["series"][0]["load"]["family"], "RFC 5180" in run["findings"][0]["evidence"])')"
"$BIN/fwlab" search hop-by-hop --system skipstep-states --rules 10 --size 92 --link 1e8 --seconds \
	0.1 --no-pauses --json >"$WORK/hops" 2>&1
same "hop-by-hop options at three rates, and what they take of the firewall's CPU" \
	"[0.01, 0.1, 0.5] True" \
	"$(said "$WORK/hops" \
	'str([step["share"] for step in run["result"]]) + " " + str(all(0 < step["busy"] <= 1 for step in run["result"]))')"
same "the filter lets them pass" True "$(said "$WORK/hops" 'run["result"][0]["loss"] < 1')"

"$BIN/fwlab" search mlr --system nft-flat --ip 6 --size 64 >"$WORK/small" 2>&1
same "frames too small for IPv6" 1 $?
holds "how large they have to be" grep -q "has 84" "$WORK/small"

# All kinds of frames of RFC 5180 in one command, and one number of networks.
"$BIN/fwlab" search loss-rate --system nft-flat --rules 10 --ip 6 --extension all --networks 256 \
	--link 1e7 --seconds 0.05 --no-pauses --json \
	--result "$WORK/kinds.run" >"$WORK/kinds" 2>"$WORK/said" || cat "$WORK/said"
same "each kind of extension headers" "['none', 'destination', 'routing', 'fragment', 'chain']" \
	"$(said "$WORK/kinds" '[one["setting"]["extension"] for one in run]')"
same "all come through" "[True, True, True, True, True]" \
	"$(said "$WORK/kinds" \
	'[sum(trial["received"] for trial in one["trials"]) > 0 for one in run]')"
same "it is not said that they are missing" False \
	"$(said "$WORK/kinds" \
	'any("only traffic" in point for point in run[0]["conformance"]["partial"])')"
same "the file has each" 5 \
	"$(said "$WORK/kinds.run" \
	'len(set(series["title"] for series in run["series"] if series["title"].startswith("Loss")))')"

# Several frame sizes with several numbers of rules in one command; the report plots the results by
# size.
"$BIN/fwlab" search throughput --system nft-flat --rules 1,20 --size 64,256 --link 1e8 --seconds \
	0.05 --no-pauses --json \
	--result "$WORK/sizes.run" >"$WORK/sizes" 2>"$WORK/said" || cat "$WORK/said"
same "each number of rules with each size" "[(1, 64), (1, 256), (20, 64), (20, 256)]" \
	"$(said "$WORK/sizes" '[(one["system"]["rules"], one["setting"]["size"]) for one in run]')"
# on a busy machine one of them may have no rate, and then no series
same "series by size" \
	"$(said "$WORK/sizes" \
	'[(f"throughput, by frame size, {rules} rules", [64, 256]) for rules in (1, 20) if all((one["result"] or {}).get("rate") for one in run if one["system"]["rules"] == rules)]')" \
	"$(said "$WORK/sizes.run" \
	'[(series["title"], [int(point["at"]) for point in series["points"]]) for series in run["series"] if "by frame size" in series["title"]]')"
at_least 1 "of which there are" \
	"$(said "$WORK/sizes.run" 'sum("by frame size" in series["title"] for series in run["series"])')"
"$BIN/fwlab" report "$WORK/sizes.run" --out "$WORK/sizes.html"
holds "they are plotted" sh \
	-c "grep -q '<polyline' '$WORK/sizes.html' && grep -q 'throughput, by frame size, [0-9]* rules' '$WORK/sizes.html'"
"$BIN/fwlab" search throughput --system nft-flat --nat on >"$WORK/none" 2>&1
same "frames that are translated" 1 $?
holds "nobody answers them" grep -q "frames that nobody answers" "$WORK/none"

# Between two interfaces of one machine: a cable, a bridge on another host, and no connection.
host wire bridge
wire wire c0 bridge c1
wire wire s0 bridge s1
on bridge sh \
	-c 'ip link add br0 type bridge && ip link set c1 master br0 && ip link set s1 master br0 && ip link set br0 up'
for link in "wire c0" "wire s0" "bridge c1" "bridge s1"; do
	on ${link% *} ip link set ${link#* } up
done
on wire ip link add one type veth peer other
on wire ip link set one up
on wire ip link set other up
on_wire() {
	on wire "$BIN/fwlab" search "$@" --no-pauses --json 2>"$WORK/said" || cat "$WORK/said" >&2
}
on_wire throughput --client-if one --server-if other --link 1e7 --size all --seconds 0.1 --result \
	"$WORK/wire.run" >"$WORK/wire"
same "all sizes of RFC 2544 by a cable" "[64, 128, 256, 512, 1024, 1280, 1518] wire" \
	"$(said "$WORK/wire" 'str([one["setting"]["size"] for one in run]) + " " + run[0]["mode"]')"
same "what is offered is what the link carries" "[14880, 812]" \
	"$(said "$WORK/wire" '[int(run[place]["setting"]["most"]) for place in (0, 6)]')"
same "a virtual cable is no device" "the link is virtual" \
	"$(said "$WORK/wire" 'run[0]["conformance"]["partial"][0]')"
same "of what is missing sizes are nothing" False \
	"$(said "$WORK/wire" 'any("seven" in point for point in run[0]["conformance"]["partial"])')"
holds "the file can be compared" "$BIN/fwlab" compare "$WORK/wire.run" "$WORK/wire.run"
for test in "latency --throughput 1000" "system-recovery --throughput 1000" mlr; do
	on_wire $test --client-if c0 --server-if s0 --engine packet --link 1e6 --seconds 0.5 \
		>"$WORK/wire"
	same "${test%% *} by a bridge: frames came" True \
		"$(said "$WORK/wire" \
		'run["complete"] and sum(trial["received"] for trial in run["trials"]) > 0')"
done
on bridge ip link set s1 nomaster
on wire "$BIN/fwlab" search mlr --client-if c0 --server-if s0 --engine packet >"$WORK/none" 2>&1
same "nothing between two interfaces" 1 $?
holds "that is said" grep -q "none of 1024 frames came through: --next-link" "$WORK/none"
on wire "$BIN/fwlab" search reset --client-if c0 --server-if s0 >"$WORK/none" 2>&1
same "what is between two interfaces has no reset" 1 $?
holds "that is said as well" grep -q "fwlab cannot reset the device" "$WORK/none"

# A rate beyond any forwarding, and half of that, which is too high as well: frames are lost to the
# end.
"$BIN/fwlab" search system-recovery --system nft-flat --rules 2000 --throughput 4e6 --seconds 0.3 \
	--no-pauses --json \
	--result "$WORK/recovery.run" >"$WORK/recovery" 2>&1
same "a rate that changes within a trial: three trials" 3 \
	"$(said "$WORK/recovery" 'len(run["result"]["times"])')"
same "something was lost in each" True "$(said "$WORK/recovery" 'min(run["result"]["lost"]) > 0')"
same "half of it is still too much" True \
	"$(said "$WORK/recovery" 'run["result"]["unrecovered"] > 0')"
same "its value in the file" "('system recovery', 's')" \
	"$(said "$WORK/recovery.run" \
	'(run["series"][0]["title"], run["series"][0]["quantity"]["unit"])')"
"$BIN/fwlab" search reset --system nft-conntrack --rules 10 --throughput 5000 --seconds 3 \
	--no-pauses --json >"$WORK/reset" 2>&1
same "a reset within a trial" 3 "$(said "$WORK/reset" 'len(run["result"]["times"])')"
same "what it is, is said" True \
	"$(said "$WORK/reset" '"nft delete table" in run["result"]["what"]')"
"$BIN/fwlab" search reset --system router --throughput 5000 --seconds 1 >"$WORK/none" 2>&1
same "what has no reset" 1 $?
holds "is told" grep -q "not applicable" "$WORK/none"

"$BIN/fwlab" search mlr --system nft-flat --seconds 60 --json >"$WORK/interrupted" 2>&1 &
search=$!
sleep 3
kill -INT $search
wait $search
same "exit status after Ctrl-C" 1 $?
same "why there is no result" "trial 1 failed: interrupted" \
	"$(said "$WORK/interrupted" 'run["incomplete_because"]')"
same "networks left over" "" "$(ip netns list | grep "fwlab-$search-")"
verdict
