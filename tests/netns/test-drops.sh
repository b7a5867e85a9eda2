# `pfctl drops` prints each dropped packet with its reason and rule, whether a rule logs it or not,
# on the slow path and on the fast path. skipstepd does not run until the end.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
# long: each kind of drop, on three ways
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
one_by_one_server server "$SERVER4"
lan=$(link_address gateway lan0)
owners=/run/skipstep/${PINS[gateway]##*/}/owners

cat >"$WORK/send.py" <<'END_OF_PROGRAM'
import socket, struct, sys
sys.path.insert(0, sys.argv[1])
from packets import datagram, ip4, segment, UDP
gateway, client, server, what, count = sys.argv[2:]
SYN, ACK = 2, 16
def syn(port, **more):
    return segment(client, 5000, server, port, SYN, 1, 0, **more)
kinds = {
    "blocked": [datagram(client, 4000, server, 9, b"blocked")],
    "rejected": [syn(2)],
    "leaving": [datagram(client, 4000, server, 10, b"leaving")],
    # no window has room for the second segment
    "mismatch": [syn(80), segment(client, 5000, server, 80, ACK, 1 << 30, 0, data=b"far")],
    "short": [ip4(client, server, UDP, b"\0\1\0\2")],
    "no-route": [datagram(client, 4000, server, 11, b"no route")],
    "expired": [datagram(client, 4000, server, 12, b"expired", ttl=1)],
    "fragment": [ip4(client, server, UDP, bytes(16), fragment=0x2000)],
    "label": [(0x8847, bytes([0, 0, 0x11, 0x40]) + datagram(client, 1, server, 2, b"")[1])],
}
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
link = bytes(int(part, 16) for part in gateway.split(":")) + wire.getsockname()[4]
for kind, packet in (kinds[what] if what in kinds else sum(kinds.values(), [])) * int(count):
    wire.send(link + struct.pack("!H", kind) + packet)
END_OF_PROGRAM
send() { # KIND|all [COUNT]
	on client python3 "$WORK/send.py" "$HERE" "$lan" "$CLIENT4" "$SERVER4" "$1" "${2-1}"
}
# readers - prints the bit mask of the programs that read dropped packets
readers() {
	on gateway python3 - "${PINS[gateway]}/status" <<'END_OF_PROGRAM'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, *words):
    attributes = ctypes.create_string_buffer(struct.pack("=%dQ" % len(words), *words), 128)
    return libc.syscall(321, command, attributes, 128)
path = ctypes.create_string_buffer(sys.argv[1].encode())
map_ = bpf(7, ctypes.addressof(path))
size = int(open("/proc/self/fdinfo/%d" % map_).read().split("value_size:")[1].split()[0])
key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(size)
bpf(1, map_, ctypes.addressof(key), ctypes.addressof(value)) == 0 or sys.exit("no status")
print(struct.unpack("=I", value.raw[-8:-4])[0])
END_OF_PROGRAM
}
reads() { # MASK
	[ "$(readers)" = "$1" ]
}
begin() { # NAME MASK ARGUMENT... - starts a reader
	local name=$1 mask=$2
	shift 2
	start "$name" gateway "$BIN/pfctl" drops "$@"
	await 5 reads "$mask" || die "$name does not read: $(cat "$WORK/$name.log")"
}
# seen NAME - prints the lines of a reader without times, for packets of the client
seen() {
	sed -nE 's/^[0-9-]* [0-9:.]* (.* block )/\1/p' "$WORK/$1.log" |
		sed -E 's/ (seq|win|ttl|len) .*//; s/frame .*/frame/' | LC_ALL=C sort -u
}
has_seen() { # NAME LINES
	[ "$(seen "$1" | wc -l)" -ge "$2" ]
}
rules() { # SETTING...
	filter gateway <<-END_OF_RULES
		$(printf '%s\n' "$@")
		pass
		block in proto udp to port 9 label "nine"
		block return in proto tcp to port 2
		anchor "out" {
			block out on wan0 proto udp to port 10
		}
		pass in inet proto udp to port 11 route-to 203.0.113.99
		pass in inet proto udp to port 12 route-to $SERVER4
	END_OF_RULES
}

rules "set fast-forward no" || die "the rules were not loaded"
first=3 # line of the first rule
expected() { # in the order of `sort`; a and b are the client and the server
	sed 's/ a:/ 192.168.100.2:/; s/ a / 192.168.100.2 /; s/> b/> 192.168.10.2/' <<-END_OF_LINES
		fragment block in on lan0: proto 17 a > b
		link-header block in on lan0: frame
		match block in on lan0 rule 1 (pf.conf:$((first + 1)), label nine): udp a:4000 > b:9
		match block in on lan0 rule 2 (pf.conf:$((first + 2))): tcp a:5000 > b:2 S
		match block out on wan0 rule out/0 (pf.conf:$((first + 4))): udp a:4000 > b:10
		no-route block in on lan0 rule 4 (pf.conf:$((first + 6))): udp a:4000 > b:11
		short block in on lan0: proto 17 a > b
		state-mismatch block in on lan0: tcp a:5000 > b:80 A
		undelivered block in on lan0 rule 5 (pf.conf:$((first + 7))): udp a:4000 > b:12
	END_OF_LINES
}
sees_all() { # EVALUATOR WAY
	local way="$1, $2"
	rules "$1" "$2"
	pf gateway -q -F states
	begin all 1
	begin words 3 in on lan0 proto udp port 9
	send all
	await 5 has_seen all 9
	same "$way: what differs" "" "$(diff <(expected) <(seen all))"
	same "$way: another reader, with words" "$(seen all | grep ':9$')" "$(seen words)"
	same "$way: packets that pass go on" "50 63" "$(ask "$SERVER4" 50)"
	case $way in
	*yes) at_least 40 "$way: and on the fast path" "$(by tc)" ;;
	*xdp*) at_least 40 "$way: and on the fast path" "$(by XDP)" ;;
	esac
	stop words INT
	holds "$way: one is left" await 2 reads 1
	stop all INT
	holds "$way: no one is left" await 2 reads 0
	holds "$way: the table at the end" \
		grep -q '^match  *1 (pf.conf:4, label nine)  *1$' "$WORK/all.log"
}
each_way sees_all

# A flood has twenty lines a second, and then one with the number of the others.
begin flood 1 reason match
send blocked 200
await 5 grep -q 'more like this' "$WORK/flood.log"
stop flood INT
at_least 20 "lines of a flood" "$(grep -c ': udp ' "$WORK/flood.log")"
same "all packets of it" 200 "$(awk '/: udp / { sum++ } /: [0-9]* more like this/ {
	sub(/.*: /, ""); sum += $1 } END { print sum }' "$WORK/flood.log")"
holds "the table has all" grep -q '(pf.conf:4, label nine)  *200$' "$WORK/flood.log"

# Explanations, and JSON.
begin explained 1 --explain reason match proto udp
send blocked
await 5 grep -q '^    block by rule 1, line 4 of the loaded file$' "$WORK/explained.log"
stop explained INT
holds "an explanation" grep -q '^    rule 1 (line 4, block): match$' "$WORK/explained.log"
begin json 1 --json reason match
send blocked
await 5 grep -q . "$WORK/json.log"
stop json INT
same "an object for each line" "1 match in lan0 1 nine pf.conf 4 ['nine'] 35" "$(python3 -c '
import json, sys
for line in open(sys.argv[1]):
    found = json.loads(line)
    print(*(found[name] for name in ("count", "reason", "direction", "interface", "rule",
                                     "rule_id", "file", "line", "labels", "length")))' "$WORK/json.log")"

# A load while a reader reads: later packets have the new rules.
begin loaded 1 proto udp port 9
rules "" "" "set evaluator linear"
send blocked
await 5 has_seen loaded 1
stop loaded INT
same "the place of a rule after a load" \
	"match block in on lan0 rule 1 (pf.conf:$((first + 2)), label nine): udp 192.168.100.2:4000 > 192.168.10.2:9" \
	"$(seen loaded)"

# An interface that appears later has no program: the guard drops its packets.
begin unattached 1 reason unattached
wire client eth1 gateway new0
address client eth1 10.9.2.2/24
address gateway new0 10.9.2.1/24
probe_ping client 10.9.2.1 >/dev/null
await 5 grep -q ': icmp ' "$WORK/unattached.log"
same "a packet that the guard drops" \
	"unattached block in on new0: icmp 10.9.2.2 > 10.9.2.1 type 8 id" \
	"$(seen unattached | grep ': icmp ' | sed 's/ id .*/ id/')"
stop unattached INT
on gateway ip link delete new0

# Nobody reads for a reader that is stopped or killed, even if no other process notices.
begin idle 1 reason match
kill -s STOP "${PROCESSES[idle]}"
holds "a stopped reader gets no records" await 10 reads 0
kill -s CONT "${PROCESSES[idle]}"
holds "it gets records when it goes on" await 2 reads 1
send blocked
await 5 has_seen idle 1
same "and says that packets may be missing" 1 "$(grep -c '^pfctl: packets may be missing' "$WORK/idle.log")"
stop idle KILL
same "a reader was killed" 1 "$(readers)"
holds "a killed reader gets no records" await 10 reads 0

# A second signal ends a reader that cannot write.
mkfifo "$WORK/full.log"
exec 7<>"$WORK/full.log"
python3 -c 'import fcntl; fcntl.fcntl(7, 1031, 4096)' # F_SETPIPE_SZ
begin full 1 reason match
for _ in 1 2 3; do
	send blocked 40
	sleep 1.1
done
kill -s INT "${PROCESSES[full]}"
sleep 0.5
holds "a reader cannot write" kill -0 "${PROCESSES[full]}"
stop full INT
same "a second signal ends it" 130 $?
exec 7>&-
holds "nobody reads" await 10 reads 0

# Readers that are killed: the next reader cleans up, and so does skipstepd.
for number in 0 1 2 3; do
	begin "reader$number" $(((2 << number) - 1))
done
same "a fifth reader" \
	"pfctl: 4 programs read the dropped packets already, and no more can: end one of them (pfctl drops)" \
	"$(pf gateway drops 2>&1)"
stop reader1 KILL
same "a reader that was killed" 15 "$(readers)"
begin reader1 15
for number in 0 1 2 3; do
	stop "reader$number" INT
done
holds "no one is left" await 2 reads 0
begin killed 1
stop killed KILL
daemon gateway
holds "skipstepd cleans up after a reader that was killed" await 10 reads 0
same "and leaves no file" "" "$(ls "$owners")"

# Mistakes.
same "an unknown reason" 1 "$(pf gateway drops reason long 2>&1 | grep -c '^pfctl: reason long: no such reason: the reasons are match, ')"
same "an unknown word" "filter:1: syntax error
pfctl: a filter has the criteria of a rule, as in: pfctl drops on wan0 proto tcp port 22" \
	"$(pf gateway drops onn wan0 2>&1)"
same "an option of a rule" "pfctl: quick chooses no dropped packets" \
	"$(pf gateway drops quick on wan0 2>&1 | sed 's/: use in,.*//')"
same "an unknown table" "pfctl: bad: no such table" "$(pf gateway drops from '<bad>' 2>&1)"
same "without a filter" \
	"pfctl: no rules are loaded, so nothing is dropped: load rules with pfctl -f" \
	"$(pf client drops 2>&1)"

# The filter is removed while a program reads.
begin last 1
pf gateway -q --remove
same "a filter that is removed" "pfctl: the filter was removed or made anew: run pfctl drops again" \
	"$(await 5 grep '^pfctl: ' "$WORK/last.log"; grep '^pfctl: ' "$WORK/last.log")"
verdict
