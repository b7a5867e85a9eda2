# `set xdp on` with the ports of a bridge of skipstep's own. Packets of states that are eligible for
# the fast path cross the bridge in XDP, with the same counters as on tcx. All other packets, and
# packets from which the bridge must learn, take the slow path.
#
#   client                  bridge                  server
#   eth0 --------------- port0  port1 --------------- eth0
#   192.168.100.2        port2                192.168.100.3
#                          |
#                        eth0 192.168.100.4
#                        third
# long: waits until stations are forgotten
. "$(dirname "$0")/short-way.sh"
MIDDLE=bridge

host client server third bridge
C4=192.168.100.2 S4=192.168.100.3 T4=192.168.100.4 QUIET4=192.168.100.77
C6=2001:db8:100::2 S6=2001:db8:100::3
number=0
for name in client server third; do
	wire "$name" eth0 bridge "port$number"
	on bridge sh -c "echo 1 >/proc/sys/net/ipv6/conf/port$number/disable_ipv6"
	on bridge ip link set "port$number" up
	number=$((number + 1))
done
# hosts must not send packets unasked, because the bridge would learn from them
on third sh -c 'echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6'
address client eth0 $C4/24 $C6/64
address server eth0 $S4/24 $S6/64
address third eth0 $T4/24
between_drivers
offloads third eth0 1 gro
offloads third eth0 0 tx-checksum
mac() { # HOST
	link_address "$1" eth0
}
CLIENT=$(mac client) SERVER=$(mac server) THIRD=$(mac third) QUIET=00:00:5e:00:53:77
knows() { # HOST ADDRESS LINK-ADDRESS
	on "$1" ip neighbour replace "$2" lladdr "$3" nud permanent dev eth0
}
knows client $S4 "$SERVER"
knows client $S6 "$SERVER"
knows client $T4 "$THIRD"
knows client $QUIET4 $QUIET
knows server $C4 "$CLIENT"
knows server 192.168.100.9 "$CLIENT"
knows server $C6 "$CLIENT"
knows server $T4 "$THIRD"
knows third $C4 "$CLIENT"
knows third $S4 "$SERVER"

json() { # EXPRESSION about `bridges`
	pf bridge bridge show --json |
		python3 -c \
		'import json, sys; bridges = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}
port() { # NAME EXPRESSION about its `port`
	json "[$2 for b in bridges for port in b['ports'] if port['name'] == '$1'][0]"
}
station() { # LINK-ADDRESS EXPRESSION about its `address`
	json "[$2 for b in bridges for address in b['addresses'] if address['address'] == '$1']"
}
came() { # COMMAND... - prints the number of answers that it reports
	"$@" | cut -d' ' -f1
}
send() { # ADDRESS PORT COUNT - sends datagrams from the client that nobody answers
	on client python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4008))
for _ in range(int(sys.argv[3])):
    s.sendto(b"." * 100, (sys.argv[1], int(sys.argv[2])))' "$@"
}

holds "three interfaces are joined" pf bridge bridge add port0 port1 port2
one_by_one_server server $S4 $S6
one_by_one_server client $C4
rules() { # INTERFACES
	filter bridge <<-END_OF_RULES
		set xdp on $1
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto udp to port { 7, 1234 } label "echo"
		pass in on port0 proto udp to port 9 label "half a way"
		block out on port1 proto udp to port 9 label "shut"
		pass inet proto icmp
	END_OF_RULES
}
hook() { # INTERFACE
	pf bridge -sI -vv -i "$1" | sed -n 's/^[[:space:]]*Hook: *//p'
}
counters() { # prints all counters of pf for the packets of a run
	pf bridge -ss -v | grep -o '[0-9]*:[0-9]* pkts, [0-9]*:[0-9]* bytes' | sort
	pf bridge -s labels | awk '$3 > 15 { $2 = ""; print }'
	for interface in port0 port1; do
		pf bridge -sI -vv -i "$interface" | grep -E '4/(Pass|Block)' | tr -s ' \t' ' '
	done
}
counted_by_ports() {
	local name
	for name in port0 port1; do
		port $name \
			"[port[way][what] for way in ('in', 'out') for what in ('packets', 'bytes')]"
	done
}
clear() {
	pf bridge -q -F states
	pf bridge -q -F info
	pf bridge -q -z
}

# The same packets on tcx and in XDP get the same counters from pf. The bridge's counters may also
# have other packets of the hosts.
for interfaces in none '{ port0, port1 }'; do
	rules "$interfaces"
	came ask $S4 20 >/dev/null
	clear
	before=$(by XDP)
	counted_by_ports >"$WORK/ports"
	same "on $interfaces: every datagram comes and goes, as long-lived as before" "1000 64" \
		"$(ask $S4 1000)"
	same "on $interfaces: over IPv6 too" "1000 64" "$(ask $S6 1000)"
	send $S4 9 300
	after=$(by XDP)
	counters >"$WORK/counters-$interfaces"
	crossed=$((after - before))
	if [ "$interfaces" = none ]; then
		same "by tc it says" tc "$(hook port0)"
		same "no packet crosses in XDP" 0 $crossed
	else
		same "by XDP it says" "XDP and tc" "$(hook port0)"
		at_least 3600 "of 4000 packets crossed in XDP" $crossed
	fi
	# 142 bytes a datagram over IPv4, 162 over IPv6; the bridge counts the 300 on their way out,
	# pf drops them
	counted_by_ports >>"$WORK/ports"
	python3 - "$WORK/ports" >"$WORK/counted" <<-'END_OF_PROGRAM'
		import ast, sys
		lines = [ast.literal_eval(line) for line in open(sys.argv[1])]
		for old, new, asked in zip(lines, lines[2:], [(300, 0), (0, 300)]):
		    for way in 0, 1:
		        packets, octets = [new[2 * way + n] - old[2 * way + n] for n in (0, 1)]
		        least = 2000 + asked[way]
		        print(least <= packets <= least + 20, 0 <= octets - (304000 + 142 * asked[way]) <= 2000)
	END_OF_PROGRAM
	same "on $interfaces: the bridge has counted packets and bytes at both ports" \
		"4 True True" \
		"$(sort "$WORK/counted" | uniq -c | tr -s ' ' | sed 's/^ //')"
done
same "counters of states, rules and interfaces are the same" "$(cat "$WORK/counters-none")" \
	"$(cat "$WORK/counters-{ port0, port1 }")"
at_least 8 "lines of counters" "$(wc -l <"$WORK/counters-none")"

# Translation: the frame keeps its link addresses.
on client ip address add 192.168.100.9/32 dev eth0
for setting in none any; do
	filter bridge <<-END_OF_RULES
		set xdp on $setting
		block
		match in on port0 proto udp to $S4 port 77 rdr-to $S4 port 7 label "rdr"
		match out on port1 proto udp from $C4 to $S4 port 7 nat-to 192.168.100.9 label "nat"
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto udp to port 7 label "echo"
	END_OF_RULES
	clear
	before=$(by XDP)
	same "on $setting: translated on both sides" "500 64" "$(one_by_one client $S4 500 0 77)"
	crossed=$(($(by XDP) - before))
	[ $setting = none ] || at_least 900 "of 1000 packets crossed in XDP" $crossed
	counters >"$WORK/nat-$setting"
	pf bridge -ss | grep udp | sed 's/100\.9:[0-9]* (/100.9:PORT (/' |
		sort >>"$WORK/nat-$setting"
done
same "counted alike" "$(cat "$WORK/nat-none")" "$(cat "$WORK/nat-any")"

# XDP on one port only.
rules port0
clear
before=$(by XDP)
same "on port0 alone" 500 "$(came ask $S4 500)"
crossed=$(($(by XDP) - before))
at_least 450 "of the 500 that came in there crossed in XDP" $crossed
at_most 500 "and no others" $crossed

# Packets that cross in XDP keep their station's entry alive. Packets of another host renew the
# knowledge of the port to which packets leave.
start other third python3 "$HERE/one-by-one.py" ask $S4 800 0.005
same "for some seconds" 500 "$(came ask $S4 500 0.007)"
age=$(station "$CLIENT" "address['age']")
await 10 grep -q . "$WORK/other.log"
stop other
same "the client has been seen just now" True "$(python3 -c "print($age in ([0], [1]))")"

# The bridge forgets a station that is silent for too long. Then packets of a state are flooded,
# too.
rules any
# heard - sends 20 datagrams to the quiet station; prints the numbers that arrive at the server and
# at the third host, and the number that crossed in XDP
heard() {
	local host crossed before
	before=$(by XDP)
	for host in server third; do
		start "heard-$host" "$host" python3 "$HERE/frames.py" count eth0 0x0800 $QUIET4
		await 3 grep -q ready "$WORK/heard-$host.log"
	done
	send $QUIET4 1234 20
	sleep 0.2
	stop heard-server
	stop heard-third
	crossed=$(($(by XDP) - before))
	# the first packet may take tcx to learn about the device, and the others follow within a
	# second
	[ "$crossed" -lt 19 ] || crossed=XDP
	echo "$(tail -n 1 "$WORK/heard-server.log") $(tail -n 1 "$WORK/heard-third.log") $crossed"
}
quiet_speaks() {
	on third python3 "$HERE/frames.py" send eth0 "$CLIENT" 0x88b5 1 $QUIET
	came ask $S4 5 >/dev/null
	send $QUIET4 1234 2
}
quiet_speaks
same "to where it was heard, and in XDP" "0 20 XDP" "$(heard)"
pf bridge bridge timeout port1 2
sleep 4
same "to everybody" "20 20 0" "$(heard)"
pf bridge bridge timeout port0 240
quiet_speaks
same "to where it is heard again" "0 20 XDP" "$(heard)"

# A station that moves to another port is found there, also by packets of existing states.
knows client $T4 "$SERVER"
same "the server asks from where it is" 200 "$(came one_by_one server $C4 200)"
before=$(by XDP)
same "and is asked" 200 "$(came ask $S4 200)"
at_least 350 "in XDP" $(($(by XDP) - before))
on server ip link set eth0 down
on third ip link set eth0 down
on third ip link set eth0 address "$SERVER"
on third ip address replace $S4/24 dev eth0
on third ip link set eth0 up
knows third $C4 "$CLIENT"
stop "serve-$S4"
same "nothing has told of it yet" "['port1']" "$(station "$SERVER" "address['port']")"
before=$(by XDP)
same "it asks from where it is now" 200 "$(came one_by_one third $C4 200)"
same "where it is known" "['port2']" "$(station "$SERVER" "address['port']")"
one_by_one_server third $S4
same "and is asked" 200 "$(came ask $S4 200)"
at_least 700 "in XDP" $(($(by XDP) - before))
stop "serve-$S4"
on third ip link set eth0 down
on third ip address delete $S4/24 dev eth0
on third ip link set eth0 address "$THIRD"
on third ip link set eth0 up
on server ip link set eth0 up
for name in "$C4 $CLIENT" "192.168.100.9 $CLIENT" "$T4 $THIRD"; do
	# shellcheck disable=SC2086
	knows server $name
done
knows third $C4 "$CLIENT"
knows third $S4 "$SERVER"
one_by_one_server server $S4
await 3 on server ping -n -q -c 1 -W 1 $C4
same "and back" 200 "$(came ask $S4 200)"

# Packets that XDP leaves to tcx.
rules any
same "before" 20 "$(came ask $S4 20)"
pf bridge bridge rule add block out on port1 dst "$SERVER" type ip
same "a rule for frames, on the way out" 0 "$(came ask $S4 3)"
pf bridge bridge rule flush port1
same "that goes away" 20 "$(came ask $S4 20)"
pf bridge bridge rule add block in on port0 src "$CLIENT" type ip
same "one on the way in" 0 "$(came ask $S4 3)"
pf bridge bridge rule flush port0
same "that goes away" 20 "$(came ask $S4 20)"
before=$(port port1 "port['dropped']['too-big']")
on bridge ip link set port1 mtu 100
same "too long for the other link" 0 "$(came ask $S4 3)"
same "which is counted" 3 $(($(port port1 "port['dropped']['too-big']") - before))
on bridge ip link set port1 mtu 1500
same "long enough again" 20 "$(came ask $S4 20)"
on bridge tc qdisc add dev port1 root handle 1: htb default 1
on bridge tc class add dev port1 parent 1: classid 1:1 htb rate 100mbit
sleep 3
same "a queue on the way" 200 "$(came ask $S4 200)"
at_least 200 "packets that it has seen" \
	"$(on bridge tc -s qdisc show dev port1 | awk '/Sent/ { print $4; exit }')"
on bridge tc qdisc delete dev port1 root
filter bridge <<-END_OF_RULES
	set xdp on any
	set skip on port1
	block
	pass on port0 proto udp to port 7
END_OF_RULES
before=$(by XDP)
same "a port that is skipped" 100 "$(came ask $S4 100)"
same "none of it in XDP" 0 $(($(by XDP) - before))
rules any
for end in client server; do
	offloads "$end" eth0 1 tx-checksum
done
before=$(by XDP)
same "checksums that are to be made yet" 100 "$(came ask $S4 100)"
same "none of it in XDP" 0 $(($(by XDP) - before))
for end in client server; do
	offloads "$end" eth0 0 tx-checksum
done
pf bridge bridge delete port1
same "a port that is none any more" 0 "$(came ask $S4 3)"
pf bridge bridge add port0 port1
same "and is one again" 100 "$(came ask $S4 100)"
pf bridge -q -f - <<-END_OF_RULES
	set xdp on any
	block
END_OF_RULES
pf bridge -q -F states
same "states that are gone" 0 "$(came ask $S4 3)"

xdp_comes_and_goes $S4 64
rules any
pf bridge -q -d
same "the bridge goes on without the filter" 100 "$(came ask $S4 100)"
verdict
