# Packets that exceed a link's MTU, and packets whose TTL ends. The errors of the gateway and of the
# router behind it reach the sender, and quote the addresses that it used, also with redirection and
# NAT.
#
#   client ------------ gateway ------- 1400 ------- router ------- 1300 ------- server
#   eth0           lan0       wan0                 r0      r1                      eth0
#   192.168.100.2               192.168.10.81   192.168.10.2                192.168.20.2
. "$(dirname "$0")/lab.sh"
host client server
router gateway router
wire client eth0 gateway lan0
wire gateway wan0 router r0
wire router r1 server eth0
address client eth0 192.168.100.2/24 2001:db8:100::2/64
address gateway lan0 192.168.100.1/24 2001:db8:100::1/64
address gateway wan0 192.168.10.81/24 2001:db8:10::81/64
address router r0 192.168.10.2/24 2001:db8:10::2/64
address router r1 192.168.20.1/24 2001:db8:20::1/64
address server eth0 192.168.20.2/24 2001:db8:20::2/64
for to in "gateway wan0 1400" "router r0 1400" "router r1 1300" "server eth0 1300"; do
	read -r name interface mtu <<<"$to"
	on "$name" ip link set "$interface" mtu "$mtu"
done
on client ip route add default via 192.168.100.1
on client ip -6 route add default via 2001:db8:100::1
on gateway ip route add 192.168.20.0/24 via 192.168.10.2
on gateway ip -6 route add 2001:db8:20::/64 via 2001:db8:10::2
on router ip route add 192.168.100.0/24 via 192.168.10.81
on router ip -6 route add 2001:db8:100::/64 via 2001:db8:10::81
on server ip route add default via 192.168.20.1
on server ip -6 route add default via 2001:db8:20::1
await 5 on client ping -n -q -c 1 -W 1 2001:db8:20::2 ||
	die "the hosts do not reach each other over IPv6"
await 5 on client ping -n -q -c 1 -W 1 192.168.20.2 ||
	die "the hosts do not reach each other over IPv4"
web server 80
echo_server server 7

CLIENT4=192.168.100.2 PLAIN4=192.168.20.2 PLAIN6=2001:db8:20::2
# Addresses that no host has: the gateway redirects them to the server and hides the client.
OTHER4=192.168.30.2 OTHER6=2001:db8:30::2
filter gateway <<END
block all
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 tag plain
pass in on lan0 inet to $OTHER4 rdr-to $PLAIN4 tag other
pass in on lan0 inet6 to $OTHER6 rdr-to $PLAIN6 tag other
pass out on wan0 tagged plain
pass out on wan0 inet tagged other nat-to 192.168.10.81
pass out on wan0 inet6 tagged other nat-to 2001:db8:10::81
END

# forget_mtu - clears the client's path MTUs
forget_mtu() {
	on client ip route flush cache
	on client ip -6 route flush cache
}

# too_long ADDRESS BYTES - prints the MTU and the sender of the error about a packet of BYTES bytes
too_long() {
	local header=28
	case $1 in *:*) header=48 ;; esac
	on client ping -n -c 1 -W 2 -M "do" -s $(($2 - header)) "$1" 2>&1 |
		sed -n 's/^From \([0-9a-f.:]*[0-9a-f]\):* icmp_seq=1 .*mtu *= *\([0-9]*\).*/\2 from \1/p'
}

# hop ADDRESS TTL - prints the sender of the answer to an echo request with this TTL
hop() {
	on client ping -n -c 1 -W 2 -t "$2" "$1" 2>&1 |
		sed -n 's/^From \([0-9a-f.:]*[0-9a-f]\):* icmp_seq=1 Time.*exceeded.*/\1/p
			s/^[0-9]* bytes from \([0-9a-f.:]*[0-9a-f]\): icmp_seq=1.*/reached \1/p'
}

# hop_udp ADDRESS TTL - prints the sender of the error about a datagram with this TTL. The client's
# kernel assigns the error to a socket by the addresses and ports of the quoted packet.
hop_udp() {
	on client python3 - "$1" "$2" <<'END'
import select, socket, sys
address, ttl = sys.argv[1], int(sys.argv[2])
ipv6 = ":" in address
s = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
level, recverr, hops = (socket.IPPROTO_IPV6, 25, socket.IPV6_UNICAST_HOPS) if ipv6 else (socket.IPPROTO_IP, 11, socket.IP_TTL)
s.setsockopt(level, recverr, 1)
s.setsockopt(level, hops, ttl)
s.connect((address, 33434))
s.send(b"x" * 32)
poll = select.poll()
poll.register(s, select.POLLERR)
if not poll.poll(2000):
    print("nothing")
    sys.exit()
_, control, _, _ = s.recvmsg(64, 512, 0x2000)
# struct sock_extended_err (errno, origin, type, ...: 16 bytes), then the address of who says so
kinds = {3: "exceeded", 1: "unreachable"} if ipv6 else {11: "exceeded", 3: "unreachable"}
for _, _, error in control:
    print(kinds.get(error[5]), socket.inet_ntop(s.family, error[24:40] if ipv6 else error[20:24]))
END
}

start sniffer client tcpdump -n -l -v -i eth0 'icmp[icmptype] == icmp-unreach'
await 3 grep -q "listening on" "$WORK/sniffer.log"
for family in 4 6; do
	for which in PLAIN OTHER; do
		address=$which$family
		address=${!address}
		case $which$family in
		PLAIN4) first=192.168.100.1 second=192.168.10.2 ;;
		PLAIN6) first=2001:db8:100::1 second=2001:db8:10::2 ;;
		# For a redirected packet, pf gives the error the original destination of the quoted
		# packet as its source.
		*) first=$address second=$address ;;
		esac
		same "ping $address" passed "$(probe_ping client "$address")"
		same "1500 bytes to $address" "1400 from $first" "$(too_long "$address" 1500)"
		same "1400 bytes to $address" "1300 from $second" "$(too_long "$address" 1400)"
		forget_mtu
		same "UDP to $address" passed "$(probe_udp client "$address" 7)"
		same "TCP to $address" passed "$(PATIENCE=5 probe_web client "$address" 80)"
		forget_mtu
		same "first hop to $address" "$first" "$(hop "$address" 1)"
		same "second hop to $address" "$second" "$(hop "$address" 2)"
		same "third hop to $address" "reached $address" "$(hop "$address" 3)"
		same "first hop to $address, UDP" "exceeded $first" "$(hop_udp "$address" 1)"
		same "second hop to $address, UDP" "exceeded $second" "$(hop_udp "$address" 2)"
		same "third hop to $address, UDP" "unreachable $address" "$(hop_udp "$address" 3)"
	done
done
stop sniffer
# The errors quote the packet as it was sent: its length and its addresses.
for address in $PLAIN4 $OTHER4; do
	for length in 1500 1400; do
		same "an error quotes $length bytes from $CLIENT4 to $address" 1 \
			"$(grep -A 1 "proto ICMP (1), length $length" "$WORK/sniffer.log" |
			grep -c "$CLIENT4 > $address: ICMP echo request")"
	done
done
verdict
