# Sockets that receive packets for foreign addresses: a proxy on the gateway answers in the server's
# name (divert-to), asks the server in the client's name and receives the answers (divert-reply).
# The test covers TCP, UDP and raw sockets, in both families. Rules are the only configuration.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53

# proxy PORT - answers each client with both addresses of the conversation
cat >"$WORK/proxy.py" <<'END_OF_PROGRAM'
import selectors, socket, sys
IP_TRANSPARENT, IPV6_TRANSPARENT, IP_RECVORIGDSTADDR, IPV6_RECVORIGDSTADDR = 19, 75, 20, 74
wait = selectors.DefaultSelector()
for family, level, option, heard, host in (
        (socket.AF_INET, socket.IPPROTO_IP, IP_TRANSPARENT, IP_RECVORIGDSTADDR, "127.0.0.1"),
        (socket.AF_INET6, socket.IPPROTO_IPV6, IPV6_TRANSPARENT, IPV6_RECVORIGDSTADDR, "::1")):
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(level, option, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == socket.SOCK_DGRAM:
            s.setsockopt(level, heard, 1)
        s.bind((host, 8080))
        if kind == socket.SOCK_STREAM:
            s.listen()
        wait.register(s, selectors.EVENT_READ, (family, level, option))
print("ready", flush=True)
while True:
    for key, _ in wait.select():
        s, (family, level, option) = key.fileobj, key.data
        if s.type == socket.SOCK_STREAM:
            c, peer = s.accept()
            own = c.getsockname()
            c.sendall(f"{peer[0]} to {own[0]} {own[1]}\n".encode())
            c.close()
            continue
        _, extra, _, peer = s.recvmsg(2048, 256)
        data = next(data for level, _, data in extra)
        port = int.from_bytes(data[2:4], "big")
        own = socket.inet_ntop(family, data[4:8] if family == socket.AF_INET else data[8:24])
        answer = socket.socket(family, socket.SOCK_DGRAM)
        answer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        answer.setsockopt(level, option, 1)
        answer.bind((own, port))
        answer.sendto(f"{peer[0]} to {own} {port}\n".encode(), peer[:2])
        answer.close()
END_OF_PROGRAM
# ask ADDRESS PORT FROM - sends a line of UDP to an echo server, with the source FROM
cat >"$WORK/ask.py" <<'END_OF_PROGRAM'
import socket, sys
address, port, own = sys.argv[1], int(sys.argv[2]), sys.argv[3]
v6 = ":" in address
s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP, 75 if v6 else 19, 1)
s.bind((own, 4444))
s.settimeout(2)
s.sendto(b"hello", (address, port))
try:
    print(s.recv(100).decode())
except TimeoutError:
    print("no answer")
END_OF_PROGRAM
start proxy gateway python3 "$WORK/proxy.py"
await 3 grep -q ready "$WORK/proxy.log" || die "no proxy: $(cat "$WORK/proxy.log")"

rules="block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 inet proto { tcp, udp } to port { 80, 5353 } divert-to 127.0.0.1 port 8080
pass in on lan0 inet6 proto { tcp, udp } to port { 80, 5353 } divert-to ::1 port 8080
pass in on lan0 inet proto { tcp, udp } to port 81 divert-to 127.0.0.1 port 9
pass out on wan0 proto udp to port 53 divert-reply
pass in on lan0 inet proto 98 divert-to 127.0.0.1 port 1
pass in on lan0 inet6 proto 98 divert-to ::1 port 1"
filter gateway <<<"$rules"

asks() {
	on client timeout 2 nc "$@" </dev/null 2>/dev/null || echo "no answer"
}
same "TCP" "$CLIENT4 to 198.51.100.7 80" "$(asks -w 2 198.51.100.7 80)"
same "TCP to the server's own address" "$CLIENT4 to $SERVER4 80" "$(asks -w 2 "$SERVER4" 80)"
same "TCP, IPv6" "$CLIENT6 to 2001:db8:ffff::7 80" "$(asks -w 2 2001:db8:ffff::7 80)"
same "UDP" "$CLIENT4 to 198.51.100.7 5353" "$(ask_udp client 198.51.100.7 5353)"
same "UDP, IPv6" "$CLIENT6 to 2001:db8:ffff::7 5353" "$(ask_udp client 2001:db8:ffff::7 5353)"
same "where nobody listens, TCP" refused "$(probe_web client 198.51.100.7 81)"
same "where nobody listens, UDP" refused "$(ask_udp client 198.51.100.7 81)"

# a raw socket receives packets of its protocol for any address
cat >"$WORK/raw.py" <<'END_OF_PROGRAM'
import socket
for family in socket.AF_INET, socket.AF_INET6:
    s = socket.socket(family, socket.SOCK_RAW, 98)
    s.settimeout(10)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    print("ready", flush=True)
    data, extra, _, (peer, *_) = s.recvmsg(2048, 256)
    if family == socket.AF_INET:
        print(peer, "to", socket.inet_ntop(family, data[16:20]), data[20:].decode(), flush=True)
    else:
        print(peer, "to", socket.inet_ntop(family, extra[0][2][:16]), data.decode(), flush=True)
END_OF_PROGRAM
raw() {
	on client python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
socket.socket(family, socket.SOCK_RAW, 98).sendto(b"hello", (sys.argv[1], 0))' "$1"
}
# heard LINES - true if the raw sockets have printed LINES lines
heard() {
	[ "$(wc -l <"$WORK/raw.log")" -ge "$1" ]
}
start raw gateway python3 "$WORK/raw.py"
await 3 heard 1 || die "no raw socket"
raw 198.51.100.7
await 3 heard 3
raw 2001:db8:ffff::7
await 3 heard 4
same "raw sockets" "ready
$CLIENT4 to 198.51.100.7 hello
ready
$CLIENT6 to 2001:db8:ffff::7 hello" "$(cat "$WORK/raw.log")"

same "in the client's name" hello "$(on gateway python3 "$WORK/ask.py" "$SERVER4" 53 "$CLIENT4")"
same "in the client's name, IPv6" hello \
	"$(on gateway python3 "$WORK/ask.py" "$SERVER6" 53 "$CLIENT6")"

# The proxy has a socket for each client, bound to the address that the client contacted and
# connected to the client. This socket receives the client's later datagrams.
cat >"$WORK/connected.py" <<'END_OF_PROGRAM'
import socket, sys
address = sys.argv[1]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
level, option = (socket.IPPROTO_IPV6, 75) if ":" in address else (socket.IPPROTO_IP, 19)
any_address = "::" if ":" in address else "0.0.0.0"
def transparent(to):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(level, option, 1)
    s.settimeout(5)
    s.bind(to)
    return s
listener = transparent(("::1" if ":" in address else "127.0.0.1", 8081))
others = transparent((any_address, 5354))
others.setblocking(False)
print("ready", flush=True)
def heard(s):
    try:
        return s.recv(100).decode()
    except (TimeoutError, BlockingIOError):
        return "nothing"
data, peer = listener.recvfrom(100)
connected = transparent((address, 5354))
connected.connect(peer[:2])
connected.send(b"welcome")
listener.settimeout(0.1)
# a socket for all addresses at the diverted port gets nothing
print("connected", heard(connected), "listener", heard(listener), "others", heard(others),
      flush=True)
connected.close()
END_OF_PROGRAM
pf gateway -q -f - <<END_OF_RULES
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 inet proto udp to port 5354 divert-to 127.0.0.1 port 8081
pass in on lan0 inet6 proto udp to port 5354 divert-to ::1 port 8081
END_OF_RULES
for address in 198.51.100.8 2001:db8:ffff::8; do
	start connected gateway python3 "$WORK/connected.py" $address
	await 3 grep -q ready "$WORK/connected.log" || die "no proxy: $(cat "$WORK/connected.log")"
	on client python3 - $address <<'END_OF_PROGRAM'
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], 5354))
s.send(b"first")
try:
    s.recv(100)
    s.send(b"later")
except TimeoutError:
    pass
END_OF_PROGRAM
	await 10 grep -q "^connected" "$WORK/connected.log"
	same "the later datagram, $address" "connected later listener nothing others nothing" \
		"$(grep '^connected' "$WORK/connected.log")"
	stop connected
done
filter gateway <<<"$rules"

# one socket after the other uses the same ports, while pf still has the previous socket's state
again() {
	on client python3 - "$@" <<'END_OF_PROGRAM'
import socket, struct, sys
for conversation in sys.argv[1:]:
    kind, address = conversation.split("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.settimeout(5)
    s.bind(("", 7777))
    s.connect((address, 80 if kind == "tcp" else 5353))
    if kind == "tcp":
        # a reset when it is closed, so that the ports are free at once
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    else:
        s.send(b"hello")
    try:
        print(s.recv(100).decode().strip())
    except TimeoutError:
        print("no answer")
    s.close()
END_OF_PROGRAM
}
heard="$CLIENT4 to 198.51.100.7 80
$CLIENT4 to 198.51.100.7 5353
$CLIENT6 to 2001:db8:ffff::7 80
$CLIENT6 to 2001:db8:ffff::7 5353"
for time in first second; do
	same "from port 7777, the $time time" "$heard" \
		"$(again tcp/198.51.100.7 udp/198.51.100.7 tcp/2001:db8:ffff::7 \
		udp/2001:db8:ffff::7)"
	same "in the client's name from port 4444, the $time time" hello \
		"$(on gateway python3 "$WORK/ask.py" "$SERVER4" 53 "$CLIENT4")"
	# the next socket belongs to another program
	stop proxy
	start proxy gateway python3 "$WORK/proxy.py"
	await 3 grep -q ready "$WORK/proxy.log" || die "no proxy: $(cat "$WORK/proxy.log")"
done
# rules without a divert option: the state still diverts
filter gateway <<<"pass"
same "the state still leads to the socket" "$CLIENT4 to 198.51.100.7 5353" \
	"$(again udp/198.51.100.7)"

# pfctl removes its settings together with the filter
pf gateway -q --remove
same "nothing is left" "" \
	"$(on gateway ip rule show | grep 28774; on gateway ip route show table 28774)"
verdict
