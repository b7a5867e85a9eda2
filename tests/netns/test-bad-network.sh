# Two real TCP stacks with impairment on both sides of a gateway that translates: every transfer is
# complete, in both directions, and fragmented datagrams arrive.
. "$(dirname "$0")/bad-network.sh"
bad_network_begin

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
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0) label "af-to"
pass in on lan0 inet to 192.168.100.200 af-to inet6 from (wan0:0) to 2001:db8:10::2 label "af-to"
END
on client ip route add 192.168.100.200/32 via 192.168.100.1
same "af-to" "16 equal" "$(transfers 192.168.100.200 64:ff9b::192.168.10.2 7)"
at_least 16 "states with af-to" "$(made af-to)"

# datagrams - sends fragmented datagrams, each repeatedly until it is answered; prints their number
datagrams() {
	on client python3 - "$@" <<'END_OF_PROGRAM'
import os, socket, sys
answered = 0
for address in sys.argv[1:]:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.1)
    s.connect((address, 7))
    for length in range(2000, 10000, 200):
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
same "datagrams in fragments" 80 "$(datagrams $SERVER4 $SERVER6)"

bad_network_end
