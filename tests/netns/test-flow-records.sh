# Flow records with `set state-defaults pflow`: both directions of each state, with all of its
# packets, in both families, translated or not, and on each path through the gateway.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0            collects flows
# long: waits for the reports of each rule set
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
OTHER4=192.168.10.3
on server ip address add $OTHER4/24 dev eth0
one_by_one_server server $SERVER4 $OTHER4 $SERVER6
start collector server python3 "$HERE/flow-collector.py" 4739
await 3 grep -q ready "$WORK/collector.log" || die "no collector: $(cat "$WORK/collector.log")"
start reporter gateway "$BIN/skipstepd" -f "$WORK/pflog" -e $SERVER4:4739
await 5 grep -q "skipstepd: ready" "$WORK/reporter.log" ||
	die "no skipstepd: $(cat "$WORK/reporter.log")"

lines=1
came() { # COUNT
	[ "$(wc -l <"$WORK/collector.log")" -ge $((lines + $1)) ]
}
flows() { # SETTING...
	local address
	filter gateway <<-END
		$(printf '%s\n' "$@")
		set timeout interval 1
		set state-defaults pflow
		block
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		match in on lan0 inet proto udp to port 77 tag crossing rdr-to $OTHER4 port 7
		match out on wan0 inet proto udp tagged crossing nat-to 192.168.10.81 port 4008
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto udp to port { 7, 77 }
		pass inet proto udp to port 7 tos 16
		pass out on wan0 proto udp to port 4739 no state
	END
	pf gateway -q -F states
	same "$*: datagrams" "20 20 20" "$(for address in "$SERVER4 20 0 7 16" "$SERVER6 20" \
		"$SERVER4 20 0 77"; do
		# shellcheck disable=SC2086
		ask $address | cut -d ' ' -f 1
	done | xargs)"
	pf gateway -q -F states
	await 10 came 12
	same "$*: records" "$records" "$(tail -n "+$((lines + 1))" "$WORK/collector.log" |
		LC_ALL=C sort -V | uniq -c | sed 's/^ *//')"
	lines=$(wc -l <"$WORK/collector.log")
}
counts="20 packets, 2560 octets"
records="2 256: $SERVER4 7 > $CLIENT4 4007, $counts, tos 16, udp
2 256: $CLIENT4 4007 > $SERVER4 7, $counts, tos 16, udp
1 257: $SERVER4 77 > $CLIENT4 4007 as $OTHER4 7 > $CLIENT4 4007, $counts, tos 0, udp
1 257: $OTHER4 7 > $CLIENT4 4007 as $OTHER4 7 > 192.168.10.81 4008, $counts, tos 0, udp
1 257: $CLIENT4 4007 > $SERVER4 77 as $CLIENT4 4007 > $OTHER4 7, $counts, tos 0, udp
1 257: $CLIENT4 4007 > $OTHER4 7 as 192.168.10.81 4008 > $OTHER4 7, $counts, tos 0, udp
2 258: $SERVER6 7 > $CLIENT6 4007, 20 packets, 2960 octets, tos 0, udp
2 258: $CLIENT6 4007 > $SERVER6 7, 20 packets, 2960 octets, tos 0, udp"
each_way flows
verdict
