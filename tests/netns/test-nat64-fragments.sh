# Datagrams of 1400 to 9000 bytes cross between the families (af-to), whole and in fragments. A
# fragmented datagram, and one that may be fragmented, leaves in fragments that fit the link (RFC
# 7915). No sender gets an MTU error with an MTU that its own link cannot have.
# long: 20 s
. "$(dirname "$0")/lab.sh"
gateway_between_families
echo_server server 53
echo_server client 53
filter gateway <<'END_OF_RULES'
block all
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0)
pass in on wan0 inet to 192.168.10.100 af-to inet6 from 2001:db8:64::/96 to 2001:db8:100::2
END_OF_RULES
daemon gateway
await 5 on gateway ip link show pffrag0

# datagram HOST ADDRESS BYTES - sends a UDP packet of BYTES bytes, headers included, to an echo
# server
datagram() {
	local headers=28
	case $2 in *:*) headers=48 ;; esac
	probe_large_udp "$1" "$2" 53 $(($3 - headers))
}

# impossible - prints the number of MTU errors with the MTU of the host's own link or more
impossible() {
	grep -c "mtu \(1[5-9]\|[2-9][0-9]\)[0-9][0-9]" "$WORK/ear.log"
}
start ear client tcpdump --immediate-mode -n -l -i eth0 -Q in \
	'icmp6 and ip6[40] == 2'
await 3 grep -q "listening on" "$WORK/ear.log"
for mtu in 1500 1400 1280; do
	on gateway ip link set wan0 mtu $mtu
	on server ip link set eth0 mtu $mtu
	on client ip -6 route flush cache
	for length in 1400 1452 1453 1480 1500 1501 1520 2000 2960 3000 5000 9000; do
		same "$length bytes of IPv6 to a link of $mtu" passed \
			"$(datagram client $SERVER64 $length)"
		same "$length bytes of IPv4 from a link of $mtu" passed \
			"$(datagram server $CLIENT46 $length)"
	done
done
on gateway ip link set wan0 mtu 1500
on server ip link set eth0 mtu 1500
on gateway ip link set lan0 mtu 1400
on client ip link set eth0 mtu 1400
for length in 1380 1400 1401 1480 1500 3000 9000; do
	same "$length bytes of IPv4 to a link of 1400" passed "$(datagram server $CLIENT46 $length)"
	same "$length bytes of IPv6 from a link of 1400" passed \
		"$(datagram client $SERVER64 $length)"
done
for length in 1400 5000 9000 60000; do
	same "echo of $length bytes to IPv4" passed \
		"$(on client ping -n -q -c 1 -w 3 -i 0.2 -s "$length" $SERVER64 >/dev/null && echo passed)"
	same "echo of $length bytes to IPv6" passed \
		"$(on server ping -n -q -c 1 -w 3 -i 0.2 -M dont -s "$length" $CLIENT46 >/dev/null &&
		echo passed)"
done
stop ear
same "errors that name an MTU that no sender can obey" 0 "$(impossible)"
verdict
