# A host that filters its own traffic, loopback included.
#
#   visitor                                host (filters)
#   eth0 ------------------------------------------- eth0
#   192.0.2.1  2001:db8::1         192.0.2.2  2001:db8::2
. "$(dirname "$0")/lab.sh"
host visitor host
wire visitor eth0 host eth0
address visitor eth0 192.0.2.1/24 2001:db8::1/64
address host eth0 192.0.2.2/24 2001:db8::2/64
await 5 on visitor ping -n -q -c 1 -W 1 2001:db8::2 || die "the hosts do not reach each other"
web host 80 8080
web visitor 80 8080

rules() {
	cat <<'END'
block all
pass inet6 proto icmp6
pass in on eth0 proto tcp to (eth0) port 80
pass out on eth0 proto tcp from (eth0) to port 80
END
}

filter host < <(rules)
for address in 192.0.2.2 2001:db8::2; do
	same "in to port 80 of $address" passed "$(probe_web visitor $address 80)"
	same "in to port 8080 of $address" "no answer" "$(probe_web visitor $address 8080)"
done
for address in 192.0.2.1 2001:db8::1; do
	same "out to port 80 of $address" passed "$(probe_web host $address 80)"
	same "out to port 8080 of $address" "no answer" "$(probe_web host $address 8080)"
done
same "loopback is filtered as any interface" "no answer" "$(probe_web host 127.0.0.1 80)"
same "loopback is filtered as any interface, IPv6" "no answer" "$(probe_web host ::1 80)"
same "so is what it sends to its own address" "no answer" "$(probe_web host 192.0.2.2 80)"

filter host < <(echo "set skip on lo"; rules)
same "unless it is skipped" passed "$(probe_web host 127.0.0.1 80)"
same "unless it is skipped, IPv6" passed "$(probe_web host ::1 80)"
same "which changes nothing for others" "no answer" "$(probe_web visitor 192.0.2.2 8080)"

# The kernel returns packets to a multicast or broadcast address to local programs that listen.
cat >"$WORK/groups.py" <<'END_OF_PROGRAM'
import socket, struct
PORT = 5353
index = socket.if_nametoindex("eth0")
sockets = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
sockets[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
for s in sockets:
    s.settimeout(0.2)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.bind(("", PORT))
four, six = sockets
group, own = socket.inet_aton("239.1.2.3"), socket.inet_aton("192.0.2.2")
four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + own)
four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
group6 = socket.inet_pton(socket.AF_INET6, "ff02::1:2:3") + struct.pack("i", index)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group6)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
heard = []
for s, address in (four, "239.1.2.3"), (four, "192.0.2.255"), (six, "ff02::1:2:3"):
    s.sendto(address.encode(), (address, PORT))
    try:
        heard.append(s.recv(100).decode())
    except TimeoutError:
        pass
print(*heard)
END_OF_PROGRAM
groups() {
	on host python3 "$WORK/groups.py"
}
filter host < <(rules; echo "pass out on eth0 proto udp")
same "own packets to groups, which rules block where they come in" "" "$(groups)"
filter host < <(rules; echo "pass on eth0 proto udp to port 5353")
same "own packets to groups, which rules pass" "239.1.2.3 192.0.2.255 ff02::1:2:3" "$(groups)"
same "packets counted as link-header" "" "$(reason host link-header)"
verdict
