# Criteria on addresses of interfaces and on routes, with real packets: urpf-failed, no-route, the
# network of an interface, its first IPv4 address without aliases, and `any` beside an address.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
on gateway ip address add 192.168.100.77/24 dev lan0
on gateway ip address add 2001:db8:100::77/64 dev lan0 nodad
# behind the network of lan0, and an address of wan0's network at the client's end
on gateway ip route add 192.168.77.0/24 dev lan0
ADDRESSES+=" beyond=192.168.77.9 stranger=203.0.113.9 liar=192.168.10.50 liar6=2001:db8:10::50"
ADDRESSES+=" alias4=192.168.100.77 alias6=2001:db8:100::77"

criteria() {
	rules <<-END
		pass
		block in quick on lan0 from urpf-failed
	END
	converse <<-END
		# urpf-failed: the route back is on another interface, or missing
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times c4 s4 udp 1000 50
		client sends 5 times beyond s4 udp 1000 50
		server hears 5 times beyond s4 udp 1000 50
		client sends 5 times c6 s6 udp 1000 50
		server hears 5 times c6 s6 udp 1000 50
		client sends 5 times liar s4 udp 1000 50
		client sends 5 times liar6 s6 udp 1000 50
		client sends 5 times stranger s4 udp 1000 50
	END
	rules <<-END
		pass
		block in quick on lan0 from no-route
		block in quick on lan0 to no-route
	END
	converse <<-END
		# no-route
		client sends 5 times stranger s4 udp 1000 50
		client sends 5 times c4 stranger udp 1000 50
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times c4 s4 udp 1000 50
	END

	rules <<-END
		pass
		block in on lan0 proto udp from (lan0:network) to port 51
		block in on lan0 proto udp from lan0:network to port 52
		block in on lan0 inet proto icmp to (lan0:0)
		block in on lan0 inet6 proto icmp6 to (lan0:0)
		pass in on lan0 inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv }
		block in on lan0 proto udp to port 53
		pass in on lan0 inet proto udp from { any, 192.168.100.9 } to port 53
	END
	converse <<-END
		# the network of an interface
		client sends 5 times c4 s4 udp 1000 51
		client sends 5 times c4 s4 udp 1000 52
		client sends 5 times c6 s6 udp 1000 51
		client sends 5 times c6 s6 udp 1000 52
		client sends 5 times beyond s4 udp 1000 51
		server hears 5 times beyond s4 udp 1000 51
		client sends 5 times beyond s4 udp 1000 52
		server hears 5 times beyond s4 udp 1000 52
		# its first address, and an alias
		client sends c4 g4 icmp 8 0 7 1
		client sends c4 alias4 icmp 8 0 7 1
		client hears alias4 c4 icmp 0 0 7 1
		client sends c6 g6 icmp 128 0 7 1
		client sends c6 alias6 icmp 128 0 7 1
		client hears alias6 c6 icmp 129 0 7 1
		# any holds for any, whatever stands beside it
		client sends 5 times beyond s4 udp 1000 53
		server hears 5 times beyond s4 udp 1000 53
		client sends 5 times c6 s6 udp 1000 53
	END
}
in_every_mode criteria
verdict
