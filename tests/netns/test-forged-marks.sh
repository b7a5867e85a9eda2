# Marks whose upper half skipstep did not write: those of a socket (SO_MARK, with CAP_NET_RAW only),
# and those that rules of netfilter write on forwarded packets, also on a bridge. They cannot
# impersonate the firewall, nor give a packet a rule's tag.
# long: 40 s
#
#   client                   gateway                    server
#   eth0 ---------------- lan0     wan0 ---------------- eth0
#   192.168.100.2                                192.168.10.2
#
#   left                     bridge                      right
#   eth0 -------------- port0 (br0) port1 -------------- eth0
#   192.0.2.1            br0: 192.0.2.2             192.0.2.3
. "$(dirname "$0")/lab.sh"
command -v nft >/dev/null || unable "there is no nft here"
AS_FIREWALL="0x80000000 0x80010000 0x80020000 0x80030000 0x80040000 0x88000000 0xffff0000"
AS_TAGGED="0x00010000 0x00020000 0x10010000"
SOME="0x80000000 0x80020000 0xffff0000 0x00010000"

# listens HOST - prints the datagrams for port 7777 of a host to $WORK/HOST.log
listens() {
	start "$1" "$1" python3 -u -c '
import socket
both = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
both.bind(("::", 7777))
print("ready")
while True:
    print(both.recv(100).decode(), flush=True)'
	await 5 grep -q ready "$WORK/$1.log" || die "nobody listens on $1"
}
# sends HOST TEXT MARK ADDRESS... - sends a datagram to each address, from a process with the right
# to set marks only
sends() {
	local host=$1
	shift
	on "$host" setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+net_raw \
		--ambient-caps=-all,+net_raw --bounding-set=-all,+net_raw /usr/bin/python3 -c '
import socket, struct, sys
text, mark, *addresses = sys.argv[1:]
for address in addresses:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, 36, struct.pack("I", int(mark, 0)))  # SO_MARK
    try:
        sender.sendto((text + " " + address).encode(), (address, 7777))
    except PermissionError:
        pass  # the firewall says no' "$@" || die "nothing is sent"
}
# heard HOST TEXT - prints how many datagrams with a text have arrived
heard() {
	sleep 0.2 # for a datagram that should not arrive there is no event
	grep -c "^$2 " "$WORK/$1.log"
}
# marks HOST FAMILY HOOK MARK - has a rule of netfilter set bits in each packet's mark
marks() {
	on "$1" nft -f - <<-END || die "nft adds no rule"
		table $2 other
		delete table $2 other
		table $2 other {
			chain c {
				type filter hook $3 priority -150
				meta mark set meta mark or $4
			}
		}
	END
}
no_marks() { # HOST FAMILY
	on "$1" nft delete table "$2" other
}
TEXT=0
# arriving HOST ADDRESSES AT - how many of two datagrams arrive from a host at another one
arriving() {
	TEXT=$((TEXT + 1))
	# shellcheck disable=SC2086
	sends "$1" "text-$BASHPID-$TEXT" 0 $2
	heard "$3" "text-$BASHPID-$TEXT"
}

gateway_between_client_and_server
listens server
SERVER="$SERVER4 $SERVER6"

# ---- a socket's marks
# own TEXT MARK - sends from the gateway; prints how many datagrams arrive
own() {
	# shellcheck disable=SC2086
	sends gateway "$1" "$2" $SERVER
	heard server "$1"
}
same "without a filter both datagrams arrive" 2 "$(own before 0x80000000)"
filter gateway <<<"block out on wan0 proto udp
pass out on wan0 inet6 proto icmp6
block out on lan0 tag OURS"
for mark in $AS_FIREWALL; do
	same "a socket's mark $mark: blocked all the same" 0 "$(own "as-the-firewall-$mark" "$mark")"
done
filter gateway <<<"pass out on wan0 inet6 proto icmp6
block out on wan0 proto udp
pass out on wan0 proto udp tagged OURS
block out on lan0 tag OURS"
for mark in $AS_TAGGED 0x80030000; do
	same "a socket's mark $mark: not tagged" 0 "$(own "as-tagged-$mark" "$mark")"
done
filter gateway <<<"pass"
same "a rule that passes lets it by" 2 "$(own after 0x80000000)"

# ---- netfilter's marks on forwarded packets
forwarded() {
	arriving client "$SERVER" server
}
OUT="pass out on wan0 inet6 proto icmp6
block out on wan0 proto udp
pass out on wan0 proto udp tagged OURS
match in on lan0 proto tcp tag OURS"
check_forwarded() { # WHAT HOOK MARK...
	local what=$1 hook=$2 mark
	shift 2
	for mark; do
		marks gateway inet "$hook" "$mark"
		same "$what, $hook sets $mark" 0 "$(forwarded)"
	done
	no_marks gateway inet
}
filter gateway <<<"pass in
$OUT"
# shellcheck disable=SC2086
check_forwarded "a packet without a tag" prerouting $SOME
# shellcheck disable=SC2086
check_forwarded "a packet without a tag" forward $AS_FIREWALL $AS_TAGGED
filter gateway <<<"queue line on wan0 bandwidth 10M
queue prompt parent line bandwidth 2M default
pass in
match in on lan0 proto udp set queue prompt
$OUT"
# shellcheck disable=SC2086
check_forwarded "a packet with a queue" forward $AS_FIREWALL 0x00010000
filter gateway <<<"pass in
match in on lan0 proto udp set prio 5
$OUT"
# shellcheck disable=SC2086
check_forwarded "a packet with a priority" forward $AS_FIREWALL
filter gateway <<<"queue line on wan0 bandwidth 10M
queue prompt parent line bandwidth 2M default
pass in
match in on lan0 proto udp set prio 5 set queue prompt
$OUT"
# shellcheck disable=SC2086
check_forwarded "a packet with a priority and a queue" forward 0x80000000 0x80040000 0xffff0000

# rules' own tags
for queue in "" "set queue prompt"; do
	filter gateway <<<"queue line on wan0 bandwidth 10M
queue prompt parent line bandwidth 2M default
pass in
match in on lan0 proto udp tag OURS $queue
$OUT"
	same "a rule's tag $queue" 2 "$(forwarded)"
	marks gateway inet forward 0x0000ffff
	same "a rule's tag $queue, forward sets the lower half" 2 "$(forwarded)"
	no_marks gateway inet
	filter gateway <<<"queue line on wan0 bandwidth 10M
queue prompt parent line bandwidth 2M default
pass in
match in on lan0 proto udp tag OURS $queue
pass out on wan0 inet6 proto icmp6
block out on wan0 proto udp"
	# shellcheck disable=SC2086
	check_forwarded "a packet with a tag $queue" forward $AS_FIREWALL
done

# the firewall's own answers leave by an interface whose rules block them
filter gateway <<<"block return in on lan0 proto udp
pass in on lan0 inet6 proto icmp6
block out on lan0
pass out on lan0 inet6 proto icmp6 icmp6-type { neighbrsol neighbradv }"
same "an answer of the firewall" "refused refused" \
	"$(probe_udp client $SERVER4 53) $(probe_udp client $SERVER6 53)"
# and come in to a socket of the host
filter gateway <<<"block return out on wan0 proto udp
pass out on wan0 inet6 proto icmp6
block in on wan0
pass in on wan0 inet6 proto icmp6 icmp6-type { neighbrsol neighbradv }"
marks gateway inet prerouting 0x00010000
same "an answer of the firewall to a socket of the host" "refused refused" \
	"$(probe_udp gateway $SERVER4 53) $(probe_udp gateway $SERVER6 53)"
no_marks gateway inet

# ---- on a bridge, where br_netfilter calls netfilter's hooks
host left bridge right
wire left eth0 bridge port0
wire right eth0 bridge port1
on bridge ip link add br0 type bridge forward_delay 0
for port in port0 port1; do
	on bridge ip link set $port master br0
	on bridge ip link set $port up
done
address left eth0 192.0.2.1/24 2001:db8::1/64
address bridge br0 192.0.2.2/24 2001:db8::2/64
address right eth0 192.0.2.3/24 2001:db8::3/64
on bridge sysctl -q net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1 ||
	unable "this kernel has no br_netfilter"
await 5 on left ping -n -q -c 1 -W 1 2001:db8::3 || die "left does not reach right"
listens right
RIGHT="192.0.2.3 2001:db8::3"
check_bridged() { # HOST FAMILY HOOK
	local mark
	for mark in $SOME; do
		marks bridge "$2" "$3" "$mark"
		same "from $1, over the bridge, $2 $3 sets $mark" 0 "$(arriving "$1" "$RIGHT" right)"
	done
	no_marks bridge "$2"
}
filter bridge <<<"pass no state
block out on port1 proto udp
pass out on port1 proto udp tagged OURS
match in on port0 proto tcp tag OURS"
check_bridged left inet prerouting
check_bridged left inet forward
check_bridged left bridge forward
check_bridged bridge inet postrouting
filter bridge <<<"pass"
marks bridge inet forward 0x80000000
same "over the bridge, a rule that passes lets it by" 2 "$(arriving left "$RIGHT" right)"
verdict
