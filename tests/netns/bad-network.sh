# A client and a server with a gateway between them, and impairment on each side of it: frames are
# lost, duplicated, reordered and truncated. Sourced by the tests with impairment.
#
#   client === bad network === gateway === bad network === server
#                          lan0       wan0
. "$(dirname "$0")/lab.sh"

# bad_network_begin - makes the hosts, starts an echo server on port 7 and skipstepd
bad_network_begin() {
	BADNESS="--seed 4 --loss 1 --duplicate 1 --reorder 2 --truncate 0.5 --seconds 600"
	gateway_between_client_and_server bad_wire
	impatient client server
	echo_server server 7
	daemon gateway
}

# impatient HOST... - limits the TCP retransmission timeout to a second, so that a connection does
# not wait longer after each lost frame (Linux 6.15 on)
impatient() {
	local host
	for host; do
		on "$host" sh -c 'echo 1000 >/proc/sys/net/ipv4/tcp_rto_max_ms' 2>/dev/null || true
	done
}

# transfers ADDRESS4 ADDRESS6 PORT - sends a megabyte over each of eight connections to each address
# and back; prints the number of connections whose checksums are equal
transfers() {
	on client python3 - "$@" <<'END_OF_PROGRAM'
import hashlib, os, socket, sys, threading
*addresses, port = sys.argv[1:]

def connect(address):
    # The SYN that a gateway sends for a client is sent once. If it is lost, this client sees a window of
    # nothing that never opens, until it tries again.
    while True:
        try:
            s = socket.create_connection((address, int(port)), timeout=3)
            s.sendall(b"?")
            if s.recv(1) == b"?":
                s.settimeout(20)
                return s
        except OSError as error:
            print(address, error, file=sys.stderr)

def transfer(address):
    sent = os.urandom(1 << 20)
    with connect(address) as s:
        sender = threading.Thread(target=s.sendall, args=[sent])
        sender.start()
        heard = hashlib.sha256()
        length = 0
        while length < len(sent) and (data := s.recv(65536)):
            heard.update(data)
            length += len(data)
        sender.join()
        s.shutdown(socket.SHUT_WR)
        end = s.recv(1)
    if heard.digest() == hashlib.sha256(sent).digest() and end == b"":
        equal.append(address)

equal = []
threads = [threading.Thread(target=transfer, args=[a], daemon=True) for a in addresses * 8]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(equal), "equal")
END_OF_PROGRAM
}

# rules - loads the rules on standard input, which make states for all packets of the client
rules() {
	filter gateway <<END
block all
pass inet6 proto icmp6
$(cat)
END
}

# made LABEL - prints the number of states that the rules with a label have made
made() {
	pf gateway -sl | awk -v label="$1" '$1 == label { sum += $NF } END { print sum + 0 }'
}

no_state() {
	[ "$(pf gateway -ss | grep -c ' tcp \| udp ')" = 0 ]
}

# bad_network_end - checks that all states end soon, and that the networks impaired enough frames
bad_network_end() {
	local wire what
	rules <<-END
		set timeout { tcp.first 2, tcp.opening 2, tcp.closing 2, tcp.finwait 2, tcp.closed 2 }
		set timeout { udp.first 2, udp.single 2, udp.multiple 2 }
	END
	holds "no state is left" await 20 no_state
	for wire in lan0 wan0; do
		stop "bad-$wire"
		cat "$WORK/bad-$wire.log"
		for what in lost repeated overtaken cut; do
			at_least 200 "frames that $wire's network has $what" \
				"$(grep -o " $what=[0-9]*" "$WORK/bad-$wire.log" |
				awk -F= '{ sum += $2 } END { print sum }')"
		done
	done
	verdict
}
