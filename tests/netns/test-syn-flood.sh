# A SYN flood from forged sources, through a gateway with a small state table. With adaptive
# syncookies the table does not fill and clients connect; without them it fills and clients do not
# connect. Existing connections continue in both cases.
#
#   client, attacker ----------------- gateway ----------------- server
#                          lan0                    wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
echo_server server 7

# flood SYNS - sends SYNS SYNs from the client's wire to the web server, half of them over IPv6,
# 5000 per second
flood() {
	start flood client python3 -c '
import random, socket, struct, sys, time

def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff

count, server4, server6 = int(sys.argv[1]), sys.argv[2], sys.argv[3]
gateway = bytes.fromhex(sys.argv[4].replace(":", ""))
draw = random.Random(4)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))

def segment(source, destination):
    tcp = struct.pack("!HHIIBBHHH", draw.randrange(1024, 65536), 80, draw.getrandbits(32), 0, 5 << 4, 2, 65535, 0, 0)
    pseudo = source + destination + struct.pack("!HH", 6, len(tcp))
    return tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]

def ipv4():
    source = bytes([198, 18, draw.randrange(256), draw.randrange(1, 255)])
    destination = socket.inet_aton(server4)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 40, draw.getrandbits(16), 0, 64, 6, 0) + source + destination
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return b"\x08\x00" + head + segment(source, destination)

def ipv6():
    source = socket.inet_pton(socket.AF_INET6, "2001:db8:bad::")[:8] + draw.randbytes(8)
    destination = socket.inet_pton(socket.AF_INET6, server6)
    return b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 20, 6, 64) + source + destination + segment(source, destination)

start = time.monotonic()
for number in range(count):
    wire.send(gateway + bytes(6) + (ipv4, ipv6)[number % 2]())
    if number % 50 == 0:
        time.sleep(max(0, start + number / 5000 - time.monotonic()))' "$1" "$SERVER4" "$SERVER6" \
	"$(on gateway ip -o link show lan0 | sed -n 's/.*ether \([^ ]*\).*/\1/p')"
}

# steady - opens a connection that sends and receives twenty times a second until it is stopped;
# prints the number of exchanges
steady() {
	start "steady-$1" client python3 -c '
import signal, socket, sys, time
s = socket.create_connection((sys.argv[1], 7), timeout=5)
print("ready", flush=True)
going = True
def end(*_):
    global going
    going = False
signal.signal(signal.SIGTERM, end)
heard = 0
while going:
    said = b"%8d" % heard
    s.sendall(said)
    assert s.recv(8, socket.MSG_WAITALL) == said
    heard += 1
    time.sleep(0.05)
print("heard", heard)' "$1"
	await 5 grep -q ready "$WORK/steady-$1.log" || die "$1 does not answer"
}

# counter NAME - prints a counter of `pfctl -si -v`
counter() {
	pf gateway -si -v | awk -v name="$1" \
		'index($0, "  " name " ") == 1 { $0 = substr($0, length(name) + 3); print $1; exit }'
}

# states - prints the number of states
states() {
	counter "current entries"
}

# clients N - fetches a page N times, one after the other; prints the number of successes
clients() {
	local served=0 n
	for ((n = 0; n < $1; n++)); do
		[ "$(probe_web client $SERVER4 80)" != passed ] || served=$((served + 1))
		[ "$(probe_web client $SERVER6 80)" != passed ] || served=$((served + 1))
	done
	echo $served
}

# rules SYNCOOKIES
rules() {
	filter gateway <<END
set limit states 1000
set timeout { adaptive.start 0, adaptive.end 0, tcp.first 10, tcp.closing 1, tcp.finwait 1, tcp.closed 1 }
set syncookies $1
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp
pass out on wan0 proto tcp
END
}

# end_of_flood - checks that the flood is over, and that existing connections continue
end_of_flood() {
	local address
	wait "${PROCESSES[flood]}"
	unset "PROCESSES[flood]"
	[ ! -s "$WORK/flood.log" ] || die "$(cat "$WORK/flood.log")"
	for address in $SERVER4 $SERVER6; do
		stop "steady-$address"
		at_least 20 "answers to who was connected to $address" \
			"$(sed -n 's/^heard //p' "$WORK/steady-$address.log")"
	done
}

rules 'adaptive (start 25%, end 12%)'
steady $SERVER4
steady $SERVER6
flood 10000
await 3 eval '[ "$(counter "syncookies sent")" -gt 100 ]'
same "clients who are served during the flood, with cookies" 20 "$(clients 10)"
end_of_flood
at_least 5000 "cookies sent" "$(counter "syncookies sent")"
at_least 10 "cookies that came back" "$(counter "syncookies validated")"
same "floods noticed" 1 "$(counter "synfloods detected")"
same "packets for which there was no room" 0 "$(counter memory)"
# Half of the states wait for a client, and count for the watermarks; the other half are the
# outbound ones.
holds "the table has not filled: $(states) states" [ "$(states)" -lt 700 ]
same "clients who are served when it is over" 6 "$(clients 3)"

rules never
steady $SERVER4
steady $SERVER6
flood 10000
await 3 eval '[ "$(counter memory)" -gt 1000 ]'
same "clients who are served during the flood, without cookies" 0 "$(clients 1)"
at_least 1000 "packets for which there was no room" "$(counter memory)"
holds "no more states than the limit: $(states)" [ "$(states)" -le 1000 ]
end_of_flood
holds "clients are served again" await 25 eval '[ "$(clients 1)" = 2 ]'
verdict
