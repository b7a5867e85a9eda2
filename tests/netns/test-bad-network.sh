# Two real TCP stacks, and between each of them and the gateway a network that loses frames, repeats
# them, lets others overtake them and cuts them short. Whatever the gateway does to the packets, every
# transfer arrives whole, both ways, and no state is left behind.
#
#   client === bad network === gateway === bad network === server
#                          lan0       wan0
. "$(dirname "$0")/lab.sh"
lab_begin
BADNESS="--seed 4 --loss 1 --duplicate 1 --reorder 2 --truncate 0.5 --seconds 60"
gateway_between_client_and_server bad_wire
echo_server server 7
daemon gateway

# transfers ADDRESS4 ADDRESS6 PORT - eight connections to each address at once, over each of which a megabyte
# goes there and comes back; says of how many of them the checksums are equal
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

# rules - loads what is on standard input, which makes states of all that comes from the client
rules() {
	filter gateway <<END
set timeout { tcp.first 5, tcp.opening 5, tcp.closing 5, tcp.finwait 5, tcp.closed 2, udp.first 5, udp.single 5, udp.multiple 5 }
block all
pass inet6 proto icmp6
$(cat)
END
}

# made LABEL - states that the rules of that label have made
made() {
	pf gateway -sl | awk -v label="$1" '$1 == label { sum += $NF } END { print sum + 0 }'
}

rules <<'END'
pass in on lan0
pass out on wan0 nat-to (wan0) label "nat"
END
same "nat-to" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with nat-to" "$(made nat)"

rules <<'END'
pass in on lan0 inet proto tcp to port 70 rdr-to 192.168.10.2 port 7 label "rdr"
pass in on lan0 inet6 proto tcp to port 70 rdr-to 2001:db8:10::2 port 7 label "rdr"
pass out on wan0
END
same "rdr-to" "16 equal" "$(transfers 192.168.100.1 2001:db8:100::1 70)"
at_least 16 "states with rdr-to" "$(made rdr)"

rules <<'END'
pass in on lan0 proto tcp modulate state label "modulate"
pass out on wan0 proto tcp modulate state
END
same "modulate state" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with modulate state" "$(made modulate)"

rules <<'END'
pass in on lan0 proto tcp synproxy state label "synproxy"
pass out on wan0
END
same "synproxy state" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with synproxy state" "$(made synproxy)"

rules <<'END'
set syncookies always
pass in on lan0 proto tcp label "syncookies"
pass out on wan0
END
same "syncookies" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with syncookies" "$(made syncookies)"

rules <<'END'
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0) label "af-to"
pass in on lan0 inet to 192.168.100.200 af-to inet6 from (wan0:0) to 2001:db8:10::2 label "af-to"
END
on client ip route add 192.168.100.200/32 via 192.168.100.1
same "af-to" "16 equal" "$(transfers 192.168.100.200 64:ff9b::192.168.10.2 7)"
at_least 16 "states with af-to" "$(made af-to)"

rules <<'END'
match proto tcp scrub (reassemble tcp, random-id, no-df, max-mss 1300)
pass in on lan0 proto tcp label "scrub"
pass out on wan0
END
same "reassemble tcp" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with reassemble tcp" "$(made scrub)"

rules <<'END'
match out on wan0 proto tcp scrub (reassemble tcp) nat-to (wan0)
pass in on lan0 inet proto tcp to port 70 rdr-to 192.168.10.2 port 7 modulate state
pass in on lan0 inet6 proto tcp to port 70 rdr-to 2001:db8:10::2 port 7 modulate state
pass out on wan0 modulate state label "all"
END
same "all of it" "16 equal" "$(transfers 192.168.100.1 2001:db8:100::1 70)"
at_least 16 "states with all of it" "$(made all)"

# datagrams - of those that come in fragments, asked again until they are answered; how many there were
datagrams() {
	on client python3 - "$@" <<'END_OF_PROGRAM'
import os, socket, sys
answered = 0
for address in sys.argv[1:]:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.1)
    s.connect((address, 7))
    for length in range(2000, 10000, 100):
        question = os.urandom(length)
        heard = None
        while heard != question:
            try:
                s.send(question)
                heard = s.recv(65535)
            except TimeoutError:
                pass
        answered += 1
print(answered)
END_OF_PROGRAM
}
rules <<'END'
pass in on lan0 proto udp to port 7 label "datagrams"
pass out on wan0 proto udp nat-to (wan0)
END
same "datagrams in fragments" 160 "$(datagrams $SERVER4 $SERVER6)"

no_state() {
	[ "$(pf gateway -ss | grep -c ' tcp \| udp ')" = 0 ]
}
holds "no state is left" await 20 no_state

for wire in lan0 wan0; do
	stop "bad-$wire"
	cat "$WORK/bad-$wire.log"
	for what in lost repeated overtaken cut; do
		at_least 200 "frames that $wire's network has $what" \
			"$(grep -o " $what=[0-9]*" "$WORK/bad-$wire.log" | awk -F= '{ sum += $2 } END { print sum }')"
	done
done
verdict
