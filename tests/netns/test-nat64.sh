# A network without IPv4, a network without IPv6, and a gateway between them that translates
# (af-to), as real programs see it: transfers with and without GSO packets, datagrams, echo, errors
# of the network and of the gateway itself, in both directions; and with synproxy and syncookies.
. "$(dirname "$0")/lab.sh"
gateway_between_families
web server 80
web client 80
echo_server server 53

filter gateway <<'END_OF_RULES'
block all
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0)
pass in on wan0 inet proto { tcp, icmp } to 192.168.10.100 af-to inet6 from 2001:db8:64::/96 to 2001:db8:100::2
END_OF_RULES

head -c 20M /dev/urandom >"$WORK/www/random"
for offload in 1 0; do
	for pair in client:eth0 gateway:lan0 gateway:wan0 server:eth0; do
		offloads "${pair%:*}" "${pair#*:}" $offload
	done
	same "a transfer from IPv4 to IPv6, offloads $offload" "$(sha256sum <"$WORK/www/random")" \
		"$(digest client $SERVER64 80)"
	same "a transfer from IPv6 to IPv4, offloads $offload" "$(sha256sum <"$WORK/www/random")" \
		"$(digest server 192.168.10.100 80)"
	same "web, offloads $offload" passed "$(probe_web client $SERVER64 80)"
	same "UDP, offloads $offload" passed "$(probe_udp client $SERVER64 53)"
	same "echo to IPv4, offloads $offload" passed "$(probe_ping client $SERVER64)"
	same "echo to IPv6, offloads $offload" passed "$(probe_ping server 192.168.10.100)"
done
pf gateway -ss
at_least 1 "states between the families" \
	"$(pf gateway -ss | grep \
	-c '^all tcp 192.168.10.81:[0-9]* (2001:db8:100::2\[[0-9]*\]) -> 192.168.10.2:80 (64:ff9b::c0a8:a02\[80\])')"

same "a closed port, told in IPv4, heard in IPv6" "refused" "$(ask_udp client $SERVER64 9999)"

# hops HOST ADDRESS HOPS - prints the sender of the time-exceeded error about an echo request
hops() {
	on "$1" ping -n -c 1 -W 2 -t "$3" "$2" | sed -n 's/^From \([^ ]*\) .*/\1/p'
}
same "the gateway is the first hop" 2001:db8:100::1 "$(hops client $SERVER64 1)"

# Fragments are reassembled before translation.
daemon gateway
on client ip route change default via 2001:db8:100::1 mtu 1280
same "echo in fragments" "1 received" \
	"$(on client ping -n -c 1 -W 3 -s 1400 $SERVER64 | grep -o '1 received')"
on client ip route change default via 2001:db8:100::1

# The link to the server has a smaller MTU: TCP gets the error and continues, in both directions.
on gateway ip link set wan0 mtu 1300
on server ip link set eth0 mtu 1300
same "a transfer over a shorter link" "$(sha256sum <"$WORK/www/random")" \
	"$(digest client $SERVER64 80)"
same "a transfer to a shorter link" "$(sha256sum <"$WORK/www/random")" \
	"$(digest server 192.168.10.100 80)"
same "too long for the link" 1320 "$(on client python3 - $SERVER64 <<'END_OF_PROGRAM'
import socket, sys, time
IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, IPV6_MTU = 23, 2, 24
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO)
s.connect((sys.argv[1], 53))
s.send(b"x" * 1400)
time.sleep(0.3)
print(s.getsockopt(socket.IPPROTO_IPV6, IPV6_MTU))
END_OF_PROGRAM
)"

# There is no route.
on gateway ip route add prohibit 203.0.113.0/24
same "an address without a way" "No route" \
	"$(on client ping -n -c 1 -W 2 64:ff9b::203.0.113.1 | grep -o 'No route')"

# The gateway completes the handshake with the client in its family, and then with the server in the
# other family.
for rules in "" "set syncookies always"; do
	state=
	[ -n "$rules" ] || state="synproxy state"
	filter gateway <<-END_OF_RULES
		$rules
		block all
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass in on lan0 inet6 proto tcp to 64:ff9b::/96 af-to inet from (wan0:0) $state
		pass in on wan0 inet proto tcp to 192.168.10.100 af-to inet6 from 2001:db8:64::/96 to 2001:db8:100::2 $state
	END_OF_RULES
	for offload in 1 0; do
		for pair in client:eth0 gateway:lan0 gateway:wan0 server:eth0; do
			offloads "${pair%:*}" "${pair#*:}" $offload
		done
		same "a transfer from IPv4, ${state:-$rules}, offloads $offload" \
			"$(sha256sum <"$WORK/www/random")" "$(digest client $SERVER64 80)"
		same "a transfer from IPv6, ${state:-$rules}, offloads $offload" \
			"$(sha256sum <"$WORK/www/random")" "$(digest server 192.168.10.100 80)"
	done
done
at_least 4 "cookies that came back" \
	"$(pf gateway -si -v | awk '/syncookies validated/ { print $3 }')"
verdict
