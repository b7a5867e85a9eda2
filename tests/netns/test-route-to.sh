# A gateway with two providers: route-to sends some connections by the second provider, reply-to
# sends answers by the provider of the request, dup-to copies to a collector. ICMP errors of a
# router reach the sender through them.
. "$(dirname "$0")/lab.sh"
gateway_with_two_ways_out
host collector
wire collector eth0 gateway tap0
address gateway tap0 10.3.0.1/24 2001:db8:3::1/64
address collector eth0 10.3.0.2/24 2001:db8:3::2/64
witness server 80 8080 81
web client 80
echo_server server 53
daemon gateway

rules=$(cat <<'END_OF_RULES'
block return
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0
pass in on lan0 inet proto tcp to port 8080 route-to 10.2.0.1
pass in on lan0 inet6 proto tcp to port 8080 route-to 2001:db8:2::1
pass in on lan0 inet proto tcp to port 81 route-to 10.2.0.1
pass in on lan0 inet proto icmp route-to 10.2.0.1
pass in on lan0 inet6 proto icmp6 icmp6-type echoreq route-to 2001:db8:2::1
pass in on lan0 inet proto udp to port 53 dup-to 10.3.0.2
pass in on lan0 inet6 proto udp to port 53 dup-to 2001:db8:3::2
pass out on wan1 inet nat-to (wan1)
pass out on wan1 inet6 nat-to (wan1:0)
pass out on wan2 inet nat-to (wan2)
pass out on wan2 inet6 nat-to (wan2:0)
block return out on wan2 proto tcp to port 81
# what comes from the second provider, for the gateway itself and for the client
pass in on wan2 inet proto tcp to port 22 reply-to 10.2.0.1
pass in on wan2 inet6 proto tcp to port 22 reply-to 2001:db8:2::1
pass in on wan2 inet proto tcp to port 8000 rdr-to 192.168.100.2 port 80 reply-to 10.2.0.1
pass out on lan0
END_OF_RULES
)
filter gateway <<<"$rules"

# route-to, in both families; other packets keep their route
same "the routing table's way" 10.1.0.2 "$(seen_from client 192.0.2.80 80)"
same "the other way" 10.2.0.2 "$(seen_from client 192.0.2.80 8080)"
same "the routing table's way, IPv6" 2001:db8:1::2 "$(seen_from client 2001:db8:80::80 80)"
same "the other way, IPv6" 2001:db8:2::2 "$(seen_from client 2001:db8:80::80 8080)"
at_least 1 "states that show the next hop" \
	"$(pf gateway -ss | grep -c '192.0.2.80:8080 {10.2.0.1} <- 192.168.100.2')"

# the packet is filtered once more on its outbound interface
same "refused where it leaves" "no answer" "$(seen_from client 192.0.2.80 81)"

# TTL: the gateway decrements it, and answers if it ends
expired_at() {
	on client ping -n -c 1 -W 2 -t "$1" "$2" |
		sed -n 's/^From \([0-9a-f.:]*[0-9a-f]\).*[Tt]ime.*exceeded.*/\1/p'
}
same "the first router" 192.168.100.1 "$(expired_at 1 192.0.2.80)"
same "the second router" 10.2.0.1 "$(expired_at 2 192.0.2.80)"
same "ping" passed "$(probe_ping client 192.0.2.80)"
same "the first router, IPv6" 2001:db8:100::1 "$(expired_at 1 2001:db8:80::80)"
same "the second router, IPv6" 2001:db8:2::1 "$(expired_at 2 2001:db8:80::80)"
same "ping, IPv6" passed "$(probe_ping client 2001:db8:80::80)"

# broadcast and multicast: to the next hop only, without errors when the TTL ends
filter gateway <<'END_OF_MORE_RULES'
pass
pass in on lan0 inet proto udp to port 9 route-to 10.2.0.1
pass in on lan0 inet6 proto udp to port 9 route-to 2001:db8:2::1
END_OF_MORE_RULES
# to_all ADDRESS HOPS PORT
to_all() {
	on client python3 - "$@" <<'END_OF_PROGRAM'
import socket, sys
address, hops, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if ":" in address:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
    s.sendto(b"all", (address, port, 0, socket.if_nametoindex("eth0")))
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
    s.sendto(b"all", (address, port))
END_OF_PROGRAM
}
start ear isp2 tcpdump --immediate-mode -n -l -e -i gw0 -Q in udp port 9
start own-ear client tcpdump --immediate-mode -n -l -i eth0 -Q in icmp
await 3 grep -q "listening on" "$WORK/ear.log"
await 3 grep -q "listening on" "$WORK/own-ear.log"
next=$(on isp2 ip -o link show gw0 | sed -n 's/.*ether \([^ ]*\).*/\1/p')
for address in 192.168.100.255 255.255.255.255 239.1.2.3 ff0e::7; do
	to_all $address 9 9
	await 3 grep -q "> $next, .* > $address\.9: " "$WORK/ear.log"
	same "to $address, at the next hop" 1 \
		"$(grep -c "> $next, .* > $address\.9: " "$WORK/ear.log")"
done
to_all 192.168.100.255 1 9
to_all 239.1.2.3 1 9
same "the first router, still" 192.168.100.1 "$(expired_at 1 192.0.2.80)"
await 3 grep -q "time exceeded" "$WORK/own-ear.log"
stop own-ear
same "errors, about the last packet and none to all" 1 \
	"$(grep -c 'time exceeded' "$WORK/own-ear.log")"
stop ear
filter gateway <<<"$rules"

# a link with a smaller MTU: an error, or fragments
on gateway ip link set wan2 mtu 1400
on isp2 ip link set gw0 mtu 1400
same "too big" 1400 \
	"$(on client ping -n -c 1 -W 2 -M 'do' -s 1400 192.0.2.80 |
	sed -n 's/.*[Mm]tu *= *\([0-9]*\).*/\1/p' | head -n 1)"
same "too big, IPv6" 1400 \
	"$(on client ping -n -c 1 -W 2 -M 'do' -s 1400 2001:db8:80::80 |
	sed -n 's/.*[Mm]tu *= *\([0-9]*\).*/\1/p' | head -n 1)"
on client ip route flush cache
await 3 on gateway ip link show pffrag0
same "fragmented" passed \
	"$(on client ping -n -q -c 1 -W 2 -M dont -s 1450 192.0.2.80 >/dev/null && echo passed)"
on gateway ip link set wan2 mtu 1500
on isp2 ip link set gw0 mtu 1500

# reply-to: for the gateway's own answers, and for forwarded ones
echo_server gateway 22
same "answers go back where the question came from" passed \
	"$(on server timeout 3 sh -c 'echo hello | nc -w 2 10.2.0.2 22' | grep -q hello &&
	echo passed)"
same "the same in IPv6" passed \
	"$(on server timeout 3 sh -c 'echo hello | nc -w 2 2001:db8:2::2 22' | grep -q hello &&
	echo passed)"
same "a web server behind it" passed "$(PATIENCE=3 probe_web server 10.2.0.2 8000)"

# reply-to on a host that does not forward, and whose routes lead nowhere
on server ip route replace 10.2.0.0/24 via 10.11.0.1
on server ip -6 route replace 2001:db8:2::/64 via 2001:db8:11::1
on gateway ip route add 10.12.0.0/24 via 10.2.0.1
on gateway ip -6 route add 2001:db8:12::/64 via 2001:db8:2::1
same "without reply-to" "no answer" "$(seen_from gateway 10.12.0.2 8080)"
filter server <<'END_OF_RULES'
pass
pass in on eth2 inet proto tcp reply-to 10.12.0.1
pass in on eth2 inet6 proto tcp reply-to 2001:db8:12::1
END_OF_RULES
same "with reply-to" 10.2.0.2 "$(seen_from gateway 10.12.0.2 8080)"
same "with reply-to, IPv6" 2001:db8:2::2 "$(seen_from gateway 2001:db8:12::2 8080)"
pf server -q --remove

# tun9 between the gateway and isp2: no link header, and it exists as long as its process
point_to_point() {
	start tun9 gateway python3 -c '
import ctypes, fcntl, os, select, struct, sys
def tun():
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"tun9", 0x1001))
    return device
ends = [tun()]
with open(sys.argv[1]) as namespace:
    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
        sys.exit("setns")
ends.append(tun())
while True:
    for end in select.select(ends, [], [])[0]:
        packet = os.read(end, 65536)
        try:
            os.write(ends[1 - ends.index(end)], packet)
        except OSError:
            pass  # the other end is not up yet
' "/run/netns/$LAB-isp2"
	await 3 on isp2 ip link set tun9 up
	on gateway ip link set tun9 up
	on isp2 ip route add 192.168.100.0/24 dev tun9
}

# FreeBSD's syntax: the rule names the interface, and the routing table is not used
on gateway ip route add 10.2.0.9/32 via 10.1.0.1
on isp2 ip address add 10.2.0.9/32 dev gw0
point_to_point
on server ip route add 192.168.100.0/24 via 10.12.0.1
on server ip route replace 10.2.0.0/24 via 10.12.0.1
on server ip -6 route replace 2001:db8:2::/64 via 2001:db8:12::1
link_local=$(on isp2 ip -6 -o address show dev gw0 scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p')
filter gateway <<END_OF_RULES
nat on wan1 inet from 192.168.100.0/24 to any -> (wan1)
nat on wan2 inet from 192.168.100.0/24 to any -> (wan2)
nat on wan2 inet6 from 2001:db8:100::/64 to any -> (wan2:0)
pass
pass in on lan0 route-to (wan2 10.2.0.9) inet proto tcp from any to any port 8080
pass in on lan0 route-to (wan2 $link_local) inet6 proto tcp from any to any port 8080
pass in on lan0 route-to tun9 inet proto tcp from any to any port 81
pass in on wan2 reply-to (wan2 10.2.0.9) inet proto tcp from any to any port 22
END_OF_RULES
same "the table's way" 10.1.0.2 "$(seen_from client 192.0.2.80 80)"
same "the named way" 10.2.0.2 "$(seen_from client 192.0.2.80 8080)"
at_least 1 "states that show it" \
	"$(pf gateway -ss | grep -c '192.0.2.80:8080 {10.2.0.9@wan2} <- 192.168.100.2')"
same "a neighbour's link-local address" 2001:db8:2::2 "$(seen_from client 2001:db8:80::80 8080)"
same "a link without neighbours" 192.168.100.2 "$(seen_from client 192.0.2.80 81)"
on gateway ip route replace 10.12.0.0/24 via 10.1.0.1
same "answers by the named way" passed \
	"$(on server timeout 3 sh -c 'echo hello | nc -w 2 -s 10.12.0.2 10.2.0.2 22' |
	grep -q hello && echo passed)"
# IPv4 by an IPv6 neighbour
filter gateway <<END_OF_RULES
nat on wan2 inet from 192.168.100.0/24 to any -> (wan2)
pass
pass in on lan0 route-to (wan2 $link_local) prefer-ipv6-nexthop inet proto tcp from any to any port 8080
pass in on lan0 route-to 2001:db8:2::1 prefer-ipv6-nexthop inet proto tcp from any to any port 80
pass in on lan0 route-to tun9 inet proto tcp from any to any port 81
pass in on lan0 dup-to (tap0 2001:db8:3::2) prefer-ipv6-nexthop inet proto udp from any to any port 53
END_OF_RULES
same "IPv4 by a link-local address of IPv6" 10.2.0.2 "$(seen_from client 192.0.2.80 8080)"
same "IPv4 by an address of IPv6" 10.2.0.2 "$(seen_from client 192.0.2.80 80)"
start copies-ear collector tcpdump --immediate-mode -n -l -i eth0 -Q in udp port 53
await 3 grep -q "listening on" "$WORK/copies-ear.log"
probe_udp client 10.11.0.2 53 >/dev/null
holds "a copy of IPv4 by an address of IPv6" await 3 grep -q "> 10.11.0.2\.53: " \
	"$WORK/copies-ear.log"
stop copies-ear

# the interface may disappear, and come back with another index
stop tun9
same "without it" "no answer" "$(seen_from client 192.0.2.80 81)"
point_to_point
back() {
	[ "$(seen_from client 192.0.2.80 81)" = 192.168.100.2 ]
}
holds "back, and in use again" await 5 back
filter gateway <<<"$rules"

# dup-to: the collector receives the server's packets, and the client is not affected
heard() {
	on collector awk '$1 == "eth0:" { print $3 }' /proc/net/dev
}
for server in 10.11.0.2 2001:db8:11::2; do
	before=$(heard)
	for _ in 1 2 3 4 5; do
		same "UDP to $server" passed "$(probe_udp client "$server" 53)"
	done
	at_least 10 "packets that the collector heard" $(($(heard) - before))
done
start collector-ear collector tcpdump --immediate-mode -n -l -i eth0 -Q in udp port 53
await 3 grep -q "listening on" "$WORK/collector-ear.log"
for address in 192.168.100.255 239.1.2.3 ff0e::7; do
	to_all $address 9 53
	holds "a copy of what is for $address" await 3 grep -q "> $address\.53: " \
		"$WORK/collector-ear.log"
done
verdict
