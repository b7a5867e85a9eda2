# The filter's answers use the route to their destination. Neither the interface of the packet nor
# the station that sent it matters.
#
#   client 10.8.1.2 ---- lan0 gateway wan0 ---- 10.8.2.2 server
#                             dmz0
#                               |
#                         stranger 10.8.3.2
# long: 27 s
. "$(dirname "$0")/lab.sh"

host client server stranger
router gateway
wire client eth0 gateway lan0
wire server eth0 gateway wan0
wire stranger eth0 gateway dmz0
number=1
for name in client server stranger; do
	port=$([ $number = 1 ] && echo lan0 || { [ $number = 2 ] && echo wan0 || echo dmz0; })
	address $name eth0 10.8.$number.2/24 2001:db8:$number::2/64
	address gateway "$port" 10.8.$number.1/24 2001:db8:$number::1/64
	on $name ip route add default via 10.8.$number.1
	on $name ip -6 route add default via 2001:db8:$number::1
	# without rp_filter, so that the filter alone decides about forged sources
	on gateway sh -c "echo 0 >/proc/sys/net/ipv4/conf/$port/rp_filter"
	await 5 on $name ping -n -q -c 1 -W 1 2001:db8:$number::1
	number=$((number + 1))
done
on gateway sh -c 'echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter'
C=10.8.1.2 S=10.8.2.2 X=10.8.3.2
C6=2001:db8:1::2 S6=2001:db8:2::2 X6=2001:db8:3::2
program=$HERE/answers.py
dmz0=$(link_address gateway dmz0)
eth0=$(link_address stranger eth0)

# listen HOST... - records the TCP segments and ICMP errors that arrive at the hosts
listen() {
	local name
	for name; do
		start "hear-$name" "$name" python3 "$program" hear eth0
		await 5 grep -q ready "$WORK/hear-$name.log" || die "$name does not listen"
	done
}
# heard HOST - ends the recording and prints its packets, each kind once
heard() {
	last_words "hear-$1" | sort -u | xargs -r -d '\n' printf '%s;' | sed 's/;$//'
}
forge() { # PROTOCOL FROM FROM-PORT TO TO-PORT [COUNT] - sends from the stranger
	on stranger python3 "$program" send eth0 "${BESIDE:-$dmz0}" "$@" || die "nothing was sent"
}
# answered NAME TO-STRANGER TO-CLIENT PROTOCOL FROM TO [TO-PORT] - checks the receivers of answers
# to a forged packet
answered() {
	listen stranger client
	forge "$4" "$5" "${FROM_PORT:-4000}" "$6" "${7:-81}"
	sleep 0.2 # a missing answer is no event to wait for
	same "$1: the stranger hears" "$2" "$(heard stranger)"
	same "$1: the client hears" "$3" "$(heard client)"
}

# ---- block return -------------------------------------------------------------------------------
rules="set block-policy return
block return
pass in on lan0 proto tcp to port 80
pass out on wan0 proto tcp to port 80
pass inet6 proto icmp6 icmp6-type { neighbrsol neighbradv }"
filter gateway <<<"$rules"
answered "RST, the stranger's own address" "tcp RA from $S to $X" "" tcp $X $S
answered "RST, the client's address" "" "tcp RA from $S to $C" tcp $C $S
answered "RST, IPv6, own address" "tcp RA from $S6 to $X6" "" tcp $X6 $S6
answered "RST, IPv6, the client's address" "" "tcp RA from $S6 to $C6" tcp $C6 $S6
answered "ICMP, own address" "icmp 3 3 from 10.8.3.1 to $X" "" udp $X $S
answered "ICMP, the client's address" "" "icmp 3 3 from 10.8.1.1 to $C" udp $C $S
answered "ICMPv6, own address" "icmp 1 4 from 2001:db8:3::1 to $X6" "" udp $X6 $S6
answered "ICMPv6, the client's address" "" "icmp 1 4 from 2001:db8:1::1 to $C6" udp $C6 $S6
# source addresses that no other host has, and one without a route
listen stranger client
for nobody in 0.1.2.3 127.0.0.1 224.0.0.9 240.0.0.1 255.255.255.255 10.8.3.255 10.8.1.255 \
	10.8.3.1 10.8.2.1 192.0.2.1 ::1 ff02::1 2001:db8:3::1 2001:db8:2::1 2001:db8:99::1; do
	case $nobody in *:*) to=$S6 ;; *) to=$S ;; esac
	forge tcp $nobody 4000 $to 81
	forge udp $nobody 4000 $to 81
done
sleep 0.2
same "nobody is answered: the stranger hears" "" "$(heard stranger)"
same "nobody is answered: the client hears" "" "$(heard client)"

# ---- frames for another station ------------------------------------------------------------------
on gateway ip link set dmz0 promisc on
BESIDE=02:00:5e:00:53:77
answered "a frame for another station, tcp" "" "" tcp $X $S
answered "a frame for another station, udp" "" "" udp $X $S
answered "a frame for another station, forged" "" "" tcp $C $S
filter gateway <<<"pass in on dmz0 proto tcp route-to $C
pass out"
answered "route-to does not take frames for another station" "" "" tcp $X $S
unset BESIDE
on gateway ip link set dmz0 promisc off

# ---- a connection of others ----------------------------------------------------------------------
filter gateway <<<"block drop
pass in on lan0 proto tcp to port 80
pass out on wan0 proto tcp to port 80
pass inet6 proto icmp6 icmp6-type { neighbrsol neighbradv }"
web server 80
connect() { # ADDRESS PORT - a connection from that port of the client
	FROM_PORT=$2
	start connection client python3 -c "import socket, time
s = socket.create_connection(('$1', 80), 5, ('', $2))
print('connected', flush=True)
time.sleep(60)"
	await 5 grep -q connected "$WORK/connection.log" || die "no connection"
}
connect $S 4000
answered "challenge ACK" "" "tcp A from $S to $C" tcp $C $S 80
stop connection
connect $S6 4006
answered "challenge ACK, IPv6" "" "tcp A from $S6 to $C6" tcp $C6 $S6 80
stop connection
unset FROM_PORT

# ---- handshakes that the filter holds ------------------------------------------------------------
handshake() { # ADDRESS-FROM ADDRESS-TO
	on stranger python3 "$program" ack eth0 "$dmz0" "$1" 4001 "$2" 80
}
for proxy in "pass in proto tcp to port 80 synproxy state" \
	"set syncookies always
pass in proto tcp to port 80"; do
	filter gateway <<<"set state-policy floating
$proxy
pass out
pass inet6 proto icmp6"
	for ends in "$C $S" "$C6 $S6"; do
		# shellcheck disable=SC2086
		set -- $ends
		listen client
		same "a forged handshake, ${proxy%%tcp*}" "no SYN|ACK" "$(handshake "$1" "$2")"
		same "the client gets the SYN|ACK" "tcp SA from $2 to $1" "$(heard client)"
	done
	pf gateway -q -F states
	same "a handshake of the stranger's own" acknowledged "$(handshake $X $S)"
	same "a handshake of the stranger's own, IPv6" acknowledged "$(handshake $X6 $S6)"
	PATIENCE=3
	same "connections work" "passed" "$(probe_web client $S 80)"
	same "connections work, IPv6" "passed" "$(probe_web client $S6 80)"
done

# ---- how many ------------------------------------------------------------------------------------
filter gateway <<<"block return"
listen stranger
forge udp $X 4000 $S 81 2000
sleep 0.5
heard stranger >/dev/null
errors=$(grep -c '^icmp' "$WORK/hear-stranger.log")
at_least 50 "ICMP errors of 2,000 packets" "$errors"
at_most 300 "which a rate bounds" "$errors"

# ---- a host that does not forward ----------------------------------------------------------------
on gateway sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding'
filter gateway <<<"$rules"
sleep 1 # a new second for ICMP errors
answered "a host: RST" "tcp RA from 10.8.3.1 to $X" "" tcp $X 10.8.3.1
answered "a host: RST, the client's address" "" "tcp RA from 10.8.3.1 to $C" tcp $C 10.8.3.1
answered "a host: RST, IPv6" "tcp RA from 2001:db8:3::1 to $X6" "" tcp $X6 2001:db8:3::1
answered "a host: ICMP" "icmp 3 3 from 10.8.3.1 to $X" "" udp $X 10.8.3.1
verdict
