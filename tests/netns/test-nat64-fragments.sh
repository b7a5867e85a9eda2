# Datagrams of 1400 to 9000 bytes cross between the families (af-to), whole and in fragments: what
# came in fragments, or may be fragmented, leaves in fragments that the link takes (RFC 7915). No
# sender hears of an MTU that its own link cannot have.
#
#   client (IPv6 only)         gateway            server (IPv4 only)
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   2001:db8:100::2                   192.168.10.81     192.168.10.2
. "$(dirname "$0")/lab.sh"
lab_begin
host client server
router gateway
wire client eth0 gateway lan0
wire server eth0 gateway wan0
address client eth0 2001:db8:100::2/64
address gateway lan0 2001:db8:100::1/64
address gateway wan0 192.168.10.81/24
address server eth0 192.168.10.2/24
on client ip route add default via 2001:db8:100::1
on server ip route add default via 192.168.10.81
on server ip route add 192.168.10.100/32 via 192.168.10.81
on client ip route add 2001:db8:64::/96 via 2001:db8:100::1
echo_server server 53
echo_server client 53
SERVER64=64:ff9b::192.168.10.2 CLIENT46=192.168.10.100
filter gateway <<'END_OF_RULES'
block all
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0)
pass in on wan0 inet to 192.168.10.100 af-to inet6 from 2001:db8:64::/96 to 2001:db8:100::2
END_OF_RULES
daemon gateway
await 5 on gateway ip link show pffrag0

# datagram HOST ADDRESS BYTES - a UDP packet of so many bytes, with headers, to an echo server and
# back; on a path with a smaller MTU the first ones may be lost
datagram() {
	on "$1" python3 - "$2" "$3" <<'END_OF_PROGRAM'
import socket, sys
address, length = sys.argv[1], int(sys.argv[2])
ipv6 = ":" in address
s = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
if not ipv6:
    s.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: IP_PMTUDISC_DONT
data = bytes(i % 251 for i in range(length - (48 if ipv6 else 28)))
for _ in range(4):
    s.sendto(data, (address, 53))
    try:
        print("passed" if s.recv(65535) == data else "broken")
        break
    except OSError:
        pass
else:
    print("no answer")
END_OF_PROGRAM
}

# impossible - how often a host heard of an MTU of its own link or more
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
