# route-to, reply-to and dup-to with single packets: next hops of lists and tables in rotation,
# sticky-address, and copies to a collector beside the server, in both directions.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0         |      wan0        s4, s6
#                             tap0 ------------------- collector
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
host collector
wire collector eth0 gateway tap0
address gateway tap0 10.3.0.1/24 2001:db8:3::1/64
address collector eth0 10.3.0.2/24 2001:db8:3::2/64
offloads collector eth0 1 gro
CONVERSERS+=" collector=eth0/$(link_address gateway tap0)"
peer d4 lan0 client 192.168.100.10
# addresses of next hops at the server and at the collector, which no kernel has
peer h4 wan0 server 192.168.10.3
peer h6 wan0 server 2001:db8:10::3
peer k4 tap0 collector 10.3.0.9
peer k6 tap0 collector 2001:db8:3::9

# in_turn WHAT FIRST SECOND - checks that flows of one client alternate between these hosts;
# addresses of a list have the order of a table
in_turn() {
	converse <<-END
		# $1: one next hop after the other, and one for all packets of a flow
		client sends 5 times c4 s4 udp 1000 50
		$2 hears 5 times c4 s4 ttl 63 udp 1000 50
		client sends 5 times c4 s4 udp 1001 50
		$3 hears 5 times c4 s4 ttl 63 udp 1001 50
		client sends 5 times c4 s4 udp 1002 50
		$2 hears 5 times c4 s4 ttl 63 udp 1002 50
		client sends 5 times c4 s4 udp 1001 50
		$3 hears 5 times c4 s4 ttl 63 udp 1001 50
		# $1: nothing of other ports
		client sends 5 times c4 s4 udp 1000 51
		server hears 5 times c4 s4 udp 1000 51
	END
}

hops() {
	rules <<-END
		pass
		pass in on lan0 inet proto udp to port 50 \
			route-to { 192.168.10.3, 10.3.0.9 } round-robin
	END
	in_turn "a list" collector server
	rules <<-END
		table <hops> { 192.168.10.3, 10.3.0.9 }
		pass
		pass in on lan0 inet proto udp to port 50 route-to <hops> round-robin
	END
	in_turn "a table" collector server
	rules <<-END
		pass
		pass in on lan0 route-to { (wan0 192.168.10.3), (tap0 10.3.0.9) } round-robin \
			inet proto udp from any to any port 50
	END
	in_turn "a list by way of interfaces" collector server

	rules <<-END
		pass
		pass in on lan0 inet proto udp to port 50 \
			route-to { 192.168.10.3, 10.3.0.9 } round-robin sticky-address
		pass in on lan0 inet6 proto udp to port 50 route-to 2001:db8:3::9
	END
	converse <<-END
		# sticky-address: a source keeps its next hop, another gets the other
		client sends 5 times c4 s4 udp 1000 50
		collector hears 5 times c4 s4 udp 1000 50
		client sends 5 times c4 s4 udp 1001 50
		collector hears 5 times c4 s4 udp 1001 50
		client sends 5 times d4 s4 udp 1000 50
		server hears 5 times d4 s4 udp 1000 50
		# over IPv6
		client sends 5 times c6 s6 udp 1000 50
		collector hears 5 times c6 s6 ttl 63 udp 1000 50
	END

	# reply-to: the answers go to the next hop, wherever they would go
	rules <<-END
		pass
		pass in on wan0 inet proto udp to port 50 reply-to 10.3.0.9
		pass in on wan0 inet6 proto udp to port 50 reply-to 2001:db8:3::9
	END
	converse <<-END
		# reply-to
		server sends 5 times s4 c4 udp 1000 50
		client hears 5 times s4 c4 udp 1000 50
		client sends 5 times c4 s4 udp 50 1000
		collector hears 5 times c4 s4 udp 50 1000
		server sends 5 times s6 c6 udp 1000 50
		client hears 5 times s6 c6 udp 1000 50
		client sends 5 times c6 s6 udp 50 1000
		collector hears 5 times c6 s6 udp 50 1000
		server sends 5 times s4 c4 udp 1000 51
		client hears 5 times s4 c4 udp 1000 51
		client sends 5 times c4 s4 udp 51 1000
		server hears 5 times c4 s4 udp 51 1000
	END

	# dup-to: where packets come in, and where they leave
	rules <<-END
		pass
		pass in on lan0 inet proto udp to port 50 dup-to 10.3.0.9
		pass in on lan0 inet6 proto udp to port 50 dup-to 2001:db8:3::9
		pass out on wan0 inet proto udp to port 51 dup-to 10.3.0.9
		pass out on wan0 dup-to (tap0 2001:db8:3::9) inet6 proto udp from any to any port 51
	END
	local port
	for port in 50 51; do
		converse <<-END
			# dup-to: a copy of each packet, both ways, port $port
			client sends 5 times c4 s4 udp 1000 $port len 9
			server hears 5 times c4 s4 udp 1000 $port len 9
			collector hears 5 times c4 s4 udp 1000 $port len 9
			server sends 5 times s4 c4 udp $port 1000 len 8
			client hears 5 times s4 c4 udp $port 1000 len 8
			collector hears 5 times s4 c4 udp $port 1000 len 8
			client sends 5 times c6 s6 udp 1000 $port len 9
			server hears 5 times c6 s6 udp 1000 $port len 9
			collector hears 5 times c6 s6 udp 1000 $port len 9
		END
	done
	converse <<-END
		# no copy of others
		client sends 5 times c4 s4 udp 1000 52 len 9
		server hears 5 times c4 s4 udp 1000 52 len 9
	END
}
in_every_mode hops
verdict
