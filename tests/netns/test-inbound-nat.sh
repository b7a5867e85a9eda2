# nat-to on inbound packets, to an address of the outer network that no host has: answers reach the
# client. As on OpenBSD, the outer network must send the answers to the gateway: by a route, or
# because Linux answers ARP for the address.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53
web server 80

# works NAME - checks connections from the client to the server in both families
works() {
	local server
	for server in "$SERVER4" "$SERVER6"; do
		same "$1: echo to $server" passed "$(probe_ping client "$server")"
		same "$1: UDP to $server" passed "$(probe_udp client "$server" 53)"
		same "$1: TCP to $server" passed "$(PATIENCE=5 probe_web client "$server" 80)"
	done
}
rules="pass
pass in on lan0 inet to $SERVER4 nat-to 192.168.10.99
pass in on lan0 inet6 to $SERVER6 nat-to 2001:db8:10::99"

# a router, or the server itself, has a route to the address
on server ip route add 192.168.10.99/32 via 192.168.10.81
on server ip -6 route add 2001:db8:10::99/128 via 2001:db8:10::81
for forward in yes no auto; do
	filter gateway <<-END_OF_RULES
		set fast-forward $forward
		$rules
	END_OF_RULES
	works "a route, fast-forward $forward"
	pf gateway -q -F states
done
same "the gateway looks for nobody" "" \
	"$(on gateway ip neighbour show to 192.168.10.99; on gateway ip neighbour show to 2001:db8:10::99)"
on server ip route del 192.168.10.99/32
on server ip -6 route del 2001:db8:10::99/128

# Linux answers ARP for the address; an IPv4 address needs a route by another interface
filter gateway <<<"$rules"
on gateway ip route add 192.168.10.99/32 dev lan0
on gateway ip neighbour add proxy 192.168.10.99 dev wan0
on gateway sh -c 'echo 1 >/proc/sys/net/ipv6/conf/wan0/proxy_ndp'
on gateway ip -6 neighbour add proxy 2001:db8:10::99 dev wan0
works "proxy ARP"
verdict
