# A gateway with two providers whose rules choose between routing tables: packets of an inbound rule
# with `rtable` are forwarded by that table, with all features of a router.
. "$(dirname "$0")/lab.sh"
gateway_with_two_ways_out
witness server 80 8080 8081
echo_server gateway 7
on gateway ip route add default via 10.2.0.1 table 7
on gateway ip -6 route add default via 2001:db8:2::1 table 7
on gateway ip route add unreachable 203.0.113.0/24 table 7

filter gateway <<'END_OF_RULES'
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0
match in on lan0 proto tcp to port { 7, 8080 } rtable 7
pass in on lan0 proto { icmp, icmp6 } rtable 7
pass in on lan0 proto tcp to port 8081 synproxy state rtable 7
pass in on lan0 to 198.51.100.0/24 rtable 8
pass out on wan1 inet nat-to (wan1)
pass out on wan1 inet6 nat-to (wan1:0)
pass out on wan2 inet nat-to (wan2)
pass out on wan2 inet6 nat-to (wan2:0)
END_OF_RULES

same "the main table" 10.1.0.2 "$(seen_from client 192.0.2.80 80)"
same "the other table" 10.2.0.2 "$(seen_from client 192.0.2.80 8080)"
same "the main table, IPv6" 2001:db8:1::2 "$(seen_from client 2001:db8:80::80 80)"
same "the other table, IPv6" 2001:db8:2::2 "$(seen_from client 2001:db8:80::80 8080)"
same "the other table, through synproxy" 10.2.0.2 "$(seen_from client 192.0.2.80 8081)"
same "the other table, through synproxy, IPv6" 2001:db8:2::2 \
	"$(seen_from client 2001:db8:80::80 8081)"
same "the gateway itself is in every table" passed \
	"$(echo hello | on client timeout 3 nc -w 2 192.168.100.1 7 | grep -q hello && echo passed)"

expired_at() {
	on client ping -n -c 1 -W 2 -t "$1" "$2" |
		sed -n 's/^From \([0-9a-f.:]*[0-9a-f]\).*[Tt]ime.*exceeded.*/\1/p'
}
same "the first router" 192.168.100.1 "$(expired_at 1 192.0.2.80)"
same "the second router" 10.2.0.1 "$(expired_at 2 192.0.2.80)"
same "the first router, IPv6" 2001:db8:100::1 "$(expired_at 1 2001:db8:80::80)"
same "the second router, IPv6" 2001:db8:2::1 "$(expired_at 2 2001:db8:80::80)"

on gateway ip link set wan2 mtu 1400
same "too big" 1400 \
	"$(on client ping -n -c 1 -W 2 -M 'do' -s 1400 192.0.2.80 |
	sed -n 's/.*[Mm]tu *= *\([0-9]*\).*/\1/p' | head -n 1)"

unreachable() {
	on client ping -n -c 1 -W 2 "$1" | grep -o 'Destination Host Unreachable'
}
same "where the table says no" "Destination Host Unreachable" "$(unreachable 203.0.113.9)"
same "an empty table" "Destination Host Unreachable" "$(unreachable 198.51.100.9)"
verdict
