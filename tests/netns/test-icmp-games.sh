# Forged ICMP, ICMP with the same id from many clients, ICMP errors through translation; and the
# answers of `block return`.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
# another client, another server, and a router behind the gateway
peer d4 lan0 client 192.168.100.10
peer d6 lan0 client 2001:db8:100::10
peer t4 wan0 server 192.168.10.10
peer r4 wan0 server 192.168.10.3
peer r6 wan0 server 2001:db8:10::3

games() {
	# an echo request with the id 0 is no neighbour solicitation
	rules <<-END
		block
		pass quick inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
	END
	converse <<-END
		# an echo with the id 0, where only neighbours are passed
		client sends 3 times c6 s6 icmp 128 0 0 1
		client sends 3 times c6 g6 icmp 128 0 0 1
	END
	rules <<-END
		block
		pass quick inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
		pass inet6 proto icmp6 icmp6-type echoreq
		pass inet proto icmp icmp-type echoreq
	END
	converse <<-END
		# an echo with the id 0, where echoes are passed
		client sends 3 times c6 s6 icmp 128 0 0 1
		server hears 3 times c6 s6 icmp 128 0 0 1
		server sends s6 c6 icmp 129 0 0 1
		client hears s6 c6 icmp 129 0 0 1
		client sends 3 times c4 s4 icmp 8 0 0 1
		server hears 3 times c4 s4 icmp 8 0 0 1
		server sends s4 c4 icmp 0 0 0 1
		client hears s4 c4 icmp 0 0 0 1
		# an answer that nobody asked for
		server sends s4 c4 icmp 0 0 1 1
		server sends s6 c6 icmp 129 0 1 1
	END

	# errors pass with the state of the packet that they quote, to its sender alone
	rules <<-END
		block
		pass quick inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
		pass proto udp to port 53
		pass inet proto icmp icmp-type echoreq
	END
	converse <<-END
		# flows
		client sends 3 times c4 s4 udp 1234 53
		server hears 3 times c4 s4 udp 1234 53
		client sends 3 times c6 s6 udp 1234 53
		server hears 3 times c6 s6 udp 1234 53
		client sends 3 times c4 s4 icmp 8 0 42 1
		server hears 3 times c4 s4 icmp 8 0 42 1
		# errors of the server, and of a router
		server sends s4 c4 icmp 3 3 about c4 s4 udp 1234 53
		client hears s4 c4 icmp 3 3 about c4 s4 udp 1234 53
		server sends r4 c4 icmp 3 1 about c4 s4 udp 1234 53
		client hears r4 c4 icmp 3 1 about c4 s4 udp 1234 53
		server sends r6 c6 icmp 1 4 about c6 s6 udp 1234 53
		client hears r6 c6 icmp 1 4 about c6 s6 udp 1234 53
		# an error to another host than the sender of the packet
		server sends s4 d4 icmp 3 3 about c4 s4 udp 1234 53
		server sends s6 d6 icmp 1 4 about c6 s6 udp 1234 53
		client sends c4 t4 icmp 3 1 about s4 c4 icmp 0 0 42 1
		# an error in the direction of the flow, about packets of a stranger
		client sends c4 s4 icmp 3 3 about 203.0.113.1 203.0.113.2 udp 1234 53
		client sends c6 s6 icmp 1 4 about 2001:db8:f::1 2001:db8:f::2 udp 1234 53
		# an error about a packet of other ports, and about an error
		server sends s4 c4 icmp 3 3 about c4 s4 udp 1235 53
		server sends s4 c4 icmp 3 3 about c4 s4 icmp 3 3 about s4 c4 udp 53 1234
	END

	# errors come back through translation
	rules <<-END
		block
		pass quick inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
		pass in on lan0
		pass out on wan0 inet nat-to (wan0)
		pass out on wan0 inet6 nat-to (wan0:0)
		pass in on wan0 inet proto tcp to (wan0) port 80 rdr-to 192.168.100.9 port 8080
		pass out on lan0
	END
	converse <<-END
		# two clients with one id, behind one address
		client sends 3 times c4 s4 icmp 8 0 42 1
		server hears 3 times w4 s4 icmp 8 0 \$first 1
		client sends 3 times d4 s4 icmp 8 0 42 1
		server hears 3 times w4 s4 icmp 8 0 \$second 1
		server sends s4 w4 icmp 0 0 \$second 1
		client hears s4 d4 icmp 0 0 42 1
		server sends s4 w4 icmp 0 0 \$first 1
		client hears s4 c4 icmp 0 0 42 1
		# the same over IPv6
		client sends 3 times c6 s6 icmp 128 0 42 1
		server hears 3 times w6 s6 icmp 128 0 \$third 1
		client sends 3 times d6 s6 icmp 128 0 42 1
		server hears 3 times w6 s6 icmp 128 0 \$fourth 1
		server sends s6 w6 icmp 129 0 \$fourth 1
		client hears s6 d6 icmp 129 0 42 1
		server sends s6 w6 icmp 129 0 \$third 1
		client hears s6 c6 icmp 129 0 42 1
		# time exceeded behind nat-to, whatever the client asked with
		client sends 3 times c4 s4 ttl 2 udp 1000 33434
		server hears 3 times w4 s4 ttl 1 udp \$udp 33434
		server sends r4 w4 icmp 11 0 about w4 s4 udp \$udp 33434
		client hears r4 c4 icmp 11 0 about c4 s4 udp 1000 33434
		server sends r4 w4 icmp 11 0 about w4 s4 icmp 8 0 \$first 1
		client hears r4 c4 icmp 11 0 about c4 s4 icmp 8 0 42
		client sends 3 times c6 s6 ttl 2 udp 1000 33434
		server hears 3 times w6 s6 ttl 1 udp \$udp6 33434
		server sends r6 w6 icmp 3 0 about w6 s6 udp \$udp6 33434
		client hears r6 c6 icmp 3 0 about c6 s6 udp 1000 33434
		server sends r6 w6 icmp 3 0 about w6 s6 icmp 128 0 \$third 1
		client hears r6 c6 icmp 3 0 about c6 s6 icmp 128 0 42
		# too big behind nat-to
		server sends r4 w4 icmp 3 4 mtu 1300 about w4 s4 udp \$udp 33434
		client hears r4 c4 icmp 3 4 mtu 1300 about c4 s4 udp 1000 33434
		server sends r6 w6 icmp 2 0 mtu 1300 about w6 s6 udp \$udp6 33434
		client hears r6 c6 icmp 2 0 mtu 1300 about c6 s6 udp 1000 33434
		# an error of a host that was redirected to has the address that was asked for
		server sends s4 w4 tcp 1000 80 S 1 0
		client hears s4 c4 tcp 1000 8080 S 1 0
		client sends c4 s4 icmp 3 1 about s4 c4 tcp 1000 8080
		server hears w4 s4 icmp 3 1 about s4 w4 tcp 1000 80
	END

	# answers to blocked packets have the address that was asked, before it was redirected
	rules <<-END
		block return
		match in on lan0 inet to 192.168.10.77 rdr-to 192.168.10.9
		match out on wan0 inet proto tcp nat-to (wan0)
		pass quick inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
		pass in on lan0 proto { tcp, udp } to port 82
	END
	converse <<-END
		# block return answers where packets come in
		client sends c4 s4 tcp 1000 80 S 1000 0
		client hears s4 c4 tos 0x10 df tcp 80 1000 RA 0 1001
		client sends c6 s6 tcp 1000 80 S 1000 0
		client hears s6 c6 tcp 80 1000 RA 0 1001
		client sends c4 192.168.10.77 tcp 1000 80 S 1000 0
		client hears 192.168.10.77 c4 tos 0x10 df tcp 80 1000 RA 0 1001
		client sends c4 s4 udp 1000 53
		client hears g4 c4 icmp 3 3 about c4 s4 udp 1000 53
		client sends c6 s6 udp 1000 53
		client hears g6 c6 icmp 1 4 about c6 s6 udp 1000 53
		client sends c4 s4 sctp 1000 80 0 1
		client hears g4 c4 icmp 3 3 about c4 s4 sctp 1000 80
		# and where they leave, after nat-to
		client sends c4 s4 tcp 1000 82 S 1000 0
		client hears s4 c4 tos 0x10 df tcp 82 1000 RA 0 1001
		client sends c6 s6 udp 1000 82
		client hears g6 c6 icmp 1 4 about c6 s6 udp 1000 82
		# no RST answers a RST, and nothing answers an error
		client sends c4 s4 tcp 1000 80 R 1000 0
		client hears g4 c4 icmp 3 3 about c4 s4 tcp 1000 80
		client sends c4 s4 icmp 3 3 about s4 c4 udp 53 1000
	END
}
in_every_mode games
verdict
