# Searches with TCP connections through a real firewall find the limits that the test has set.
# alone
# long: it searches by trials, as fwlab-search does; not measured
. "$(dirname "$0")/lab.sh"
[ "$(nproc)" -ge 2 ] || unable "a search needs two CPUs"

# in_device PROCESS TABLE... - loads a table of nftables on the device of a search as soon as the
# device exists
in_device() {
	await 5 ip netns exec "fwlab-$1-search-device" nft "${@:2}"
}

# A device with room for 60 connections, one that forgets its rules, and one with both faults.
"$BIN/fwlab" search tcp-capacity --system router --connections 100 --throughput 200 --no-pauses \
	--json \
	--result "$WORK/capacity.run" >"$WORK/capacity" 2>&1 &
search=$!
in_device $search \
	'table ip x { chain f { type filter hook forward priority 0; tcp dport 80 tcp flags syn ct state new ct count over 60 drop; }; }'
wait $search
same "connections at once" 60 "$(said "$WORK/capacity" 'run["result"]["connections"]')"
same "in the file" "('connections at once', 60.0)" \
	"$(said "$WORK/capacity.run" \
	'(run["series"][0]["title"], run["series"][0]["points"][0]["samples"][0]["value"])')"
"$BIN/fwlab" search tcp-illegal --system nft-flat --rules 3 --throughput 100 --seconds 0.6 \
	--no-pauses --json >"$WORK/illegal" 2>&1 &
search=$!
in_device $search list table inet fwlab >/dev/null
sleep 1
in_device $search delete table inet fwlab
wait $search
same "forbidden connections get through without the rules" True \
	"$(said "$WORK/illegal" 'run["result"][3]["leaked"] > 0')"
"$BIN/fwlab" search tcp-illegal --system skipstep-states --ip 6 --rules 3 --throughput 200 \
	--seconds 0.2 --no-pauses --json >"$WORK/illegal" 2>&1
same "and with skipstep" "[0, 4, 20, 36] 0 True" \
	"$(said "$WORK/illegal" \
	'str([one["forbidden"] for one in run["result"]]) + " " + str(sum(one["leaked"] for one in run["result"])) + " " + str(all(one["served"] > 0 for one in run["result"]))')"

"$BIN/fwlab" search tcp-tear-down --system router --connections 50 --throughput 200 --no-pauses \
	--json >"$WORK/down" 2>&1
same "connections torn down" "[50, True, 50]" \
	"$(said "$WORK/down" \
	'[run["trials"][-1]["intended"], run["result"]["rate"] > 0, max(trial["received"] for trial in run["trials"])]')"

# Fragmented datagrams that arrive whole: most pass a router, and skipstep while skipstepd runs.
# skipstepd ends with the search, also by Ctrl-C.
for system in router skipstep-linear; do
	"$BIN/fwlab" search tcp-fragments --system $system --throughput 50 --seconds 0.5 \
		--no-pauses --json >"$WORK/$system" 2>&1
	same "fragments through $system, and connections beside them" "0 True True" \
		"$(said "$WORK/$system" \
		'str(run["result"][0]["received"]) + " " + str(run["result"][3]["received"] > run["result"][3]["sent"] / 2 > 0) + " " + str(run["result"][3]["served"] > 0)')"
done
"$BIN/fwlab" search tcp-fragments --system skipstep-states --throughput 50 --seconds 2 --no-pauses \
	--json >"$WORK/orphaned" 2>&1 &
search=$!
# daemon_of PROCESS - prints the process number of a search's skipstepd
daemon_of() {
	ip netns pids "fwlab-$1-search-device" 2>/dev/null | while read -r one; do
		[ "$(cat "/proc/$one/comm" 2>/dev/null)" != skipstepd ] || echo "$one"
	done
}
await 60 eval '[ -n "$(daemon_of $search)" ]' || die "no skipstepd is started"
await 10 ip netns exec "fwlab-$search-search-device" ip link show pffrag0 >/dev/null ||
	die "no device for fragments"
sleep 0.5
kill -KILL "$(daemon_of $search)"
wait $search
same "fragments through skipstep whose daemon was killed" "0 True" \
	"$(said "$WORK/orphaned" \
	'str(run["result"][3]["received"]) + " " + str(run["result"][3]["served"] > 0)')"
"$BIN/fwlab" search tcp-fragments --system skipstep-states --throughput 50 --seconds 60 \
	--no-pauses >"$WORK/cut" 2>&1 &
search=$!
await 60 eval '[ -n "$(daemon_of $search)" ]' || die "no skipstepd is started"
process=$(daemon_of $search)
kill -INT $search
wait $search
same "skipstepd after Ctrl-C" gone "$([ -e "/proc/$process" ] || echo gone)"
# A flood that a router forwards and a filter with a limit for SYNs does not; all pages arrive.
"$BIN/fwlab" search tcp-flood --system router --throughput 50 --seconds 0.5 --no-pauses --json \
	>"$WORK/flood" 2>&1
same "SYNs of nobody through a router" "[0, True, True]" \
	"$(said "$WORK/flood" \
	'[run["result"][0]["sent"], run["result"][2]["sent"] >= 200, run["result"][2]["received"] > 0.9 * run["result"][2]["sent"]]')"
"$BIN/fwlab" search tcp-flood --system router --ip 6 --throughput 50 --seconds 0.5 --no-pauses \
	--json >"$WORK/flood" 2>&1 &
search=$!
in_device $search \
	'table ip6 x { chain f { type filter hook forward priority 0; ip6 saddr 2001:2:0:1::2:0/112 drop; }; }'
wait $search
same "and through one that knows who it is" "[True, 0]" \
	"$(said "$WORK/flood" '[run["result"][3]["sent"] >= 200, run["result"][3]["received"]]')"
# Syncookies answer a flood, so the server receives nothing of it. A blocked client's SYN is
# answered, too, but its connection does not reach the server.
"$BIN/fwlab" search tcp-flood --system skipstep-syncookies --rules 3 --throughput 50 --seconds 0.5 \
	--object 1000 --requests 3 --no-pauses --json >"$WORK/flood" 2>&1
same "SYNs of nobody to syncookies" "[True, 0]" \
	"$(said "$WORK/flood" \
	'[run["result"][3]["sent"] >= 200, sum(one["received"] + one["transfer"]["received"] for one in run["result"])]')"
same "connections and pages beside them" "[True, True, 3000]" \
	"$(said "$WORK/flood" \
	'[all(one["served"] > 0.8 * one["attempted"] > 0 for one in run["result"]), all(one["transfer"]["served"] > 0.8 * one["transfer"]["attempted"] > 0 for one in run["result"]), run["result"][3]["transfer"]["bytes"] * run["result"][3]["transfer"]["requests"]]')"
"$BIN/fwlab" measure --systems skipstep-syncookies --transport tcp >"$WORK/none" 2>&1
same "frames of a generator to syncookies" 1 $?
holds "that is said" grep -q "skipstep-syncookies: does not forward frames over tcp" \
	"$WORK/none"
"$BIN/fwlab" search http-rate --system skipstep-states --rules 3 --requests 3 --object 5000 \
	--seconds 0.3 --no-pauses --json >"$WORK/pages" 2>&1
same "pages through skipstep" "[3, 5000, True]" \
	"$(said "$WORK/pages" \
	'[run["result"]["requests"], run["result"]["bytes"], run["result"]["rate"] > 0]')"
"$BIN/fwlab" search http-transfer --system router --requests 2 --seconds 0.1 --no-pauses --json \
	>"$WORK/pages" 2>&1
same "pages of all sizes" "[64, 1024, 10240, 102400]" \
	"$(said "$WORK/pages" '[one["bytes"] for one in run["result"]]')"
# Several numbers of rules, with and without NAT; the functional check uses the source addresses
# that the server sees.
for system in nft-conntrack skipstep-states iptables-legacy; do
	"$BIN/fwlab" search tcp-illegal --system $system --rules 2,20 --nat both --throughput 100 \
		--seconds 0.2 --no-pauses --json --result "$WORK/nat.run" >"$WORK/nat" \
		2>"$WORK/said" || cat "$WORK/said"
	same "$system, rules and NAT" "[(2, False), (2, True), (20, False), (20, True)]" \
		"$(said "$WORK/nat" \
		'[(one["system"]["rules"], one["device"].endswith("and NAT")) for one in run]')"
	same "$system: what is forbidden, and served" "0 True" \
		"$(said "$WORK/nat" \
		'str(sum(step["leaked"] for one in run for step in one["result"])) + " " + str(all(step["served"] > 0 for one in run for step in one["result"]))')"
	same "$system: section 4 is done" False \
		"$(said "$WORK/nat" \
		'any("--nat both" in point or "--rules with" in point for point in run[0]["conformance"]["partial"])')"
	same "$system: in the file" \
		"['$system@2', '$system@2+nat', '$system@20', '$system@20+nat']" \
		"$(said "$WORK/nat.run" '[system["id"] for system in run["systems"]]')"
done
"$BIN/fwlab" search tcp-rate --system router --nat on --no-pauses >"$WORK/none" 2>&1
same "a router that does not translate" 1 $?
holds "that is said" grep -q "no address translation here" "$WORK/none"
"$BIN/fwlab" search tcp-illegal --system router --throughput 100 --seconds 0.1 --no-pauses \
	>"$WORK/none" 2>&1
same "what has no rules" 1 $?
holds "has nothing to forbid" grep -q "no rule forbids anything here" "$WORK/none"
same "networks left over" "" "$(ip netns list | grep "fwlab-$search-")"
verdict
