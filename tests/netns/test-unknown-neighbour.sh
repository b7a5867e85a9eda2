# The first packet to a next hop whose link address is unknown. The rule's next hop receives it
# once, and the routing table's gateway on the same network does not receive it. The same holds for
# answers of the filter.
#
#   client 10.8.1.2 ---- lan0 gateway wan0 ---- lan ---- first 10.8.2.1, the default route
#                             dmz0                 \---- second 10.8.2.2
#                               |
#                      collector 10.8.3.2
. "$(dirname "$0")/lab.sh"

host client collector lan first second
router gateway
wire client eth0 gateway lan0
wire collector eth0 gateway dmz0
on lan ip link add br0 type bridge
on lan ip link set br0 up
for name in gateway first second; do
	case $name in gateway) port=wan0 ;; *) port=eth0 ;; esac
	wire $name $port lan port-$name
	on lan ip link set port-$name master br0
	on lan ip link set port-$name up
done
address client eth0 10.8.1.2/24 2001:db8:1::2/64
address gateway lan0 10.8.1.1/24 2001:db8:1::1/64
address gateway wan0 10.8.2.9/24 2001:db8:2::9/64
address gateway dmz0 10.8.3.1/24 2001:db8:3::1/64
address first eth0 10.8.2.1/24 2001:db8:2::1/64
address second eth0 10.8.2.2/24 2001:db8:2::2/64
address collector eth0 10.8.3.2/24 2001:db8:3::2/64
on client ip route add default via 10.8.1.1
on client ip -6 route add default via 2001:db8:1::1
on gateway ip route add default via 10.8.2.1
on gateway ip -6 route add default via 2001:db8:2::1
on gateway ip route add 198.51.100.0/24 via 10.8.2.2
on gateway ip -6 route add 2001:db8:51::/64 via 2001:db8:2::2
for name in client first second collector; do
	on $name sh -c 'echo 0 >/proc/sys/net/ipv4/conf/eth0/rp_filter'
done

# knows HOST IFACE NEIGHBOUR IFACE ADDRESS... - makes a static neighbour entry
knows() {
	local host=$1 interface=$2 link address
	link=$(link_address "$3" "$4")
	shift 4
	for address; do
		on "$host" ip neighbour replace "$address" lladdr "$link" dev "$interface" \
			nud permanent || die "$host does not take $address"
	done
}
knows gateway wan0 first eth0 10.8.2.1 2001:db8:2::1
knows first eth0 gateway wan0 10.8.2.9 2001:db8:2::9
knows second eth0 gateway wan0 10.8.2.9 2001:db8:2::9
knows client eth0 gateway lan0 10.8.1.1 2001:db8:1::1

# forget ADDRESS IFACE - removes the gateway's neighbour entry
forget() {
	on gateway ip neighbour flush to "$1" dev "$2" || die "$1 is not forgotten"
	same "neighbours $1 that the gateway knows" "" \
		"$(on gateway ip neighbour show to "$1" dev "$2" nud reachable nud stale)"
}

# listen NAME HOST FILTER - records the matching frames to this host in $WORK/NAME.log
listen() {
	start "$1" "$2" tcpdump --immediate-mode -p -n -l -e -i eth0 -Q in \
		"ether dst $(link_address "$2" eth0) and ($3)"
	await 5 grep -q "listening on" "$WORK/$1.log" || die "$2 does not listen"
}
# frames NAME - prints the number of recorded frames
frames() {
	grep -c ethertype "$WORK/$1.log"
}
# say HOST TO PORT [FROM] - sends a datagram
say() {
	on "$1" python3 - "${@:2}" <<'END_OF_PROGRAM'
import socket, sys
to, port = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM)
if len(sys.argv) > 3:
    s.bind((sys.argv[3], port))
s.sendto(b"the first", (to, port))
END_OF_PROGRAM
}
# first_packet NAME NEIGHBOUR IFACE HOST FILTER COMMAND... - checks that HOST alone receives the
# packet that the command causes, although the gateway does not know NEIGHBOUR. A second packet
# follows by the default route (port 7). When it arrives, `first` has received all earlier packets.
first_packet() {
	local name=$1 right=$4 filter=$5 neighbour=$2 interface=$3
	shift 5
	forget "$neighbour" "$interface"
	listen right "$right" "$filter"
	[ "$right" = first ] || listen wrong first "$filter or udp port 7"
	"$@"
	holds "$name: $right gets the packet" await 5 grep -q ethertype "$WORK/right.log"
	case $neighbour in *:*) say gateway 2001:db8:80::80 7 ;; *) say gateway 192.0.2.80 7 ;; esac
	await 5 grep -q '\.7: UDP' "$WORK/wrong.log" || die "no default route"
	same "$name: frames of it that $right gets" 1 "$(frames right)"
	same "$name: frames of it that the default gateway gets" 0 $(($(frames wrong) - 1))
	stop right
	stop wrong
}

rules() {
	pf gateway -q -F states 2>/dev/null
	filter gateway <<<"pass
$1"
}
rules "pass out on wan0 inet proto udp to port 1001 route-to 10.8.2.2
pass out on wan0 inet6 proto udp to port 1001 route-to 2001:db8:2::2
pass in on lan0 inet proto udp to port 1002 route-to 10.8.2.2
pass in on lan0 inet6 proto udp to port 1002 route-to 2001:db8:2::2
pass out on wan0 inet proto udp to port 1003 dup-to 10.8.3.2
pass out on wan0 inet6 proto udp to port 1003 dup-to 2001:db8:3::2
pass in on lan0 inet proto udp to port 1004 dup-to 10.8.3.2
pass in on lan0 inet6 proto udp to port 1004 dup-to 2001:db8:3::2
pass in on wan0 inet proto icmp reply-to 10.8.2.2
pass in on wan0 inet6 proto icmp6 icmp6-type echoreq reply-to 2001:db8:2::2
pass out on wan0 inet proto udp to port 1005 rdr-to 198.51.100.7
pass out on wan0 inet6 proto udp to port 1005 rdr-to 2001:db8:51::7
block return out on wan0 proto udp to port 1006"

first_packet "route-to, out, from here" 10.8.2.2 wan0 second "udp port 1001" \
	say gateway 192.0.2.80 1001
first_packet "route-to, out, from here, IPv6" 2001:db8:2::2 wan0 second "udp port 1001" \
	say gateway 2001:db8:80::80 1001
first_packet "route-to, out, forwarded" 10.8.2.2 wan0 second "udp port 1001" \
	say client 192.0.2.80 1001
first_packet "route-to, out, forwarded, IPv6" 2001:db8:2::2 wan0 second "udp port 1001" \
	say client 2001:db8:80::80 1001
first_packet "route-to, in" 10.8.2.2 wan0 second "udp port 1002" \
	say client 192.0.2.80 1002
first_packet "route-to, in, IPv6" 2001:db8:2::2 wan0 second "udp port 1002" \
	say client 2001:db8:80::80 1002
first_packet "another destination, out" 10.8.2.2 wan0 second "udp port 1005" \
	say gateway 192.0.2.80 1005
first_packet "another destination, out, IPv6" 2001:db8:2::2 wan0 second "udp port 1005" \
	say gateway 2001:db8:80::80 1005

# the collector gets the copy; the packet itself goes to the default gateway
for hook in 1003 1004; do
	for to in 192.0.2.80 2001:db8:80::80; do
		case $to in *:*) neighbour=2001:db8:3::2 ;; *) neighbour=10.8.3.2 ;; esac
		forget $neighbour dmz0
		listen copy collector "udp port $hook"
		listen original first "udp port $hook"
		say client $to $hook
		holds "dup-to, port $hook, $to: the copy" await 5 grep -q ethertype "$WORK/copy.log"
		holds "dup-to, port $hook, $to: the packet" await 5 grep -q ethertype \
			"$WORK/original.log"
		say client $to $hook
		await 5 grep -q "UDP.*UDP" <(tr '\n' ' ' <"$WORK/copy.log")
		await 5 grep -q "UDP.*UDP" <(tr '\n' ' ' <"$WORK/original.log")
		same "dup-to, port $hook, $to: copies of two" 2 "$(frames copy)"
		same "dup-to, port $hook, $to: packets of two" 2 "$(frames original)"
		stop copy
		stop original
	done
done

# reply-to: the gateway's own answer to an address beyond the second gateway
on second ip address add 203.0.113.9/32 dev lo
on second ip address add 2001:db8:113::9/128 dev lo nodad
ask() {
	on second ping -n -q -c 1 -W 5 -I "$1" "$2" >/dev/null
}
on second ip route add 10.8.1.0/24 via 10.8.2.9
first_packet "reply-to" 10.8.2.2 wan0 second "icmp[icmptype] = icmp-echoreply" \
	ask 203.0.113.9 10.8.2.9
first_packet "reply-to, IPv6" 2001:db8:2::2 wan0 second "icmp6 and ip6[40] = 129" \
	ask 2001:db8:113::9 2001:db8:2::9

# an answer of the filter where the refused packet leaves
first_packet "the answer to a refused packet" 10.8.1.2 lan0 client "icmp[icmptype] = icmp-unreach" \
	say client 192.0.2.80 1006
first_packet "the answer to a refused packet, IPv6" 2001:db8:1::2 lan0 client \
	"icmp6 and ip6[40] = 1" say client 2001:db8:80::80 1006
verdict
