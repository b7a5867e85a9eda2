# The rule set of examples/gateway.conf as it was published, without the demonstration's additions:
# routed TCP from inside to a few ports, any TCP from outside, ICMP, and the gateway's own traffic.
#
#   client                      gateway                      server
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   192.168.100.2    192.168.100.1    192.168.10.81   192.168.10.2
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 5001 8080
web client 8000
web gateway 22 25
echo_server server 53

filter gateway < <(sed '/^## What the demonstration adds/,$d' "$ROOT/examples/gateway.conf")
same "rules after lists are expanded, without those of scrub" 42 \
	"$(pf gateway -sr | grep -vc "^scrub ")"
same "inside to outside, port 80" passed "$(probe_web client $SERVER4 80)"
same "inside to outside, port 5001" passed "$(probe_web client $SERVER4 5001)"
same "inside to outside, port 8080" "no answer" "$(probe_web client $SERVER4 8080)"
same "outside to inside, port 8000" passed "$(probe_web server $CLIENT4 8000)"
same "ping through" passed "$(probe_ping client $SERVER4)"
same "ping the gateway" passed "$(probe_ping client 192.168.100.1)"
same "UDP through" "no answer" "$(probe_udp client $SERVER4 53)"
same "the gateway's port 22 from outside" passed "$(probe_web server 192.168.10.81 22)"
same "the gateway's port 22 from inside" "no answer" "$(probe_web client 192.168.100.1 22)"
same "the gateway's port 25 from outside" "no answer" "$(probe_web server 192.168.10.81 25)"
same "the gateway out to port 80" passed "$(probe_web gateway $SERVER4 80)"
same "the gateway out to port 8080" "no answer" "$(probe_web gateway $SERVER4 8080)"
same "the gateway asks a name server over UDP" passed "$(probe_udp gateway $SERVER4 53)"
same "the gateway to itself" passed "$(probe_web gateway 127.0.0.1 25)"

# The rules also cover IPv6, but they do not pass neighbour discovery.
for host in client gateway server; do
	on "$host" ip -6 neighbor flush all
done
same "IPv6 without neighbour discovery" "no answer" "$(probe_web client $SERVER6 80)"
verdict
