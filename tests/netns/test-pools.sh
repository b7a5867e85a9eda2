# Pools on a live gateway: sticky addresses, removal of an address from the pool, exhausted ports,
# unpredictable ports, and the log records of these packets.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0  192.168.10.81, .82
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
on gateway ip address add 192.168.10.82/24 dev wan0
echo_server server 53

# chosen - prints the addresses that the gateway has stored for sources
chosen() {
	pf gateway -sS | sed -n 's/^192.168.100.2 nat-to \([^ ]*\) .*/\1/p'
}

filter gateway <<'END'
table <outer> { 192.168.10.81, 192.168.10.82 }
pass
pass out log on wan0 inet proto udp nat-to <outer> round-robin sticky-address
END
daemon gateway
same "UDP" passed "$(probe_udp client "$SERVER4" 53)"
first=$(chosen)
holds "a node that names the address" test -n "$first"
for _ in 1 2 3; do
	same "UDP" passed "$(probe_udp client "$SERVER4" 53)"
done
same "the address that it got" "$first" "$(chosen)"
same "states with it" 4 "$(pf gateway -ss | grep -c "udp $first:")"
same "of one node" "( states 4, connections 0," \
	"$(pf gateway -sS | grep -o '( states 4, connections 0,')"

pf gateway -q -t outer -T delete "$first"
same "UDP, when the address has left the pool" passed "$(probe_udp client "$SERVER4" 53)"
holds "another address" test "$(chosen)" != "$first"
same "its node counts no old states" 1 "$(pf gateway -sS | grep -c '( states 1,')"
same "which are nobody's" 1 "$(pf gateway -ss -v | grep -c source-track)"

# the log records have the translated addresses, and a flag that the addresses were rewritten
log=$WORK/gateway-pflog0
await 5 has_records 1 "$log" .
same "pflog: rewritten, source as translated" "01 192.168.10" "$(python3 - "$log" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
header = data[24 + 16:]
print("%02x" % header[61], ".".join(str(byte) for byte in header[64:67]))
END
)"

filter gateway <<'END'
pass
pass out on wan0 inet proto udp nat-to (wan0:0) port 50000:50001
END
pf gateway -q -F states
cat >"$WORK/flows.py" <<'END'
# as many flows as asked for to one server, then a line on the first of them again: who is answered
import socket, sys
flows = []
for number in range(int(sys.argv[3])):
    flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    flow.settimeout(0.5)
    flows.append(flow)
def answered(flow):
    flow.sendto(b"hello\n", (sys.argv[1], int(sys.argv[2])))
    try:
        return flow.recv(100) == b"hello\n"
    except OSError:
        return False
print("".join("y" if answered(flow) else "n" for flow in flows + flows[:1]))
END
before=$(reason gateway translate)
same "two ports for three flows; the first goes on" yyny \
	"$(on client python3 "$WORK/flows.py" "$SERVER4" 53 3)"
same "which is counted" $((before + 1)) "$(reason gateway translate)"

# some ports do not allow to predict the next
filter gateway <<'END'
pass
pass out on wan0 inet proto udp nat-to (wan0:0)
END
pf gateway -q -F states
on client python3 "$WORK/flows.py" "$SERVER4" 53 16 >/dev/null
ports=$(pf gateway -ss | sed -n 's/.*udp 192.168.10.81:\([0-9]*\) (.*/\1/p' | sort -n)
same "ports of 16 flows" 16 "$(wc -l <<<"$ports")"
at_least 1000 "from the lowest to the highest" $(($(tail -1 <<<"$ports") - $(head -1 <<<"$ports")))
verdict
