# The kernel's own bridge, without addresses. Packets that cross it are filtered on its ports,
# inbound and outbound, like on a bridge of skipstep's own (test-bridge.sh). The host forwards and
# has routes, but none to a host of this test.
. "$(dirname "$0")/lab.sh"
bridge_between_client_and_server
on bridge sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
	echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
echo_server server 7
web server 80 8080

filter bridge <<-END_OF_RULES
	set block-policy return
	block
	pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
	pass in on port0 proto tcp to port { 80, 443 }
	pass out on port1 proto tcp to port 80
	pass proto icmp from $CLIENT4
	pass proto udp to port 7
	pass in on port0 proto udp to port 9
END_OF_RULES
same "what rules pass crosses" passed "$(probe_web client "$SERVER4" 80)"
same "over IPv6 too" passed "$(probe_web client "$SERVER6" 80)"
same "UDP" passed "$(probe_udp client "$SERVER4" 7)"
same "a ping" passed "$(probe_ping client "$SERVER4")"
same "the other way nothing begins" "no answer" "$(probe_ping server "$CLIENT4")"
same "a state on the way in, and one on the way out" 2 \
	"$(pf bridge -ss | grep -c "tcp.*$SERVER4:80 ")"
for server in "$SERVER4" "$SERVER6"; do
	same "block return in, to $server" refused "$(probe_web client "$server" 8080)"
	same "block return out" refused "$(probe_web client "$server" 443)"
	same "block return in: a datagram" refused "$(probe_udp client "$server" 10)"
	same "block return out: a datagram" refused "$(probe_udp client "$server" 9)"
done
same "64 MB" "$(sha256sum <"$WORK/www/large")" \
	"$(on client curl -s --noproxy '*' --max-time 20 "http://$SERVER4/large" | sha256sum)"

# Translation: frames keep their link addresses, independent of routes.
filter bridge <<-END_OF_RULES
	pass
	pass in on port0 proto tcp to $SERVER4 port 81 rdr-to $SERVER4 port 80
	match out on port1 proto tcp from $CLIENT4 to port 4242 nat-to 192.168.100.9
	pass out on port1 proto tcp to 192.168.100.99 port 82 rdr-to $SERVER4 port 80
END_OF_RULES
witness server 4242
on client ip address add 192.168.100.9/32 dev eth0
on client ip neighbour replace 192.168.100.99 lladdr \
	"$(link_address server eth0)" dev eth0
same "rdr-to on the way in" passed "$(probe_web client "$SERVER4" 81)"
same "rdr-to on the way out" passed "$(probe_web client 192.168.100.99 82)"
same "nat-to on the way out" 192.168.100.9 "$(seen_from client "$SERVER4" 4242)"

# Fragments are reassembled on both ports, and fragmented again for the bridge and for the link.
filter bridge <<-END_OF_RULES
	set reassemble yes
	pass
	block in proto icmp from $SERVER4
	block out on port1 proto udp to port 7
END_OF_RULES
large_ping() { # HOST ADDRESS
	on "$1" ping -n -q -c 2 -s 4000 -W 1 "$2" >/dev/null 2>&1 && echo passed || echo "no answer"
}
same "fragments without skipstepd" "no answer" "$(large_ping client "$SERVER4")"
daemon bridge
same "fragments with it" passed "$(large_ping client "$SERVER4")"
same "over IPv6" passed "$(large_ping client "$SERVER6")"
same "those that rules block" "no answer" "$(large_ping server "$CLIENT4")"
same "what rules block where it leaves" "no answer" "$(
	head -c 4000 /dev/zero | tr '\0' x | on client timeout 1 nc -u -W 1 "$SERVER4" 7 |
		grep -q x || echo no answer)"
verdict
