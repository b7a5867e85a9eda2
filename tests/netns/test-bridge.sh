# A transparent bridge of skipstep's own, on a host without addresses. Three hosts on the bridge
# form one network. Packets that cross are filtered inbound and outbound, with states, answers,
# translation and fragments:
#
#   client                  bridge                  server
#   eth0 --------------- port0  port1 --------------- eth0
#   192.168.100.2        port2                192.168.100.3
#   2001:db8:100::2        |                2001:db8:100::3
#                        eth0 192.168.100.4, 2001:db8:100::4
#                        third
# long: 50 s: stations age
. "$(dirname "$0")/lab.sh"

host client server third
router bridge
C4=192.168.100.2 S4=192.168.100.3 T4=192.168.100.4
C6=2001:db8:100::2 S6=2001:db8:100::3 T6=2001:db8:100::4
wire_to_ports client server third
mac() { # HOST
	link_address "$1" eth0
}
CLIENT=$(mac client) SERVER=$(mac server) THIRD=$(mac third)
promiscuous() { # prints the number of promiscuous ports
	on bridge ip -o link show | grep -c PROMISC
}
json() { # EXPRESSION about `bridges`
	pf bridge bridge show --json |
		python3 -c \
		'import json, sys; bridges = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}
port() { # NAME EXPRESSION about its `port`
	json "[$2 for b in bridges for port in b['ports'] if port['name'] == '$1'][0]"
}
behind() { # PORT - prints the stations behind a port
	json "' '.join(sorted(a['address'] for a in bridges[0]['addresses'] if a['port'] == '$1'))"
}

same "no way before there is a bridge" "no answer" "$(probe_ping client $S4)"
holds "three interfaces are joined" pf bridge bridge add port0 port1 port2
same "they hear what is for others" 3 "$(promiscuous)"

# While the filter is disabled, all frames cross.
await 5 on client ping -n -q -c 1 -W 1 $S6
await 5 on client ping -n -q -c 1 -W 1 $S4
same "IPv4 and ARP cross" passed "$(probe_ping client $S4)"
same "IPv6 and its neighbours" passed "$(probe_ping client $S6)"
same "to the third host" passed "$(probe_ping client $T4)"
same "the client is known behind its port" "$CLIENT" "$(behind port0)"
same "the server too" "$SERVER" "$(behind port1)"
same "and the third" "$THIRD" "$(behind port2)"

# A frame to a known station goes to its port only. A frame to an unknown station goes to all ports.
flooded=$(port port0 "port['flooded']") before=$(port port2 "port['out']['packets']")
on client ping -n -q -c 20 -i 0.01 $S4 >/dev/null
at_most 3 "hardly a frame is flooded" $(($(port port0 "port['flooded']") - flooded))
at_most 3 "the third host hears nothing of it" $(($(port port2 "port['out']['packets']") - before))
pf bridge bridge flush
same "a station that was forgotten is not known" "" "$(behind port1)"
on client ip neighbour replace 192.168.100.77 lladdr 00:00:5e:00:53:77 dev eth0
before=$(port port2 "port['out']['packets']")
on client ping -n -q -c 10 -i 0.01 -W 1 192.168.100.77 >/dev/null
at_least 10 "what nobody answers to is flooded" "$(($(port port0 "port['flooded']") - flooded))"
at_least 10 "the third host hears it" $(($(port port2 "port['out']['packets']") - before))

# pf's rules, inbound and outbound, with states.
echo_server server 7
echo_server third 7
web server 80 8080
filter bridge <<-END_OF_RULES
	set block-policy return
	set reassemble yes
	block log
	pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
	pass in on port0 proto tcp from $C4 to $S4 port { 80, 443 }
	pass out on port1 proto tcp from $C4 to $S4 port 80
	pass in on port0 inet6 proto tcp to port 80
	pass out on port1 inet6 proto tcp to port 80
	pass proto icmp from $C4
	pass proto udp to port 7
	pass in on port0 proto udp to port 9
END_OF_RULES
same "what rules pass crosses" passed "$(probe_web client $S4 80)"
same "over IPv6 too" passed "$(probe_web client $S6 80)"
same "UDP" passed "$(probe_udp client $S4 7)"
same "a ping" passed "$(probe_ping client $S4)"
same "the other way nothing begins" "no answer" "$(probe_ping server $C4)"
same "a state on the way in, and one on the way out" 2 \
	"$(pf bridge -ss | grep -c "tcp.*$S4:80 ")"
same "block return in: a segment to a port that is shut" refused "$(probe_web client $S4 8080)"
same "over IPv6 too" refused "$(probe_web client $S6 8080)"
same "block return out" refused "$(probe_web client $S4 443)"
same "block return in: a datagram" refused "$(probe_udp client $S4 10)"
same "over IPv6 too" refused "$(probe_udp client $S6 10)"
same "block return out: a datagram" refused "$(probe_udp client $S4 9)"
same "over IPv6 too" refused "$(probe_udp client $S6 9)"
stations="$(behind port0) $(behind port1)"
same "answers teach the bridge nothing false" "$CLIENT $SERVER" "$stations"

# Large transfers, in segments that the kernel has joined.
same "64 MB" "$(sha256sum <"$WORK/www/large")" \
	"$(on client curl -s --noproxy '*' --max-time 20 "http://$S4/large" | sha256sum)"

# Translation: frames keep their link addresses.
filter bridge <<-END_OF_RULES
	pass
	pass in on port0 proto tcp to $S4 port 81 rdr-to $S4 port 80
	match out on port1 proto tcp from $C4 to port 4242 nat-to 192.168.100.9
END_OF_RULES
witness server 4242
on client ip address add 192.168.100.9/32 dev eth0
same "rdr-to to another port" passed "$(probe_web client $S4 81)"
same "nat-to on the way out" 192.168.100.9 "$(seen_from client $S4 4242)"
same "a state for each that knows both ends" 2 "$(pf bridge -ss | grep -c '(')"

# VLANs: each has its own stations, and packets behind a tag are filtered.
# tagged ADDRESS [pieces] - sends a datagram to ADDRESS, with `pieces` in fragments; prints the
# number of its frames at the server
tagged() {
	start tagged server python3 "$HERE/frames.py" count eth0 0x0800 "$1"
	await 3 grep -q ready "$WORK/tagged.log"
	on client python3 "$HERE/frames.py" tagged eth0 "$SERVER" 10 $C4 "$@"
	sleep 0.3
	stop tagged
	tail -n 1 "$WORK/tagged.log"
}
filter bridge <<-END_OF_RULES
	set reassemble yes
	pass
	block in on port0 proto udp to 192.168.110.4
END_OF_RULES
same "tagged frames cross" 1 "$(tagged 192.168.110.3)"
same "the client is known in both" "[0, 10]" \
	"$(json "sorted(a['vlan'] for a in bridges[0]['addresses'] if a['address'] == '$CLIENT')")"
same "a rule about what is inside" 0 "$(tagged 192.168.110.4)"

# Fragments are reassembled, filtered, and fragmented again with their original lengths.
filter bridge <<-END_OF_RULES
	set reassemble yes
	pass
	block in proto icmp from $C4 to $T4
END_OF_RULES
large_ping() { # HOST ADDRESS
	on "$1" ping -n -q -c 2 -s 4000 -W 1 "$2" >/dev/null 2>&1 && echo passed || echo "no answer"
}
before=$(reason bridge fragment)
same "fragments without skipstepd" "no answer" "$(large_ping client $S4)"
at_least 1 "which are counted" $(($(reason bridge fragment) - before))
daemon bridge
same "fragments with it" passed "$(large_ping client $S4)"
same "over IPv6" passed "$(large_ping client $S6)"
same "in a VLAN" 2 "$(tagged 192.168.110.3 pieces)"
same "those that rules block" "no answer" "$(large_ping client $T4)"
same "from a station that is not known" passed "$(pf bridge bridge flush && large_ping client $S4)"

# Packets that exceed the MTU of the outbound link.
on bridge ip link set port1 mtu 1400
on client ping -n -q -c 3 -i 0.1 -s 1450 -M "do" -W 1 $S4 >/dev/null
same "too long for the other link" 3 "$(port port1 "port['dropped']['too-big']")"
on bridge ip link set port1 mtu 1500
same "long enough again" passed "$(probe_ping client $S4)"

# Rules for frames without IP. A station that must be known sends a frame right before.
speaker=''
frames() { # DESTINATION TYPE [SOURCE] - sends ten; prints the numbers at both hosts
	local host
	for host in server third; do
		start "frames-$host" "$host" python3 "$HERE/frames.py" count eth0 "$2"
		await 3 grep -q ready "$WORK/frames-$host.log"
	done
	[ "$1" != "$speaker" ] || speak
	on client python3 "$HERE/frames.py" send eth0 "$1" "$2" 10 ${3:+"$3"}
	sleep 0.2
	stop frames-server
	stop frames-third
	echo "$(tail -n 1 "$WORK/frames-server.log") $(tail -n 1 "$WORK/frames-third.log")"
}
same "what is no IP crosses" "10 0" "$(frames "$SERVER" 0x88b5)"
same "to everybody" "10 10" "$(frames ff:ff:ff:ff:ff:ff 0x88b5)"
same "what is for the next device alone does not" "0 0" "$(frames 01:80:c2:00:00:0e 0x88cc)"
same "nor what comes from a group" "0 0" "$(frames ff:ff:ff:ff:ff:ff 0x88b5 01:00:5e:00:00:01)"
same "which is counted" 10 "$(port port0 "port['dropped']['source']")"
pf bridge bridge blocknonip port2
same "a port that takes nothing but IP" "10 0" "$(frames ff:ff:ff:ff:ff:ff 0x88b5)"
same "which is counted" 10 "$(port port2 "port['dropped']['non-ip']")"
same "ARP and IP do cross" passed "$(on client ip neighbour flush dev eth0; probe_ping third $S4)"
pf bridge bridge passnonip port2

# The bridge forgets a silent station after the configured time.
QUIET=00:00:5e:00:53:77
quiet_is_known() {
	json "any(a['address'] == '$QUIET' for a in bridges[0]['addresses'])"
}
speak() {
	on third python3 "$HERE/frames.py" send eth0 "$CLIENT" 0x88b5 1 $QUIET
}
pf bridge bridge timeout port1 4
same "the time is that of the bridge" "4" "$(json "bridges[0]['timeout']")"
speaker=$QUIET
same "what is for it goes there" "0 10" "$(frames $QUIET 0x88b5)"
for _ in 1 2 3 4 5; do
	sleep 1
	speak
done
same "it is known while it speaks now and then" True "$(quiet_is_known)"
speaker=''
is_forgotten() {
	[ "$(quiet_is_known)" = False ]
}
holds "it is known no more" await 12 is_forgotten
same "what is for it goes everywhere" "10 10" "$(frames $QUIET 0x88b5)"
speak
pf bridge bridge timeout port1 0
sleep 5.1
same "without a timeout it is known for good" "0 10" "$(frames $QUIET 0x88b5)"
pf bridge bridge timeout port1 240
same "as long as others are" "(max cache: 4096, timeout: 240):" \
	"$(pf bridge bridge show | sed -n 's/.*Addresses //p')"

# the server's entry has expired, too: make the server known again
on server python3 "$HERE/frames.py" send eth0 "$CLIENT" 0x88b5 1
pf bridge bridge rule add pass in on port0 src "$CLIENT" dst "$SERVER" type 0x88b5
pf bridge bridge rule add block in/out on port0 type 0x88b5
same "a rule for frames" "0 0" "$(frames ff:ff:ff:ff:ff:ff 0x88b5)"
same "the first that matches decides" "10 0" "$(frames "$SERVER" 0x88b5)"
same "rules as they are written" "pass in on port0 src $CLIENT dst $SERVER type 0x88b5
block in/out on port0 type 0x88b5" "$(pf bridge bridge rule show port0)"
pf bridge bridge rule flush port0
pf bridge bridge rule add block out on port1 dst ff:ff:ff:ff:ff:ff arp
on third ip neighbour flush dev eth0
same "nobody is asked for his address by that port" "no answer" "$(probe_ping third $S4)"
pf bridge bridge rule flush port1
await 5 on third ping -n -q -c 1 -W 1 $S4
same "until the rule is gone" passed "$(probe_ping third $S4)"

# An address of the bridge's host on a port works on that port only.
on bridge ip address add 192.168.100.1/24 dev port0
await 3 on client ping -n -q -c 1 -W 1 192.168.100.1
same "the host has an address on a port" passed "$(probe_ping client 192.168.100.1)"
same "and does not answer by others" "no answer" "$(probe_ping server 192.168.100.1)"
same "what is not for it crosses" passed "$(probe_ping client $S4)"
on bridge ip address delete 192.168.100.1/24 dev port0

# A port disappears and comes back, while skipstepd runs.
on bridge ip link delete port2
is_away() {
	[ "$(port port2 "port['present']")" = False ]
}
await 3 is_away
holds "its interface is away" is_away
wire third eth0 bridge port2
on bridge ip link set port2 up
address third eth0 $T4/24 $T6/64
holds "it is a port again when it is back" await 5 on third ping -n -q -c 1 -W 1 $C4
same "and hears what is for others" 3 "$(promiscuous)"

# Without the filter, without a port, without the bridge.
pf bridge -q -d
filter_is_off=$(pf bridge -si | grep -c '^Status: Disabled')
same "the filter is off" 1 "$filter_is_off"
same "the bridge goes on" passed "$(probe_ping client $S4)"
pf bridge -q -f - <<<'block'
pf bridge -q -e
same "enabled again, the filter comes first" "no answer" "$(probe_ping client $S4)"
pf bridge -q -f - <<<'pass'
holds "a port is taken off" pf bridge bridge delete port2
same "nothing crosses from it" "no answer" "$(probe_ping third $C4)"
same "it hears what is for it alone" 2 "$(promiscuous)"
same "the others are joined still" passed "$(probe_ping client $S4)"
same "an interface that is none" "pfctl: em9: no such interface" "$(pf bridge bridge add em9 2>&1)"
same "one that is no port" "pfctl: port2: is not a port" "$(pf bridge bridge delete port2 2>&1)"
on bridge ip link add br0 type bridge
on bridge ip link set port2 master br0
same "a port of the kernel's bridge" \
	"pfctl: port2: belongs to a bridge, a bond or a VRF of the kernel" \
	"$(pf bridge bridge add port2 2>&1)"
daemon_stop bridge
pf bridge -q --remove
same "nothing is left of it" "0 no answer" "$(promiscuous) $(probe_ping client $S4)"
verdict
