# Answers on a bridge of either kind. A station that forges another station's address learns nothing
# about that station's connections, and completes no handshake in its name.
#
#   client                  bridge                  server
#   eth0 --------------- port0  port1 --------------- eth0
#   192.168.100.2        port2                192.168.100.3
#   2001:db8:100::2        |                2001:db8:100::3
#                        eth0 192.168.100.4, 2001:db8:100::4
#                        stranger
# long: two kinds of bridge, three rule sets each
. "$(dirname "$0")/lab.sh"

host client server stranger
router bridge
wire_to_ports client server stranger
C=192.168.100.2 S=192.168.100.3 X=192.168.100.4
C6=2001:db8:100::2 S6=2001:db8:100::3 X6=2001:db8:100::4
program=$HERE/answers.py
server=$(link_address server eth0)
web server 80

heard() { # prints the packets that arrived at the stranger since `listen`, each kind once
	last_words hear | sort -u | xargs -r -d '\n' printf '%s;' | sed 's/;$//'
}
listen() {
	start hear stranger python3 "$program" hear eth0
	await 5 grep -q ready "$WORK/hear.log" || die "the stranger does not listen"
}
connect() { # HOST ADDRESS PORT - makes a connection from that port of the host
	start connection "$1" python3 -c "import socket, time
s = socket.create_connection(('$2', 80), 5, ('', $3))
print('connected', flush=True)
time.sleep(60)"
	await 5 grep -q connected "$WORK/connection.log"
}
# challenged HOST TO PORT FROM - prints the packets that the stranger receives after it has sent,
# from address FROM, a SYN with the ports of a connection of HOST
challenged() {
	connect "$1" "$2" "$3" || { echo "no connection"; return; }
	listen
	on stranger python3 "$program" send eth0 "$server" tcp "$4" "$3" "$2" 80
	sleep 0.2 # a missing answer is no event to wait for
	heard
	stop connection
}

tests() { # KIND FIRST-PORT
	local kind=$1 port=$2 name proxy ends
	await 5 on client ping -n -q -c 1 -W 1 $S6
	await 5 on stranger ping -n -q -c 1 -W 1 $S6
	filter bridge <<-END_OF_RULES
		set state-policy floating
		block drop
		pass in on { port0 port2 } proto tcp to port 80
		pass out on port1 proto tcp to port 80
		pass proto icmp
		pass inet6 proto icmp6
	END_OF_RULES
	same "$kind: a challenge ACK is not for the stranger" "" "$(challenged client $S "$port" $C)"
	same "$kind: nor over IPv6" "" "$(challenged client $S6 $((port + 6)) $C6)"
	same "$kind: of his own connection he gets it" "tcp A from $S to $X" \
		"$(challenged stranger $S "$port" $X)"
	same "$kind: of his own over IPv6" "tcp A from $S6 to $X6" "$(challenged stranger $S6 $((port + 6)) $X6)"

	for proxy in "pass in proto tcp to port 80 synproxy state" \
		"set syncookies always
		pass in proto tcp to port 80"; do
		filter bridge <<-END_OF_RULES
			$proxy
			pass out
			pass proto icmp
			pass inet6 proto icmp6
		END_OF_RULES
		name="$kind, $(head -n 1 <<<"$proxy")"
		for ends in "$C $S" "$C6 $S6"; do
			# shellcheck disable=SC2086
			set -- $ends
			same "$name: no handshake in the client's name" "no SYN|ACK" \
				"$(on stranger python3 "$program" ack eth0 "$server" "$1" 4002 "$2" 80)"
		done
		same "$name: connections work" passed "$(probe_web client $S 80)"
		same "$name: connections work over IPv6" passed "$(probe_web client $S6 80)"
	done
}

holds "a bridge of skipstep's own" pf bridge bridge add port0 port1 port2
tests "own bridge" 4000
pf bridge -q --remove
on bridge ip link add br0 type bridge
for port in port0 port1 port2; do
	on bridge ip link set $port master br0
done
on bridge ip link set br0 up
tests "kernel's bridge" 5000 # other ports, because the first ones expect late segments
verdict
