# skipstepd reassembles fragments before the rules see them, and the gateway fragments them again on
# the way out. Without skipstepd fragments are dropped and counted. With `set reassemble no` the
# filter matches fragments one by one.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
GATEWAY4=192.168.100.1 GATEWAY6=2001:db8:100::1

# large_ping HOST ADDRESS [BYTES] - sends an echo request of several fragments
large_ping() {
	if on "$1" ping -n -q -c 1 -W 1 -s "${3:-4000}" "$2" >/dev/null 2>&1; then echo passed; \
		else echo "no answer"; fi
}

# large_udp ADDRESS PORT - sends 4000 bytes to an echo server
large_udp() {
	on client python3 - "$1" "$2" <<'END'
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
s.settimeout(1)
data = bytes(range(250)) * 16
s.sendto(data, (address, port))
try:
    print("passed" if s.recv(65535) == data else "broken")
except OSError:
    print("no answer")
END
}

# raw_fragments PROGRAM - sends IPv4 packets from the client that a Python program makes
raw_fragments() {
	on client python3 - "$SERVER4" <<END
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
to = sys.argv[1]
def fragment(ident, offset, more, data):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(data), ident, offset // 8 | (0x2000 if more else 0),
                         64, 17, 0, socket.inet_aton("$CLIENT4"), socket.inet_aton(to))
    s.sendto(header + data, (to, 0))
$1
END
}

same "fragments without a filter" passed "$(large_ping client $SERVER4)"
filter gateway <<<"pass all"
for address in $SERVER4 $SERVER6; do
	same "whole packets to $address" passed "$(probe_ping client $address)"
	same "fragments to $address without skipstepd" "no answer" "$(large_ping client $address)"
done
at_least 6 "packets counted as fragment" "$(reason gateway fragment)"

daemon gateway
await 5 on gateway ip link show pffrag0
for address in $SERVER4 $SERVER6 $GATEWAY4 $GATEWAY6; do
	same "fragments to $address" passed "$(large_ping client $address)"
	same "many fragments to $address" passed "$(large_ping client $address 60000)"
done
for address in $CLIENT4 $SERVER6; do
	same "fragments from the gateway to $address" passed "$(large_ping gateway $address)"
done

# outbound fragments are no longer than the inbound ones
on client ip -6 route add 2001:db8:10::/64 via 2001:db8:100::1 mtu 1300
start sniffer server tcpdump -n -l -i eth0 -Q in 'ip6 proto 44'
await 3 grep -q "listening on" "$WORK/sniffer.log"
same "fragments of 1300 bytes" passed "$(large_ping client $SERVER6)"
await 3 grep -q "frag" "$WORK/sniffer.log"
stop sniffer
same "longest fragment at the server" 1248 \
	"$(grep -o 'frag ([0-9]*|[0-9]*)' "$WORK/sniffer.log" | sed 's/.*|//; s/)//' | sort -n |
	tail -1)"

echo_server server 7
echo_server server 8
filter gateway <<'END'
block all
pass in on lan0 proto udp to port 7
pass out on wan0 proto udp to port 7
END
for address in $SERVER4 $SERVER6; do
	same "4000 bytes to port 7 of $address" passed "$(large_udp $address 7)"
	same "4000 bytes to port 8 of $address" "no answer" "$(large_udp $address 8)"
done

# hostile fragments: contradicting ends, an impossible length, more fragments than the limit
daemon_stop gateway
filter gateway <<'END'
set limit frags 100
pass all
END
daemon gateway
await 5 on gateway ip link show pffrag0
before=$(reason gateway fragment)
raw_fragments \
	'fragment(1, 16, False, bytes(8)); fragment(1, 24, False, bytes(8)); fragment(2, 8, True, bytes(7))'
await 3 eval '[ "$(reason gateway fragment)" -ge $((before + 2)) ]'
at_least $((before + 2)) "packets counted as fragment" "$(reason gateway fragment)"
raw_fragments 'for n in range(3000): fragment(n + 10, 8, True, bytes(8))'
held() {
	pf gateway -vsi | awk \
		'/^Fragments/ { found = 1 } found && /current entries/ { print $3; exit }'
}
await 3 eval '[ "$(held)" -gt 50 ]'
holds "no more than 100 fragments are held: $(held)" [ "$(held)" -le 100 ]
for address in $SERVER4 $SERVER6; do
	same "fragments to $address during the flood" passed "$(large_ping client $address)"
done

# more fragments than skipstepd can read: the kernel drops and counts them
lost() {
	pf gateway --json -si | python3 \
		-c 'import json, sys; print(json.load(sys.stdin)["fragments"]["lost"])'
}
daemon_signal gateway STOP
raw_fragments 'for n in range(3000): fragment(n + 10, 8, True, bytes(8))'
daemon_signal gateway CONT
await 5 eval '[ "$(lost)" -gt 0 ]'
at_least 1 "fragments that skipstepd did not get" "$(lost)"

# without skipstepd all other packets pass; after its restart fragments pass, too
daemon_stop gateway KILL
for address in $SERVER4 $SERVER6; do
	same "whole packets to $address without skipstepd" passed "$(probe_ping client $address)"
	same "fragments to $address without skipstepd" "no answer" "$(large_ping client $address)"
done
daemon gateway
await 5 on gateway ip link show pffrag0
for address in $SERVER4 $SERVER6; do
	same "fragments to $address, with skipstepd again" passed "$(large_ping client $address)"
done

filter gateway <<'END'
set reassemble no
pass all no state
END
for address in $SERVER4 $SERVER6; do
	same "fragments to $address, one by one" passed "$(large_ping client $address)"
done
filter gateway <<'END'
set reassemble no
pass all no state
block in on lan0 fragment
END
for address in $SERVER4 $SERVER6; do
	same "fragments to $address, which a rule blocks" "no answer" \
		"$(large_ping client $address)"
done
verdict
