# Headers as the server sees them: options of `scrub`, of match rules and of the legacy statement,
# and `set tos`; and rules that compare the type of service.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
peer t4 wan0 server 192.168.10.10

# the same for both forms; several packets of a state, because the first takes another path
scrubbed() {
	converse <<-END
		# $1: max-mss lowers a higher MSS, also at an odd place
		client sends c4 s4 tcp 1000 80 S 1000 0 mss 1400
		server hears c4 s4 tcp 1000 80 S 1000 0 mss 1300
		server sends s4 c4 tcp 80 1000 SA 5000 1001 mss 1460
		client hears s4 c4 tcp 80 1000 SA 5000 1001 mss 1300
		client sends c4 s4 tcp 1001 80 S 1000 0 nop mss 1400
		server hears c4 s4 tcp 1001 80 S 1000 0 nop mss 1300
		client sends c6 s6 tcp 1000 80 S 1000 0 mss 1400
		server hears c6 s6 tcp 1000 80 S 1000 0 mss 1300
		client sends c6 s6 tcp 1001 80 S 1000 0 nop mss 1400
		server hears c6 s6 tcp 1001 80 S 1000 0 nop mss 1300
		# $1: max-mss leaves alone what is low enough, and what has none
		client sends c4 s4 tcp 1002 80 S 1000 0 mss 1299
		server hears c4 s4 tcp 1002 80 S 1000 0 mss 1299
		client sends c4 s4 tcp 1003 80 S 1000 0
		server hears c4 s4 tcp 1003 80 S 1000 0
		# $1: min-ttl lifts a lower TTL, before the gateway takes one off
		client sends 5 times c4 s4 ttl 40 udp 1000 50 len 4
		server hears 5 times c4 s4 ttl 49 udp 1000 50 len 4
		client sends 5 times c6 s6 ttl 40 udp 1000 50 len 4
		server hears 5 times c6 s6 ttl 49 udp 1000 50 len 4
		client sends 5 times c4 s4 ttl 51 udp 1000 50 len 4
		server hears 5 times c4 s4 ttl 50 udp 1000 50 len 4
		# $1: no-df
		client sends 5 times c4 s4 df udp 1000 51 len 4
		server hears 5 times c4 s4 udp 1000 51 len 4
		# $1: random-id
		client sends 5 times c4 s4 id 7 udp 1000 52 len 4
		server hears 5 times c4 s4 id !7 udp 1000 52 len 4
		# $1: the type of service is set, whatever it was
		client sends 5 times c4 s4 udp 1000 53 len 4
		server hears 5 times c4 s4 tos 0x40 udp 1000 53 len 4
		client sends 5 times c4 s4 tos 0x28 udp 1000 53 len 4
		server hears 5 times c4 s4 tos 0x40 udp 1000 53 len 4
		client sends 5 times c6 s6 tos 0x28 udp 1000 53 len 4
		server hears 5 times c6 s6 tos 0x40 udp 1000 53 len 4
		# $1: ECN bits stay
		client sends 5 times c4 s4 tos 0x2b udp 1001 53 len 4
		server hears 5 times c4 s4 tos 0x43 udp 1001 53 len 4
		client sends 5 times c6 s6 tos 0x01 udp 1001 53 len 4
		server hears 5 times c6 s6 tos 0x41 udp 1001 53 len 4
		# $1: nothing changes in packets of other ports
		client sends 5 times c4 s4 ttl 5 id 7 tos 0x28 df udp 1000 54 len 4
		server hears 5 times c4 s4 ttl 4 id 7 tos 0x28 df udp 1000 54 len 4
		client sends 5 times c6 s6 ttl 5 tos 0x28 udp 1000 54 len 4
		server hears 5 times c6 s6 ttl 4 tos 0x28 udp 1000 54 len 4
	END
}

every_form() {
	rules <<-END
		match in on lan0 proto tcp scrub (max-mss 1300)
		match in on lan0 proto udp to port 50 scrub (min-ttl 50)
		match in on lan0 proto udp to port 51 scrub (no-df)
		match in on lan0 proto udp to port 52 scrub (random-id)
		match in on lan0 proto udp to port 53 set tos 0x40
		pass
	END
	scrubbed "match"

	rules <<-END
		scrub in on lan0 proto tcp max-mss 1300
		scrub in on lan0 proto udp from any to any port 50 min-ttl 50
		scrub in on lan0 proto udp from any to any port 51 no-df
		scrub in on lan0 proto udp from any to any port 52 random-id
		scrub in on lan0 proto udp from any to any port 53 set-tos 0x40
		pass
	END
	scrubbed "the old statement"

	# match rules add up in a state, on the outbound interface, too; without a state only the
	# options of the pass rule are effective
	rules <<-END
		match out on wan0 proto udp scrub (min-ttl 50)
		match out on wan0 proto udp set tos 0x40
		match out on wan0 proto udp to port 50 set tos 0x60
		pass proto udp
		pass out proto udp to port 51 scrub (no-df)
		pass out proto udp to port 52 no state scrub (no-df)
	END
	converse <<-END
		# match rules add up, and the last value counts
		client sends 5 times c4 s4 ttl 40 df udp 1000 7 len 4
		server hears 5 times c4 s4 ttl 50 tos 0x40 df udp 1000 7 len 4
		client sends 5 times c4 s4 ttl 40 df udp 1000 50 len 4
		server hears 5 times c4 s4 ttl 50 tos 0x60 df udp 1000 50 len 4
		client sends 5 times c4 s4 ttl 40 df udp 1000 51 len 4
		server hears 5 times c4 s4 ttl 50 tos 0x40 udp 1000 51 len 4
		server sends 5 times s4 c4 ttl 40 df udp 51 1000 len 4
		client hears 5 times s4 c4 ttl 49 tos 0x40 udp 51 1000 len 4
		# without a state the options of the pass rule alone
		client sends 5 times c4 s4 ttl 40 df udp 1000 52 len 4
		server hears 5 times c4 s4 ttl 39 udp 1000 52 len 4
	END
	rules <<-END
		no scrub on lan0 inet from any to 192.168.10.10
		scrub on lan0 proto udp from any to any port 50 min-ttl 60
		scrub on lan0 set-tos 0x40
		pass no state
	END
	converse <<-END
		# of the old statements the first that matches counts, and it may exempt
		client sends 5 times c4 s4 ttl 40 udp 1000 50 len 4
		server hears 5 times c4 s4 ttl 59 udp 1000 50 len 4
		client sends 5 times c4 s4 ttl 40 udp 1000 7 len 4
		server hears 5 times c4 s4 ttl 39 tos 0x40 udp 1000 7 len 4
		client sends 5 times c6 s6 ttl 40 udp 1000 7 len 4
		server hears 5 times c6 s6 ttl 39 tos 0x40 udp 1000 7 len 4
		client sends 5 times c4 t4 ttl 40 udp 1000 50 len 4
		server hears 5 times c4 t4 ttl 39 udp 1000 50 len 4
	END

	# a rule compares without the ECN bits
	rules <<-END
		pass no state
		block in tos 0xb0
		block in tos lowdelay
	END
	converse <<-END
		# rules that compare the type of service
		client sends 5 times c4 s4 udp 1000 7 len 4
		server hears 5 times c4 s4 udp 1000 7 len 4
		client sends 5 times c4 s4 tos 0xb0 udp 1000 7 len 4
		client sends 5 times c4 s4 tos 0xb3 udp 1000 7 len 4
		client sends 5 times c4 s4 tos 0x10 udp 1000 7 len 4
		client sends 5 times c4 s4 tos 0xb8 udp 1000 7 len 4
		server hears 5 times c4 s4 tos 0xb8 udp 1000 7 len 4
		client sends 5 times c6 s6 tos 0xb0 udp 1000 7 len 4
		client sends 5 times c6 s6 tos 0xa0 udp 1000 7 len 4
		server hears 5 times c6 s6 tos 0xa0 udp 1000 7 len 4
	END
}
in_every_mode every_form
verdict
