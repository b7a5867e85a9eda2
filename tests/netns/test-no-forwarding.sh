# A host that does not forward. As on OpenBSD it forwards no reassembled fragments, forwards by no
# table of an `rtable` rule, and translates nothing to the other family. A route-to rule still sends
# packets on. A router with the same rules forwards all of them. If one interface alone has
# `forwarding`, the host is no router of IPv6: Linux asks the setting of all interfaces.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
on gateway ip route add 192.168.10.0/24 dev wan0 table 7

# forwards 0|1 - switches forwarding on the gateway
forwards() {
	on gateway sh -c "echo $1 >/proc/sys/net/ipv4/ip_forward
		echo $1 >/proc/sys/net/ipv6/conf/all/forwarding"
}

# asked - prints the number of echo requests that have reached the server
asked() {
	on server awk '/^Icmp: [0-9]/ { n += $10 } /^Icmp6InEchos / { n += $2 } END { print n }' \
		/proc/net/snmp /proc/net/snmp6
}

# arrivals OPTION... - prints the number of a ping's requests that reach the server
arrivals() {
	local before
	before=$(asked)
	on client ping -n -q -c 1 -W "$patience" "$@" >/dev/null 2>&1
	echo $(($(asked) - before))
}

for router in 1 0; do
	forwards $router
	for fast in yes no; do
		filter gateway <<-END_OF_RULES
			set fast-forward $fast
			set skip on lo
			pass
			pass in on lan0 inet proto icmp rtable 7
			pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0)
			pass in on lan0 inet proto icmp tos 4 route-to 192.168.10.2
		END_OF_RULES
		[ -n "${PROCESSES[skipstepd-gateway]-}" ] || daemon gateway
		await 5 on gateway ip link show pffrag0
		patience=3
		[ $router = 1 ] || patience=0.5
		same "IPv6, router $router, fast-forward $fast" $router "$(arrivals $SERVER6)"
		same "fragments of IPv6, router $router, fast-forward $fast" $router \
			"$(arrivals -s 5000 $SERVER6)"
		same "rtable, router $router, fast-forward $fast" $router "$(arrivals $SERVER4)"
		same "af-to, router $router, fast-forward $fast" $router \
			"$(arrivals 64:ff9b::$SERVER4)"
		same "route-to, router $router, fast-forward $fast" 1 "$(arrivals -Q 4 $SERVER4)"
		same "the gateway itself, router $router, fast-forward $fast" "1 received" \
			"$(on client ping -n -q -c 1 -W 3 -s 5000 2001:db8:100::1 |
			grep -o '1 received')"
	done
done
same "a warning names the setting" "sysctl -w net.ipv4.ip_forward=1" \
	"$(echo "pass in inet6 af-to inet from 192.0.2.1" | pf gateway -f - 2>&1 | grep -o 'sysctl.*')"
one_by_one_server server "$SERVER6"
for fast in yes no; do
	filter gateway <<-END_OF_RULES
		set fast-forward $fast
		set skip on lo
		pass no state
	END_OF_RULES
	forwards 1
	same "UDP over IPv6, a router, fast-forward $fast" 20 \
		"$(one_by_one client "$SERVER6" 20 | cut -d " " -f 1)"
	on gateway sysctl -qw net.ipv6.conf.all.forwarding=0 net.ipv6.conf.lan0.forwarding=1 \
		net.ipv6.conf.wan0.forwarding=1
	same "UDP over IPv6, lan0 forwards alone, fast-forward $fast" 0 \
		"$(one_by_one client "$SERVER6" 3 | cut -d " " -f 1)"
	same "IPv6, lan0 forwards alone, fast-forward $fast" 0 "$(arrivals "$SERVER6")"
	same "fragments of IPv6, lan0 forwards alone, fast-forward $fast" 0 \
		"$(arrivals -s 5000 "$SERVER6")"
done
forwards 1
same "a router is not warned" "" \
	"$(echo "pass in inet6 af-to inet from 192.0.2.1" | pf gateway -f - 2>&1 | grep warning)"
verdict
