# A tunnel between the gateway and the server: the outer packets are filtered on their interface,
# and the inner packets on the tunnel's interface.
#
#                           tun0 ======================= tun0
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
for to in "gateway 192.168.10.81 192.168.10.2 1" "server 192.168.10.2 192.168.10.81 2"; do
	read -r name local remote number <<<"$to"
	on "$name" ip link add tun0 type vxlan id 7 local "$local" remote "$remote" dstport 4789 \
		2>/dev/null ||
		unable "this kernel has no VXLAN"
	on "$name" ip address add "192.168.77.$number/24" dev tun0
	on "$name" ip address add "2001:db8:77::$number/64" dev tun0 nodad
	on "$name" ip link set tun0 up
done
on server ip route replace default via 192.168.77.1
on server ip -6 route replace default via 2001:db8:77::1
web server 80 81

# rules OUTER - loads rules for inner packets, and a rule OUTER for the tunnel's packets
rules() {
	filter gateway <<-END
		block all
		pass in on lan0
		pass on tun0 proto icmp
		pass on tun0 inet6 proto icmp6
		pass out on tun0 proto tcp to port 80
		$1
	END
}
rules "pass on wan0 proto udp to port 4789"
for address in 192.168.77.2 2001:db8:77::2; do
	await 3 eval '[ "$(probe_ping client '$address')" = passed ]'
	same "ping through the tunnel, $address" passed "$(probe_ping client $address)"
	same "web, which passes inside, $address" passed "$(probe_web client $address 80)"
	same "web, which is blocked inside, $address" "no answer" "$(probe_web client $address 81)"
done
at_least 1 "states of the tunnel itself" "$(state_count gateway '^[a-z]* udp .*:4789')"
at_least 2 "states of what is inside" "$(state_count gateway 'tcp.*192.168.77.2:80')"
rules "pass on wan0 proto udp to port 4790"
pf gateway -q -F states
for address in 192.168.77.2 2001:db8:77::2; do
	same "the tunnel is blocked outside, $address" "no answer" "$(probe_ping client $address)"
done
verdict
