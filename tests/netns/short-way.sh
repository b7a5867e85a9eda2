# Common parts of the tests of the fast path. Packets between client and server of
# gateway_between_client_and_server are echoed one by one; meanwhile the kernel gets reasons not to
# forward them.
. "$(dirname "$0")/lab.sh"

# the host in the middle, whose counters show the path of the packets
MIDDLE=gateway

# between_drivers - prepares veth for XDP redirects: the other end accepts redirected frames with
# GRO, and packets need complete checksums, because no card computes them
between_drivers() {
	local end
	for end in client server; do
		offloads "$end" eth0 1 gro
		offloads "$end" eth0 0 tx-checksum
	done
}

# each_way COMMAND... - runs COMMAND once for each evaluator, and for the slow path, tc fast path
# and XDP fast path; the last two arguments are the lines of settings
each_way() {
	local evaluator way
	for evaluator in linear skip-steps compiled; do
		for way in "fast-forward no" "fast-forward yes" "xdp on any"; do
			"$@" "set evaluator $evaluator" "set $way"
		done
	done
}

# ask ADDRESS COUNT [PAUSE [PORT [TOS]]] - sends datagrams; prints the number of answers, and the
# TTL at the server
ask() {
	one_by_one client "$@"
}

# by tc|XDP - prints the number of packets redirected past the kernel's forwarding
by() {
	pf "$MIDDLE" -si -v | awk -v by="$1" \
		'/^Fast Forward/ { here = 1 } here && $1 == by { print $2 }' | grep . || echo 0
}

# goes_on SERVER - prints the number of answers to 20 datagrams; afterwards the cached route is
# fresh
goes_on() {
	ask "$1" 20 | cut -d' ' -f1
}

# stops SERVER COMMAND... - runs COMMAND on the gateway; prints the number of answers to 3 datagrams
stops() {
	local server=$1
	shift
	on gateway "$@" || die "cannot $*"
	ask "$server" 3 | cut -d' ' -f1
}

# xdp_comes_and_goes SERVER TTL - checks that none of 1500 datagrams is lost while rules enable and
# disable XDP six times, and that the server sees this TTL
xdp_comes_and_goes() {
	local times
	rules none
	ask "$1" 20 >/dev/null
	start flow client python3 "$(dirname "$0")/one-by-one.py" ask "$1" 1500 0.001
	for times in 1 2 3 4 5 6; do
		rules any
		sleep 0.15
		rules none
		sleep 0.15
	done
	await 10 grep -q . "$WORK/flow.log"
	same "no packet is lost when XDP comes and goes" "1500 $2" "$(cat "$WORK/flow.log")"
}

# kernel_has_its_way WHAT - checks that changes of the kernel's forwarding are effective at once
kernel_has_its_way() {
	same "$1: at first" 20 "$(goes_on "$SERVER4")"
	same "a route that goes away" 0 "$(stops "$SERVER4" ip route add blackhole "$SERVER4")"
	on gateway ip route delete blackhole "$SERVER4"
	same "and comes back" 20 "$(goes_on "$SERVER4")"
	same "a router that is none any more" 0 \
		"$(stops "$SERVER4" sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward')"
	on gateway sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	same "and is one again" 20 "$(goes_on "$SERVER4")"
	same "an interface that is none any more" 0 \
		"$(stops "$SERVER4" sh -c 'echo 0 >/proc/sys/net/ipv4/conf/lan0/forwarding')"
	on gateway sh -c 'echo 1 >/proc/sys/net/ipv4/conf/lan0/forwarding'
	same "and is one again" 20 "$(goes_on "$SERVER4")"
	same "a rule of routing" 0 "$(stops "$SERVER4" ip rule add to "$SERVER4" blackhole)"
	on gateway ip rule delete to "$SERVER4" blackhole
	same "that goes away" 20 "$(goes_on "$SERVER4")"
	same "over IPv6: at first" 20 "$(goes_on "$SERVER6")"
	same "over IPv6: a route that goes away" 0 \
		"$(stops "$SERVER6" ip -6 route add blackhole "$SERVER6")"
	on gateway ip -6 route delete blackhole "$SERVER6"
	same "over IPv6: and comes back" 20 "$(goes_on "$SERVER6")"
	same "over IPv6: a rule of routing" 0 \
		"$(stops "$SERVER6" ip -6 rule add to "$SERVER6" blackhole)"
	on gateway ip -6 rule delete to "$SERVER6" blackhole
	same "over IPv6: that goes away" 20 "$(goes_on "$SERVER6")"
	same "a rule of netfilter" 0 \
		"$(stops "$SERVER4" nft \
		'table ip t { chain c { type filter hook forward priority 0; policy drop; }; }')"
	on gateway nft delete table ip t
	same "that goes away" 20 "$(goes_on "$SERVER4")"
	on gateway ip route add blackhole "$SERVER4" tos 0x10
	same "a route for another type of service" 20 "$(goes_on "$SERVER4")"
	same "that packets of the same state go by" 0 "$(ask "$SERVER4" 3 0 7 16 | cut -d' ' -f1)"
	on gateway ip route delete blackhole "$SERVER4" tos 0x10
	same "and others do not" 20 "$(goes_on "$SERVER4")"
}

# flow ADDRESS - sends packets for some seconds, answered or not
flow() {
	ask "$1" 10 0.35 >/dev/null
}

# kernel_has_its_way_soon - checks that changes of the kernel's forwarding are effective within
# three seconds, also for a steady flow
kernel_has_its_way_soon() {
	on gateway ip -6 route delete 2001:db8:10::/64 dev wan0
	flow "$SERVER6"
	same "over IPv6: a route that is deleted, while packets go on" 0 "$(stops "$SERVER6" true)"
	on gateway ip -6 route add 2001:db8:10::/64 dev wan0
	same "over IPv6: and is there again" 20 "$(goes_on "$SERVER6")"
	on gateway sh -c 'echo 0 >/proc/sys/net/ipv6/conf/all/forwarding'
	flow "$SERVER6"
	same "over IPv6: a router that is none any more, while packets go on" 0 \
		"$(stops "$SERVER6" true)"
	on gateway sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
	same "over IPv6: and is one again" 20 "$(goes_on "$SERVER6")"
	on gateway ip neighbour replace "$SERVER4" lladdr 02:00:00:00:00:99 dev wan0 nud permanent
	flow "$SERVER4"
	same "a neighbour with another link address, while packets go on" 0 \
		"$(stops "$SERVER4" true)"
	on gateway ip neighbour delete "$SERVER4" dev wan0
	same "that has its own again" 20 "$(flow "$SERVER4"; goes_on "$SERVER4")"
}
