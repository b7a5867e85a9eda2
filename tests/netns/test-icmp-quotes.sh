# ICMP errors about packets of states, from routers on both sides, without translation and with
# nat-to and rdr-to. The quoted packet gets the addresses and ports that its sender knows. The other
# fields stay, checksums too, except that a UDP checksum is cleared. Errors without a state are
# dropped.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
lan=$(link_address gateway lan0)
wan=$(link_address gateway wan0)
for digit in 9 77; do
	unowned client lan0 192.168.100.$digit 2001:db8:100::$digit
done
for digit in 9 10 11 12 77 78; do
	unowned server wan0 192.168.10.$digit 2001:db8:10::$digit
done
port=20000
games() { # SETTING...
	filter gateway <<-END
		$(printf '%s\n' "$@")
		block
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		match in on lan0 inet to 192.168.10.12 rdr-to 192.168.10.10
		match in on lan0 inet6 to 2001:db8:10::12 rdr-to 2001:db8:10::10
		match out on wan0 inet to 192.168.10.11 nat-to 192.168.10.81
		match out on wan0 inet6 to 2001:db8:10::11 nat-to 2001:db8:10::81
		pass proto udp to port 53
		pass proto tcp to port 80
		pass inet proto icmp icmp-type echoreq
		pass inet6 proto icmp6 icmp6-type echoreq
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto udp to port 9 no state
	END
	pf gateway -q -F states
	same "$*" "159 cases, 69 to drop" \
		"$(on client python3 "$HERE/icmp-quotes.py" "$LAB" "$lan" "$wan" $port)"
	port=$((port + 100))
}
each_way games
verdict
