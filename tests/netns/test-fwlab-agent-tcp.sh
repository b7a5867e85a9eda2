# Searches with TCP connections between two agents with a router between them, controlled by a third
# machine. A search finds the limits that the test has set, and reports the limit of a client's
# ports. Nothing is sent on the control connections during a trial.
# alone
# long: 4 s of a processor, 47 s beside five others
. "$(dirname "$0")/agents.sh"
control_apart

"$BIN/fwlab" agent --make-key "$KEY" >/dev/null
agent client
agent server
watch_words
# searching TEST ARGUMENT... - runs a search between the agents; $WORK/found has its JSON
searching() {
	on control timeout 30 "$BIN/fwlab" search "$@" --client-agent 10.9.1.2 --server-agent \
		10.9.2.2 --server-address "$SERVER4" \
		--key "$KEY" --no-pauses --json >"$WORK/found" 2>&1
}
# forbids RULE... - replaces the gateway's nftables rule
forbids() {
	on gateway nft \
		"add table inet x; delete table inet x; table inet x { chain f { type filter hook forward priority 0; $*; }; }"
}

forbids 'tcp dport 80 tcp flags syn ct state new ct count over 12 drop'
searching tcp-capacity --connections 13 --throughput 500 --result "$WORK/capacity.run" ||
	cat "$WORK/found"
same "connections at once, and whose rules they are is said" "12 wire True" \
	"$(said "$WORK/found" \
	'str(run["result"]["connections"]) + " " + run["mode"] + " " + str(any("the rules of the device are unknown" in point for point in run["conformance"]["partial"]))')"
same "in the file, with both machines" "('connections at once', ['client', 'server'])" \
	"$(said "$WORK/capacity.run" \
	'(run["series"][0]["title"], [agent["end"] for agent in run["agents"]])')"
holds "the result can be reported" sh \
	-c "'$BIN/fwlab' report --markdown '$WORK/capacity.run' | grep -q 'Machine of the server'"

# The limit of a client's ports to one port of the server, and the advice in the message.
searching tcp-capacity --connections 30000 && cat "$WORK/found"
holds "their number and what makes it more is said" grep \
	-q "the client has 28232: its 28232 ports (net.ipv4.ip_local_port_range), from one address (--client-addresses), to one port of the server (--server-ports)" "$WORK/found"
on client sysctl -qw net.ipv4.ip_local_port_range="40000 40399" net.ipv4.tcp_tw_reuse=1
forbids 'tcp dport 82 reject with tcp reset'
searching tcp-rate --server-ports 80-81 --seconds 0.4 || cat "$WORK/found"
same "no more a second than there are ports, as is said" "[2000.0, 800, True, True]" \
	"$(said "$WORK/found" \
	'[run["setting"]["most"], run["trials"][0]["intended"], 0 < run["result"]["rate"] <= 2000, any("can make 2000 connections a second for 0.4 s" in point for point in run["conformance"]["partial"])]')"

on client sysctl -qw net.ipv4.ip_local_port_range="20000 59999"
SERVER4=$SERVER6 searching http-rate --ip 6 --seconds 0.1 --requests 3 --object 5000 ||
	cat "$WORK/found"
same "pages over IPv6" "[3, 5000, True]" \
	"$(said "$WORK/found" \
	'[run["result"]["requests"], run["result"]["bytes"], run["result"]["rate"] > 0]')"
searching tcp-tear-down --connections 50 --throughput 500 || cat "$WORK/found"
same "connections torn down" "[50, True]" \
	"$(said "$WORK/found" '[run["trials"][-1]["intended"], run["result"]["rate"] > 0]')"
searching tcp-illegal --forbidden-port 82 --throughput 200 --seconds 0.1 || cat "$WORK/found"
same "what a rule of the gateway forbids" "[0, 2, 10, 18] 0 True" \
	"$(said "$WORK/found" \
	'str([one["forbidden"] for one in run["result"]]) + " " + str(sum(one["leaked"] for one in run["result"])) + " " + str(all(one["served"] > 0 for one in run["result"]))')"
searching tcp-illegal --forbidden-port 83 --throughput 200
holds "what none forbids is no result" grep \
	-q "block connections to port 83 .* but 10 of 10 reached it" "$WORK/found"
searching tcp-illegal --throughput 200
holds "a port that nobody names is asked for" grep -q -- \
	"name this port by --forbidden-port" "$WORK/found"

# Two addresses of the client, of which one is blocked.
address client eth0 192.168.100.3/24
forbids "ip saddr 192.168.100.3 drop"
searching tcp-rate --client-addresses "$CLIENT4,192.168.100.3" --seconds 0.1
holds "addresses of the client have their turns" grep \
	-q "5 of 10 connections to $SERVER4:80 got their page" "$WORK/found"
forbids "ip saddr $CLIENT4 accept"

on client ip link set eth0 mtu 9000
searching tcp-fragments
holds "datagrams that are no fragments are not sent" grep \
	-q "not fragmented: the client's eth0 has an MTU of 9000" "$WORK/found"
on client ip link set eth0 mtu 1500
# Background traffic: datagrams, and SYNs if their answers use the tested interface.
searching tcp-fragments --throughput 100 --seconds 0.1 || cat "$WORK/found"
same "datagrams in fragments" "[0, True, 10]" \
	"$(said "$WORK/found" \
	'[run["result"][0]["sent"], run["result"][3]["sent"] >= run["result"][3]["received"] > 50, run["result"][3]["served"]]')"
on server ip route add 198.18.2.0/24 dev ctl0
searching tcp-flood --throughput 50 --seconds 0.1
holds "answers to a flood go nowhere else" grep \
	-q "flood from the network of 198.18.2.0 leave by ctl0, but its clients are behind eth0" "$WORK/found"

stop words
same "trials of connections, what was said in them, and that it was heard besides" "True 0 True" \
	"$(python3 "$HERE/control-words.py" "$WORK/words" "$WORK/agent-client.log")"
same "nothing listens between searches" "" "$(on server ss -Hlnt 'sport < 100')"
verdict
