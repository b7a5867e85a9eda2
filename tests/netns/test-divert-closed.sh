# The state of a diverted connection does not outlive its socket. After the proxy's connected socket
# is closed, the rules judge the next packet with the same ports, in both directions.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 5354

# The proxy's sockets, bound to OWN and PORT, which do not belong to the gateway.
cat >"$WORK/foreign.py" <<'END_OF_PROGRAM'
import socket, sys
def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET
def foreign(kind, own, port):
    s = socket.socket(family(own), kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    level, option = (socket.IPPROTO_IPV6, 75) if ":" in own else (socket.IPPROTO_IP, 19)
    s.setsockopt(level, option, 1)
    s.settimeout(10)
    s.bind((own, port))
    return s
def vanish(s):
    s.setsockopt(socket.IPPROTO_TCP, 19, 1)  # TCP_REPAIR: the socket closes without a segment
    s.close()
END_OF_PROGRAM
# answers one UDP client from a connected socket, receives a second datagram, and ends
cat >"$WORK/udp-proxy.py" <<'END_OF_PROGRAM'
import foreign, socket, sys
own = sys.argv[1]
listener = foreign.foreign(socket.SOCK_DGRAM, "::1" if ":" in own else "127.0.0.1", 8081)
print("ready", flush=True)
_, peer = listener.recvfrom(100)
s = foreign.foreign(socket.SOCK_DGRAM, own, 5354)
s.connect(peer[:2])
s.send(b"the proxy")
s.recv(100)
s.send(b"the proxy again")
print("end", flush=True)
END_OF_PROGRAM
# sends UDP from port 7777 to ADDRESS, COUNT times; prints the answers
cat >"$WORK/udp-client.py" <<'END_OF_PROGRAM'
import foreign, socket, sys
address, count = sys.argv[1], int(sys.argv[2])
s = socket.socket(foreign.family(address), socket.SOCK_DGRAM)
s.settimeout(5)
s.bind(("", 7777))
s.connect((address, 5354))
try:
    for _ in range(count):
        s.send(b"the server")
        print(s.recv(100).decode())
except TimeoutError:
    print("no answer")
except ConnectionRefusedError:
    print("refused")
END_OF_PROGRAM
# greets one TCP client after the other, and drops the connection without a segment
cat >"$WORK/tcp-proxy.py" <<'END_OF_PROGRAM'
import foreign, socket, sys
listener = foreign.foreign(socket.SOCK_STREAM, sys.argv[1], 8080)
listener.listen()
listener.settimeout(None)
print("ready", flush=True)
while True:
    c, _ = listener.accept()
    c.sendall(b"the proxy\n")
    c.recv(100)
    foreign.vanish(c)
    print("vanished", flush=True)
END_OF_PROGRAM
# ADDRESS SEQUENCE - connects from port 7777 with this sequence number, and drops the connection,
# too
cat >"$WORK/tcp-client.py" <<'END_OF_PROGRAM'
import foreign, socket, sys
address, sequence = sys.argv[1], int(sys.argv[2])
s = socket.socket(foreign.family(address), socket.SOCK_STREAM)
for option, value in (19, 1), (20, 2), (21, sequence), (19, 0):  # TCP_REPAIR, TCP_QUEUE_SEQ
    s.setsockopt(socket.IPPROTO_TCP, option, value)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.settimeout(5)
s.bind(("", 7777))
try:
    s.connect((address, 80))
    print(s.recv(100).decode().strip())
    s.sendall(b"thanks")
    foreign.vanish(s)
except TimeoutError:
    print("no answer")
END_OF_PROGRAM
# asks the server in the name of OWN, from a connected socket
cat >"$WORK/in-the-name-of.py" <<'END_OF_PROGRAM'
import foreign, socket, sys
own, address = sys.argv[1:]
s = foreign.foreign(socket.SOCK_DGRAM, own, 7777)
s.connect((address, 5354))
s.send(b"the server, for the proxy")
print(s.recv(100).decode())
END_OF_PROGRAM

rules="block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state"
diverting="$rules
pass in on lan0 inet proto udp to port 5354 divert-to 127.0.0.1 port 8081
pass in on lan0 inet6 proto udp to port 5354 divert-to ::1 port 8081
pass in on lan0 inet proto tcp to port 80 divert-to 127.0.0.1 port 8080
pass in on lan0 inet6 proto tcp to port 80 divert-to ::1 port 8080
pass out on wan0 proto udp to port 5354 divert-reply"
forwarding="$rules
pass proto udp to port 5354"

# thanks COUNT - true if the client has sent its data COUNT times
thanks() {
	[ "$(grep -c 'length 6' "$WORK/ear.log")" -ge "$1" ]
}

for family in 4 6; do
	server=SERVER$family server=${!server} client=CLIENT$family client=${!client}
	loopback=$([ $family = 4 ] && echo 127.0.0.1 || echo ::1)

	# UDP: the rules no longer divert; a state leads to its socket while the socket is open
	filter gateway <<<"$diverting"
	start udp-proxy gateway python3 "$WORK/udp-proxy.py" "$server"
	await 5 grep -q ready "$WORK/udp-proxy.log" || die "no proxy: $(cat "$WORK/udp-proxy.log")"
	same "divert-to over UDP to $server" "the proxy
the proxy again" "$(on client python3 "$WORK/udp-client.py" "$server" 2)"
	await 5 grep -q '^end$' "$WORK/udp-proxy.log"
	stop udp-proxy
	filter gateway <<<"$forwarding"
	same "states with these ports" 1 "$(state_count gateway ':7777\|\[7777\]')"
	same "UDP to $server, once the proxy is gone" "the server" \
		"$(on client python3 "$WORK/udp-client.py" "$server" 1)"
	pf gateway -q -F states

	# TCP: the next connection from the same port
	filter gateway <<<"$diverting"
	start tcp-proxy gateway python3 "$WORK/tcp-proxy.py" "$loopback"
	await 5 grep -q ready "$WORK/tcp-proxy.log" || die "no proxy: $(cat "$WORK/tcp-proxy.log")"
	start ear client tcpdump --immediate-mode -n -l -i eth0 -Q out "tcp port 7777"
	await 5 grep -q "listening on" "$WORK/ear.log" || die "the client does not listen"
	for sequence in 1000 2000000000; do
		same "divert-to over TCP to $server, from sequence number $sequence" \
			"the proxy" \
			"$(on client python3 "$WORK/tcp-client.py" "$server" $sequence)"
		await 5 grep -q vanished "$WORK/tcp-proxy.log"
	done
	# the state of the first connection is gone, so the second SYN gets no challenge ACK
	await 5 thanks 2
	same "SYNs of the client" 2 "$(grep -c 'Flags \[S\]' "$WORK/ear.log")"
	stop ear
	stop tcp-proxy
	pf gateway -q -F states

	# divert-reply: afterwards the client itself asks, from the same port
	same "divert-reply from $client" "the server, for the proxy" \
		"$(on gateway python3 "$WORK/in-the-name-of.py" "$client" "$server")"
	filter gateway <<<"$forwarding"
	same "UDP from $client itself" "the server" \
		"$(on client python3 "$WORK/udp-client.py" "$server" 1)"
	pf gateway -q -F states
done
verdict
