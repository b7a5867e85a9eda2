# A rule about a table matches packets to each address in the table by the longest entry, and no
# others. The result is the same for each evaluator and path, also after pfctl added and deleted
# entries.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0            10.0.0.0/8, 2001:db8:1000::/36
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
for net in 10.0.0.0/8 2001:db8:1000::/36; do
	on server ip route add local $net dev lo
done
on gateway ip route add 10.0.0.0/8 via $SERVER4
on gateway ip route add 2001:db8:1000::/36 via $SERVER6

entries="10.0.0.0/9, !10.1.0.0/16, 10.1.2.0/24, !10.1.2.3, 10.200.0.1"
entries6="2001:db8:1000::/40, !2001:db8:1010::/44, 2001:db8:1010:1::/64"
entries6+=", !2001:db8:1010:1::7, 2001:db8:1fff::1"
hit="10.0.0.1 10.2.0.0 10.127.255.255 10.1.2.0 10.1.2.2 10.1.2.4 10.1.2.255 10.200.0.1 2001:db8:1000::
	2001:db8:100f:ffff:ffff:ffff:ffff:ffff 2001:db8:1020::1 2001:db8:1010:1:: 2001:db8:1010:1::6
	2001:db8:1010:1::8 2001:db8:1010:1:ffff:ffff:ffff:ffff 2001:db8:1fff::1"
miss="10.1.0.0 10.1.1.255 10.1.2.3 10.1.3.0 10.1.255.255 10.128.0.0 10.200.0.0 10.200.0.2
	2001:db8:1010:: 2001:db8:1010:0:ffff:ffff:ffff:ffff 2001:db8:1010:1::7 2001:db8:1010:2::
	2001:db8:101f:ffff:ffff:ffff:ffff:ffff 2001:db8:1100:: 2001:db8:1fff:: 2001:db8:1fff::2"

asks() { # ADDRESS... - prints the addresses that answer
	pf gateway -q -F states
	on client python3 "$HERE/echoes.py" $SERVER4 $SERVER6 -- "$@"
}
tables() { # SETTING...
	filter gateway <<-END
		$(printf '%s\n' "$@")
		table <nets> { $entries, $entries6 }
		block
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass to { $SERVER4, $SERVER6 }
		pass out
		pass in on lan0 to <nets>
	END
	# shellcheck disable=SC2086
	same "$*: in the table" "$(echo $hit)" "$(asks $hit $miss)"
	pf gateway -q -t nets -T add '!10.0.0.1' 10.128.0.0/10 2001:db8:1fff::2
	pf gateway -q -t nets -T delete 10.200.0.1 '!10.1.2.3' 2001:db8:1010:1::/64
	same "$*: added and deleted" "10.128.0.0 10.191.255.255 10.1.2.3 2001:db8:1fff::2" \
		"$(asks 10.0.0.1 10.128.0.0 10.191.255.255 10.192.0.0 10.200.0.1 10.1.2.3 \
		2001:db8:1fff::2 2001:db8:1010:1::6 2001:db8:1010:1::7)"
	pf gateway -q -f - <<-END
		$(printf '%s\n' "$@")
		table <nets> { $entries, $entries6 }
		pass
		block in on lan0 to ! <nets>
		pass to { $SERVER4, $SERVER6 }
	END
	# shellcheck disable=SC2086
	same "$*: not in the table, turned round" "$(echo $hit)" "$(asks $miss $hit)"
}
each_way tables
verdict
