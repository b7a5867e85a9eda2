# Translation of addresses and ports with single packets: legacy nat, rdr and binat, and nat-to,
# rdr-to and binat-to of match and pass rules; exemptions, pools, static ports, prefixes, and af-to.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
# another client and another server; no host has the addresses a4, a6 and b4
peer d4 lan0 client 192.168.100.10
peer t4 wan0 server 192.168.10.10
peer a4 wan0 server 192.168.10.82
peer r6 wan0 server 2001:db8:10::3
ADDRESSES+=" b4=192.168.10.83 a6=2001:db8:10::82 s64=64:ff9b::c0a8:a09 n6=2001:db8:99::9"
NEIGHBOURS="pass quick inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state"

# independent - checks that one endpoint keeps its outer port for all destinations
independent() {
	converse <<-END
		# $1: one port outside for all destinations
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times a4 s4 udp \$p 50
		client sends 5 times c4 t4 udp 1000 50
		server hears 5 times a4 t4 udp \$p 50
		client sends 5 times c4 t4 udp 1000 51
		server hears 5 times a4 t4 udp \$p 51
		server sends 5 times t4 a4 udp 51 \$p
		client hears 5 times t4 c4 udp 51 1000
		# $1: another endpoint has another
		client sends c4 s4 udp 1001 50
		server hears a4 s4 udp !\$p 50
		client sends d4 s4 udp 1000 50
		server hears a4 s4 udp !\$p 50
	END
}
# redirected - checks the redirection of a4, in both families, with an exemption of d4
redirected() {
	converse <<-END
		# $1: to another host and port, in both families
		client sends 5 times c4 a4 udp 1000 50
		server hears 5 times c4 s4 udp 1000 60
		server sends 5 times s4 c4 udp 60 1000
		client hears 5 times a4 c4 udp 50 1000
		client sends c6 a6 tcp 1000 50 S 1000 0
		server hears c6 s6 tcp 1000 60 S 1000 0
		server sends s6 c6 tcp 60 1000 SA 5000 1001
		client hears a6 c6 tcp 50 1000 SA 5000 1001
		# $1: an exemption of one client
		client sends d4 a4 udp 1000 50
		server hears d4 a4 udp 1000 50
	END
}
# both_ways - checks that c4 is a4 outside
both_ways() {
	converse <<-END
		# $1: out and in
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times a4 s4 udp 1000 50
		server sends 5 times s4 a4 udp 50 1000
		client hears 5 times s4 c4 udp 50 1000
		server sends 5 times t4 a4 udp 2000 51
		client hears 5 times t4 c4 udp 2000 51
		client sends 5 times c4 t4 udp 51 2000
		server hears 5 times a4 t4 udp 51 2000
		# $1: another client keeps its address
		client sends d4 s4 udp 1000 50
		server hears d4 s4 udp 1000 50
	END
}

translations() {
	local dropped
	rules <<-END
		nat on wan0 inet proto udp from 192.168.100.0/24 to any port 50:51 \
			-> 192.168.10.82 endpoint-independent
		pass
	END
	independent nat
	rules <<-END
		pass
		match out on wan0 inet proto udp from any to any port 50:51 nat-to 192.168.10.82 \
			endpoint-independent
	END
	independent nat-to
	rules <<-END
		pass
		match out on wan0 inet proto udp from any to any port 50:51 nat-to 192.168.10.82
	END
	converse <<-END
		# without it, a port for each destination
		client sends c4 s4 udp 1000 50
		server hears a4 s4 udp \$p 50
		client sends c4 t4 udp 1000 50
		server hears a4 t4 udp !\$p 50
	END
	rules <<-END
		pass
		match out on wan0 inet proto udp to any port 50 \
			nat-to { 192.168.10.82, 192.168.10.83 } round-robin static-port
	END
	converse <<-END
		# a list in turn; static-port
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times a4 s4 udp 1000 50
		client sends 5 times c4 s4 udp 1001 50
		server hears 5 times b4 s4 udp 1001 50
		client sends 5 times c4 s4 udp 1002 50
		server hears 5 times a4 s4 udp 1002 50
	END

	rules <<-END
		no rdr on lan0 inet proto udp from 192.168.100.10 to 192.168.10.82
		rdr on lan0 inet proto udp from any to 192.168.10.82 port 50 -> 192.168.10.9 port 60
		rdr on lan0 inet6 proto tcp from any to 2001:db8:10::82 port 50 \
			-> 2001:db8:10::9 port 60
		block
		$NEIGHBOURS
		pass in on lan0 proto { tcp, udp } to port 60
		pass in on lan0 inet proto udp from 192.168.100.10
		pass out on wan0
	END
	redirected rdr
	rules <<-END
		block
		$NEIGHBOURS
		pass in quick on lan0 inet proto udp from 192.168.100.10
		pass in on lan0 inet proto udp to 192.168.10.82 port 50 rdr-to 192.168.10.9 port 60
		pass in on lan0 inet6 proto tcp to 2001:db8:10::82 port 50 \
			rdr-to 2001:db8:10::9 port 60
		pass out on wan0
	END
	redirected rdr-to

	# a packet that would conflict with another flow behind the redirection is dropped
	rules <<-END
		pass
		pass in on lan0 inet proto udp to 192.168.10.82/31 rdr-to 192.168.10.9
	END
	converse <<-END
		# one port of a client, to two addresses of a server
		client sends 5 times c4 a4 udp 1000 50
		server hears 5 times c4 s4 udp 1000 50
		client sends 5 times c4 b4 udp 1000 50
		client sends 5 times c4 b4 udp 1001 50
		server hears 5 times c4 s4 udp 1001 50
		server sends 5 times s4 c4 udp 50 1001
		client hears 5 times b4 c4 udp 50 1001
		server sends 5 times s4 c4 udp 50 1000
		client hears 5 times a4 c4 udp 50 1000
	END

	# legacy translation rules with `pass` skip the filter rules
	rules <<-END
		rdr pass on lan0 inet proto udp from any to 192.168.10.82 port 50 -> 192.168.10.9
		nat pass on wan0 inet proto udp from any to any port 50 -> 192.168.10.83 static-port
		rdr on lan0 inet proto udp from any to 192.168.10.82 port 51 -> 192.168.10.9
		block
	END
	converse <<-END
		# rdr pass and nat pass
		client sends 5 times c4 a4 udp 1000 50
		server hears 5 times b4 s4 udp 1000 50
		server sends 5 times s4 b4 udp 50 1000
		client hears 5 times a4 c4 udp 50 1000
		client sends c4 a4 udp 1000 51
	END

	rules <<-END
		binat on wan0 inet from 192.168.100.9 to any -> 192.168.10.82
		pass
	END
	both_ways binat
	rules <<-END
		pass
		match on wan0 inet from 192.168.100.9 to any binat-to 192.168.10.82
	END
	both_ways "binat-to of a match rule"
	rules <<-END
		pass
		pass on wan0 inet from 192.168.100.9 to any binat-to 192.168.10.82
	END
	both_ways "binat-to of a pass rule"

	rules <<-END
		block
		pass in on lan0 inet proto udp to port 50 nat-to 192.168.10.83 static-port
		pass out on wan0 inet proto udp from 192.168.10.83
	END
	converse <<-END
		# nat-to where packets come in
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times b4 s4 udp 1000 50
		server sends 5 times s4 b4 udp 50 1000
		client hears 5 times s4 c4 udp 50 1000
	END

	# IPv6 prefixes keep the host part; errors are translated back, also from another router
	rules <<-END
		pass
		match on wan0 inet6 from 2001:db8:100::/64 binat-to 2001:db8:99::/64 bitmask
		pass out on wan0 inet6 proto udp to port 51 route-to 2001:db8:10::3
	END
	converse <<-END
		# binat-to of a prefix, and an error
		client sends 5 times c6 s6 udp 1000 50
		server hears 5 times n6 s6 udp 1000 50
		server sends 5 times s6 n6 udp 50 1000
		client hears 5 times s6 c6 udp 50 1000
		server sends r6 n6 icmp 3 0 about n6 s6 udp 1000 50
		client hears r6 c6 icmp 3 0 about c6 s6 udp 1000 50
		# the same by way of a next hop
		client sends 5 times c6 s6 udp 1000 51
		server hears 5 times n6 s6 udp 1000 51
		server sends r6 n6 icmp 1 0 about n6 s6 udp 1000 51
		client hears r6 c6 icmp 1 0 about c6 s6 udp 1000 51
	END

	# a pool without an address drops packets; and ports of a MAP-E port set
	rules <<-END
		table <none> persist
		nat on wan0 inet proto udp from any to any port 51 \
			-> 192.168.10.82 map-e-portset 6/8/52
		pass
		match out on wan0 inet proto udp to port 50 nat-to <none> round-robin
		pass in on lan0 inet proto udp to port 52 route-to <none>
	END
	dropped=$(reason gateway translate)
	converse <<-END
		# no address in the pool
		client sends 3 times c4 s4 udp 1000 50
		# a port of the set
		client sends 3 times c4 s4 udp 1000 51
		server hears 3 times a4 s4 udp any 51
		client sends 3 times c4 t4 udp 1001 51
		server hears 3 times a4 t4 udp any 51
	END
	same "$MODE: dropped for want of an address" $((dropped + 3)) "$(reason gateway translate)"
	same "$MODE: bits of the set in each port" "52 52" \
		"$(pf gateway -ss | sed -n 's/.* 192\.168\.10\.82:\([0-9]*\) (.*/\1/p' |
		awk '{ print int($1 / 4) % 256 }' | xargs)"
	converse <<-END
		# no next hop in the pool
		client sends 3 times c4 s4 udp 1000 52
	END

	rules <<-END
		table <outer> { 192.168.10.82, 192.168.10.83, 2001:db8:9::/64 }
		block
		$NEIGHBOURS
		pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from <outer> round-robin
	END
	converse <<-END
		# af-to: addresses of a table in turn; the traffic class without the ECN bits
		client sends 5 times c6 s64 udp 1000 50
		server hears 5 times a4 s4 df udp \$p 50
		client sends 5 times c6 s64 tos 0xb9 udp 1001 50
		server hears 5 times b4 s4 tos 0xb8 df udp \$q 50
		client sends 5 times c6 s64 udp 1002 50
		server hears 5 times a4 s4 df udp any 50
		server sends 5 times s4 b4 tos 0x2a udp 50 \$q
		client hears 5 times s64 c6 tos 0x28 udp 50 1001
		server sends 5 times s4 a4 udp 50 \$p
		client hears 5 times s64 c6 udp 50 1000
		client sends 5 times c6 s64 icmp 128 0 7 1
		server hears 5 times b4 s4 df icmp 8 0 \$id 1
		server sends 5 times s4 b4 icmp 0 0 \$id 1
		client hears 5 times s64 c6 icmp 129 0 7 1
	END
}
in_every_mode translations
verdict
