# pflow: skipstepd reports ended states to a collector as IPFIX, translated or not, in both
# families. Wireshark's dissector reads the reports. Without skipstepd lost reports are counted.
. "$(dirname "$0")/lab.sh"
command -v tshark >/dev/null || unable "tshark is not there"
gateway_between_client_and_server
web server 80
echo_server server 53

filter gateway <<'END_OF_RULES'
set timeout interval 1
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
pass out on wan0
pass in on lan0 proto tcp tos 0 keep state (pflow)
pass in on lan0 proto udp to port 53
pass in on lan0 proto udp to port 10000:18999 keep state (pflow)
pass out on wan0 inet proto tcp nat-to 192.168.10.81 keep state (pflow)
END_OF_RULES

# the collector
start collector server tcpdump -U -i eth0 -w "$WORK/flows.pcap" udp port 4739
await 5 grep -q listening "$WORK/collector.log" || die "tcpdump does not listen"
on server sh -c "exec nc -u -l -k 4739" >/dev/null 2>&1 &
PROCESSES[sink]=$!
reports() {
	start reporter gateway "$BIN/skipstepd" -f "$WORK/pflog" "$@"
	await 5 grep -q "skipstepd: ready" "$WORK/reporter.log" ||
		die "no skipstepd: $(cat "$WORK/reporter.log")"
}
# fields FIELD... - prints these fields of all records in the capture, a line for each message
fields() {
	local arguments=() field
	for field; do
		arguments+=(-e "cflow.$field")
	done
	tshark -r "$WORK/flows.pcap" -d udp.port==4739,cflow -Y cflow.flowset_id \
		-T fields -E occurrence=a "${arguments[@]}" 2>/dev/null
}
# reported PATTERN - true if a line of the records matches
reported() {
	fields srcaddr dstaddr srcaddrv6 srcport dstport protocol | grep -qE "$1"
}

reports -e "$SERVER4:4739" -a 192.168.10.81
same "TCP, IPv4" passed "$(probe_web client "$SERVER4" 80)"
same "TCP, IPv6" passed "$(probe_web client "$SERVER6" 80)"
same "UDP without pflow" passed "$(probe_udp client "$SERVER4" 53)"
holds "the states are marked" test "$(pf gateway -ss -vv | grep -c ', pflow')" -ge 3
read -r sent answered < <(pf gateway -ss -v | grep -A 3 "tcp $SERVER4:80 <- $CLIENT4" |
	sed -n 's/.* \([0-9]*\):\([0-9]*\) bytes.*/\1 \2/p')
holds "states flushed" pf gateway -F states
holds "IPv4 is reported" await 10 reported "$CLIENT4"
holds "IPv6 is reported" await 10 reported "$CLIENT6"
stop reporter
stop collector
same "no UDP state was reported" "" "$(fields protocol | tr ',' '\n' | grep -x 17)"
messages() {
	tshark -r "$WORK/flows.pcap" -d udp.port==4739,cflow -V 2>/dev/null
}
same "the dissector has no complaint" "" \
	"$(messages | grep -iE 'malformed|no template|unexpected|expert' | sort -u)"
same "templates" "256 257 258" \
	"$(messages | sed -n 's/.*Template (Id = \([0-9]*\), Count = [0-9]*).*/\1/p' | sort -u |
	xargs)"
holds "bytes as pfctl showed them" grep -q "Octets: $sent " <<<"$(messages | sed 's/$/ /')"
holds "and those of the answers" grep -q "Octets: $answered " <<<"$(messages | sed 's/$/ /')"
translated=$(messages | grep -A 30 'FlowSet Id: (Data) (257)')
holds "the translated state tells whom the server knows" grep \
	-q "Post NAT Source IPv4 Address: 192.168.10.81" <<<"$translated"
holds "and who it is" grep -q "SrcAddr: $CLIENT4" <<<"$translated"
lan0=$(on gateway ip -o link show lan0 | cut -d: -f1)
holds "interfaces of a state that came in" grep -q "InputInt: $lan0" <<<"$(messages)"


# without skipstepd the ring keeps records up to its size, and the others are counted
lost() {
	pf gateway --json -si | python3 \
		-c 'import json, sys; print(json.load(sys.stdin)["flow_lost"])'
}
same "nothing was lost" 0 "$(lost)"
on client python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(10000, 19000):
    try:
        s.sendto(b"x", (sys.argv[1], port))
    except OSError:
        pass # the server refuses' "$SERVER4"
holds "9000 states" pf gateway -F states
at_least 1000 "lost" "$(lost)"
same "exit status for a collector that is no address" 2 \
	"$("$BIN/skipstepd" -e nowhere >/dev/null 2>&1; echo $?)"
verdict
