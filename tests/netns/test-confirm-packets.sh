# 10,000 packets a second while rules are loaded on trial and the timer goes back: each packet is
# judged by one whole rule set. A packet of the first source passes only by the first rule set, and
# one of the second source only by the second. Rules, tables and anchors all take part.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
on client ip address add 192.168.100.3/24 dev eth0

# rules ADDRESS - prints rules that pass datagrams from one address, by a table and an anchor
rules() {
	printf '%s\n' "table <clients> { $1 }" "block in on lan0 proto udp" \
		"anchor one in on lan0 {" "pass in quick proto udp from <clients> to port 4000 no state" "}" \
		"pass out no state"
	seq -f "block in proto udp to port %.0f" 10001 10300
}
rules 192.168.100.2 >"$WORK/first"
rules 192.168.100.3 >"$WORK/second"
pf gateway -q -ef "$WORK/first" || die "the rules were not loaded"

cat >"$WORK/receive.py" <<'END_OF_PROGRAM'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SO_RCVBUFFORCE = 33
s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
s.bind(("", 4000))
s.settimeout(1.5)
print("ready", flush=True)
got = []
try:
    while True:
        got.append(int(s.recv(64)))
except TimeoutError:
    pass
# the source of packet N is the first one if N is even
sent = int(sys.argv[1])
phases = []			# [source, first packet, last packet, packets received]
for number in sorted(got):
    source = number % 2
    if not phases or phases[-1][0] != source:
        phases.append([source, number, number, 0])
    phases[-1][2] = number
    phases[-1][3] += 1
print("phases", " ".join(str(source) for source, *_ in phases))
print("missing", sum((last - first) // 2 + 1 - count for _, first, last, count in phases))
# between two phases at most a few packets are in flight
gaps = [after[1] - before[2] for before, after in zip(phases, phases[1:])]
print("gap", max(gaps, default=0))
print("packets", len(got), "of", sent, flush=True)
END_OF_PROGRAM
cat >"$WORK/send.py" <<'END_OF_PROGRAM'
import socket, sys, time
rate, seconds, target = 10000, float(sys.argv[1]), sys.argv[2]
sockets = []
for address in "192.168.100.2", "192.168.100.3":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 0))
    s.connect((target, 4000))
    sockets.append(s)
begin = time.monotonic()
number = 0
while (now := time.monotonic() - begin) < seconds:
    while number < now * rate:
        sockets[number % 2].send(b"%d" % number)
        number += 1
    time.sleep(0.0005)
print(number)
END_OF_PROGRAM
start receive server python3 "$WORK/receive.py" 0
await 3 grep -q ready "$WORK/receive.log" || die "the receiver does not start"
start send client python3 "$WORK/send.py" 5 "$SERVER4"
sleep 1
pf gateway -q -f "$WORK/second" --confirm 2 || die "the rules were not loaded"
wait "${PROCESSES[send]}"
sent=$(cat "$WORK/send.log")
wait "${PROCESSES[receive]}"
unset "PROCESSES[send]" "PROCESSES[receive]"
at_least 40000 "packets sent in 5 s" "$sent"
value() {
	awk -v name="$1" '$1 == name { $1 = ""; print substr($0, 2) }' "$WORK/receive.log"
}
same "sources that passed, one after the other" "0 1 0" "$(value phases)"
same "packets that passed without their rule set, or were lost" 0 "$(value missing)"
at_most 40 "packets between two rule sets" "$(value gap)"
verdict
