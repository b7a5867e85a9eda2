# A gateway with NAT and port forwarding, as real programs see it: transfers with and without GSO
# packets, checksums by the card or by the kernel, ICMP errors, and connections from inside to an
# inside host by the outer address.
#
#   client, dmz (inside)        gateway            server (outside)
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   192.168.100.2                192.168.10.81     192.168.10.2
. "$(dirname "$0")/lab.sh"
gateway_with_dmz
web server 80
web dmz 80
echo_server server 53
# Outside hosts have no routes to the inside networks.
on server ip route del default

filter gateway <<'END_OF_RULES'
block all
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0
pass out on wan0 inet nat-to (wan0:0)
pass in on wan0 inet proto tcp to (wan0:0) port 8080 rdr-to 192.168.200.2 port 80
pass out on dmz0
# reflection: from inside to the outer address
pass in quick on lan0 inet proto tcp to 192.168.10.81 port 8080 rdr-to 192.168.200.2 port 80
END_OF_RULES

head -c 20M /dev/urandom >"$WORK/www/random"
for offload in 1 0; do
	for pair in client:eth0 gateway:lan0 gateway:wan0 gateway:dmz0 server:eth0 dmz:eth0; do
		offloads "${pair%:*}" "${pair#*:}" $offload
	done
	same "a transfer from outside, offloads $offload" "$(sha256sum <"$WORK/www/random")" \
		"$(digest client "$SERVER4" 80)"
	same "a transfer to outside, offloads $offload" "$(sha256sum <"$WORK/www/random")" \
		"$(digest server 192.168.10.81 8080)"
	same "web, offloads $offload" passed "$(probe_web client "$SERVER4" 80)"
	same "UDP, offloads $offload" passed "$(probe_udp client "$SERVER4" 53)"
	same "ping, offloads $offload" passed "$(probe_ping client "$SERVER4")"
	same "web to the outer address, offloads $offload" passed \
		"$(probe_web server 192.168.10.81 8080)"
	same "web from inside to the outer address, offloads $offload" passed \
		"$(probe_web client 192.168.10.81 8080)"
done
pf gateway -ss
at_least 1 "states with the address of the gateway" \
	"$(pf gateway -ss | grep -c '192.168.10.81:[0-9]* (192.168.100.2')"

# An error about a datagram goes to its sender.
same "a closed port" refused "$(ask_udp client "$SERVER4" 9999)"

# A new destination of an outbound packet is routed: for packets of the gateway itself, and for
# forwarded ones. The routing table leads all of them to the server.
web client 80
on gateway ip route add 203.0.113.0/24 via "$SERVER4"
on dmz ip route add 203.0.113.0/24 via 192.168.200.1
filter gateway <<'END_OF_RULES'
pass
pass out on wan0 inet proto tcp to 203.0.113.9 rdr-to 192.168.100.2
END_OF_RULES
pf gateway -q -F states
same "its own packets, to another link" passed "$(probe_web gateway 203.0.113.9 80)"
same "packets that come through" passed "$(probe_web dmz 203.0.113.9 80)"
at_least 2 "states of the other destination" \
	"$(pf gateway -ss | grep -c '192.168.100.2:80 (203.0.113.9:80')"
same "none of it went to the server" 0 "$(on server ss -Htan | grep -c '192.168.100.2')"
verdict
