# `block return` answers the sender of a packet at once: a host behind the router, if the packet is
# blocked on its way in or out, and a program on the router.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 81 82 83
web gateway 81
echo_server server 91
echo_server server 92
echo_server gateway 91

filter gateway <<'END'
pass all
block return in on lan0 proto { tcp udp } to port { 81 91 }
block return out on wan0 proto { tcp udp } to port { 82 92 }
block return-icmp in on lan0 inet proto tcp to port 83
block return-icmp6 in on lan0 inet6 proto tcp to port 83
END
for address in $SERVER4 $SERVER6; do
	same "passed, TCP, $address" passed "$(probe_web client $address 80)"
	same "on the way in, TCP, $address" refused "$(probe_web client $address 81)"
	same "on the way in, UDP, $address" refused "$(probe_udp client $address 91)"
	same "on the way out, TCP, $address" refused "$(probe_web client $address 82)"
	same "on the way out, UDP, $address" refused "$(probe_udp client $address 92)"
	same "the router's own, TCP, $address" refused "$(probe_web gateway $address 82)"
	same "the router's own, UDP, $address" refused "$(probe_udp gateway $address 92)"
	# The answer may come while the client is still busy with its SYN; then the client accepts
	# the next answer.
	same "an ICMP error for TCP, $address" refused "$(PATIENCE=4 probe_web client $address 83)"
done
for address in 192.168.100.1 2001:db8:100::1; do
	same "to the router itself, TCP, $address" refused "$(probe_web client $address 81)"
	same "to the router itself, UDP, $address" refused "$(probe_udp client $address 91)"
done
verdict
