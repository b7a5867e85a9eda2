# divert-packet: a program receives packets in both directions and families. It drops a packet, or
# writes it back, changed or not. Without a program, or without skipstepd, the packets are dropped
# and counted.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53
web server 80
program() {
	start "divert-$1" gateway python3 "$ROOT/examples/divert.py" -p "${PINS[gateway]##*/}" "$@"
	await 5 grep -q ready "$WORK/divert-$1.log" ||
		die "no program: $(cat "$WORK/divert-$1.log")"
}
# diverted NAME - prints a counter from the JSON form of -si
diverted() {
	pf gateway --json -si | python3 \
		-c 'import json, sys; print(json.load(sys.stdin)["divert"][sys.argv[1]])' "$1"
}
# counted NAME N - true if skipstepd has reported a counter of at least N
counted() {
	[ "$(diverted "$1")" -ge "$2" ]
}

filter gateway <<'END_OF_RULES'
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0
pass out on wan0
pass in on lan0 proto udp to port 53 divert-packet port 700
pass out on wan0 proto udp to port 53 divert-packet port 701
pass out on wan0 proto tcp to port 80 divert-packet port 702
pass in on lan0 proto icmp divert-packet port 703
END_OF_RULES

same "no daemon" "no answer" "$(probe_udp client "$SERVER4" 53)"
at_least 1 "counted as undeliverable" "$(diverted lost)"
daemon gateway
lost=$(diverted lost)
await 5 test -S "/run/skipstep/${PINS[gateway]##*/}/divert/703" || die "no sockets"
same "no program" "no answer" "$(probe_udp client "$SERVER4" 53)"
holds "counted: there is no program" await 5 counted no_program 1

program 700
program 701
program 702
program 703
same "UDP through a program on either side" passed "$(probe_udp client "$SERVER4" 53)"
same "IPv6" passed "$(probe_udp client "$SERVER6" 53)"
same "ICMP in one direction" passed "$(probe_ping client "$SERVER4")"
same "the programs know where packets were" "pass in on lan0 $CLIENT4 > $SERVER4
pass in on lan0 $CLIENT6 > $SERVER6
pass out on lan0 $SERVER4 > $CLIENT4
pass out on lan0 $SERVER6 > $CLIENT6" "$(sed -n 's/ [0-9]*$//p' "$WORK/divert-700.log" | sort -u)"
same "on the other side too" "pass in on wan0 $SERVER4 > $CLIENT4
pass in on wan0 $SERVER6 > $CLIENT6
pass out on wan0 $CLIENT4 > $SERVER4
pass out on wan0 $CLIENT6 > $SERVER6" "$(sed -n 's/ [0-9]*$//p' "$WORK/divert-701.log" | sort -u)"
holds "counted: delivered" await 5 counted delivered 8
holds "counted: returned" await 5 counted returned 8

# GSO packets arrive as segments of the wire's size
PATIENCE=5
same "TCP, IPv4" passed "$(probe_web client "$SERVER4" 80)"
same "TCP, IPv6" passed "$(probe_web client "$SERVER6" 80)"
same "no packet is longer than the link" 1500 \
	"$(awk '$NF + 0 > max { max = $NF + 0 } END { print max }' "$WORK/divert-702.log")"
on client curl --silent --noproxy '*' --max-time 20 "http://$SERVER4/large" |
	cmp - "$WORK/www/large"
same "64 MB are what they were" "0 0" "${PIPESTATUS[*]}"

# a program that drops packets, and one that changes them
says() {
	printf '%s\n' "$1" | on client timeout 3 nc -u -W 1 "$SERVER4" 53
}
stop divert-700
program 700 secret
same "what has the word" "" "$(says "a secret")"
same "what has not" "nothing" "$(says nothing)"
stop divert-700
program 700 black white
same "changed on its way there, with the right checksum" "white" "$(says black)"
same "a second program is sent away" "" "$(on gateway python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.settimeout(5)
print(s.recv(100).decode())' "/run/skipstep/${PINS[gateway]##*/}/divert/700")"

# garbage from a program is not sent
stop divert-703
on gateway python3 -c '
import socket, sys, time
while True:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    try:
        s.send(b"garbage")
        s.send(b"\1" * 500)
    except OSError:
        continue # the program before it is still there
    time.sleep(0.5)
    break' "/run/skipstep/${PINS[gateway]##*/}/divert/703"
holds "garbage is counted" await 5 counted malformed 2

# skipstepd ends: no packet passes unseen; it comes back, and the program connects again
daemon_stop gateway KILL
same "the daemon was killed" "no answer" "$(probe_udp client "$SERVER4" 53)"
at_least $((lost + 1)) "counted as undeliverable" "$(diverted lost)"
same "what no program is to see" passed "$(probe_ping client "$SERVER6")"
daemon gateway
program 701
program 700
same "the daemon is back" passed "$(probe_udp client "$SERVER4" 53)"
verdict
