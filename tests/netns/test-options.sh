# IP options, hop-by-hop and destination options, and IGMP and MLD with a router alert: packets that
# pass with `allow-opts`, without it, and never; dropped packets are counted and logged.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
link_address=$(link_address gateway lan0)
daemon gateway
log=$WORK/gateway-pflog0

# the client has the addresses of four hosts
for digit in 3 4 5; do
	address client eth0 192.168.100.$digit/24 2001:db8:100::$digit/64 fe80::$digit/64
done
may="{ 192.168.100.3, 2001:db8:100::3, fe80::3, 192.168.100.5, 2001:db8:100::5, fe80::5 }"
may_stateless="{ 192.168.100.5, 2001:db8:100::5, fe80::5 }"
stateless="{ 192.168.100.4/31, 2001:db8:100::4/127, fe80::4/127 }"

dropped='\((match|ip-option)\): .* in on lan0'
expected=0
games() { # SETTING...
	filter gateway <<-END
		$(printf '%s\n' "$@")
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		pass
		pass from $stateless no state
		pass from $may allow-opts
		pass to $may allow-opts
		pass from $may_stateless no state allow-opts
		pass to $may_stateless no state allow-opts
	END
	pf gateway -q -F states
	same "$*" "312 packets, 178 to drop" \
		"$(on client python3 "$HERE/option-games.py" "$LAB" "$link_address")"
	expected=$((expected + 178))
	same "$*: counted" $expected "$(reason gateway ip-option)"
	await 5 has_records $expected "$log" "$dropped"
	same "$*: in the log" $expected "$(records "$log" "$dropped")"
}
each_way games
verdict
