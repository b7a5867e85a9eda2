# af-to onto the firewall's own address: a program on the gateway answers a client of the other
# family, at an address on lo or on an interface. As on OpenBSD, packets to the source that af-to
# writes must come back to the gateway: its own address, or a prefix that is routed to lo. The
# answer passes lo, where a rule must pass it and the state translates it back.
. "$(dirname "$0")/lab.sh"
gateway_between_families
on gateway ip address add 10.9.9.9/32 dev lo
on gateway ip address add 2001:db8:9::9/128 dev lo nodad
on gateway ip route add local 10.64.0.0/16 dev lo
on gateway ip -6 route add local 2001:db8:64::/96 dev lo
accepts() {
	on gateway cat /proc/sys/net/ipv4/conf/lo/accept_local
}
same "lo takes packets from own addresses, before" 0 "$(accepts)"
one_by_one_server gateway 10.9.9.9 192.168.10.81 2001:db8:9::9
web gateway 80
# rules SOURCE4 SOURCE6 - loads rules with these sources of af-to
rules() {
	filter gateway <<-END_OF_RULES
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from $1
		pass in on wan0 inet to 192.168.10.100 af-to inet6 from $2 to 2001:db8:9::9
		pass out on lo no state
	END_OF_RULES
}
for sources in "192.168.10.81 2001:db8:100::1" "10.64.0.0/16 2001:db8:64::/96"; do
	# shellcheck disable=SC2086
	rules $sources
	for own in 10.9.9.9 192.168.10.81; do
		same "echo from $sources to $own" passed "$(probe_ping client 64:ff9b::$own)"
		same "UDP from $sources to $own" 1 \
			"$(one_by_one client 64:ff9b::$own 1 | cut -d' ' -f1)"
		same "TCP from $sources to $own" passed "$(PATIENCE=5 probe_web client 64:ff9b::$own 80)"
	done
	same "echo from $sources to IPv6" passed "$(probe_ping server 192.168.10.100)"
	same "UDP from $sources to IPv6" 1 "$(one_by_one server 192.168.10.100 1 | cut -d' ' -f1)"
	same "TCP from $sources to IPv6" passed "$(PATIENCE=5 probe_web server 192.168.10.100 80)"
	pf gateway -q -F states
done

same "lo takes packets from own addresses" 1 "$(accepts)"
pf gateway -q --remove
same "lo takes packets from own addresses, after" 0 "$(accepts)"
filter gateway <<<pass
same "lo takes packets from own addresses, without af-to" 0 "$(accepts)"
verdict
