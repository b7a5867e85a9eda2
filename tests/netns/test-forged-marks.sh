# A socket that sets marks (SO_MARK, with CAP_NET_RAW only) cannot impersonate the firewall, nor
# give a packet a rule's tag.
#
#   client                                   host
#   eth0 10.9.1.2 -------------------------- lan0 10.9.1.1
. "$(dirname "$0")/lab.sh"

host client host
wire client eth0 host lan0
address client eth0 10.9.1.2/24 2001:db8:1::2/64
address host lan0 10.9.1.1/24 2001:db8:1::1/64

start heard client python3 -u -c '
import socket
both = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
both.bind(("::", 7777))
print("ready")
while True:
    print(both.recv(100).decode(), flush=True)'
await 5 grep -q ready "$WORK/heard.log" || die "nobody listens"

# sends TEXT MARK - sends a datagram of each family, from a process with the right to set marks only
sends() {
	on host setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+net_raw \
		--ambient-caps=-all,+net_raw --bounding-set=-all,+net_raw /usr/bin/python3 -c '
import socket, struct, sys
for family, address in ((socket.AF_INET, "10.9.1.2"), (socket.AF_INET6, "2001:db8:1::2")):
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, 36, struct.pack("I", int(sys.argv[2], 0)))  # SO_MARK
    try:
        sender.sendto((sys.argv[1] + " " + address).encode(), (address, 7777))
    except PermissionError:
        pass  # the firewall says no' "$1" "$2" || die "nothing is sent"
}
heard() { # TEXT
	sleep 0.2 # for a datagram that should not arrive there is no event
	grep -c "^$1 " "$WORK/heard.log"
}

sends before 0x80000000
same "without a filter both datagrams arrive" 2 "$(heard before)"
filter host <<<"block out on lan0 proto udp
pass out on lan0 inet6 proto icmp6
block out on lan1 tag OURS"
for mark in 0x80000000 0x80010000 0x80020000 0x80040000 0x88000000 0xffff0000; do
	sends "as-the-firewall-$mark" $mark
	same "mark $mark: blocked all the same" 0 "$(heard "as-the-firewall-$mark")"
done
filter host <<<"pass out on lan0 inet6 proto icmp6
block out on lan0 proto udp
pass out on lan0 proto udp tagged OURS
block out on lan1 tag OURS"
for mark in 0x00010000 0x00020000 0x80030000; do
	sends "as-tagged-$mark" $mark
	same "mark $mark: not tagged" 0 "$(heard "as-tagged-$mark")"
done
filter host <<<"pass"
sends after 0x80000000
same "a rule that passes lets it by" 2 "$(heard after)"
verdict
