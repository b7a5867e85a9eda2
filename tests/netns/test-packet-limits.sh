# Limits of rules on real packets: max-pkt-size, max-pkt-rate, once, max, max-src-states,
# max-src-conn and set limit states.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP; waits for max-pkt-rate
. "$(dirname "$0")/conversation.sh"
between_peers
peer d4 lan0 client 192.168.100.10

limits() {
	# a datagram without data has 28 bytes, over IPv6 48
	rules <<-END
		pass
		pass in on lan0 inet proto udp to port 50 max-pkt-size 50
		pass in on lan0 inet6 proto udp to port 50 max-pkt-size 70
		match in on lan0 inet proto udp to port 51 max-pkt-size 50
		pass in on lan0 inet proto udp to port 52 no state max-pkt-size 50
	END
	converse <<-END
		# max-pkt-size, in both directions of a state
		client sends 5 times c4 s4 udp 1000 50 len 22
		server hears 5 times c4 s4 udp 1000 50 len 22
		client sends 5 times c4 s4 udp 1000 50 len 23
		server sends 5 times s4 c4 udp 50 1000 len 23
		server sends 5 times s4 c4 udp 50 1000 len 22
		client hears 5 times s4 c4 udp 50 1000 len 22
		client sends c4 s4 udp 1001 50 len 23
		client sends 5 times c6 s6 udp 1000 50 len 22
		server hears 5 times c6 s6 udp 1000 50 len 22
		client sends 5 times c6 s6 udp 1000 50 len 23
		# max-pkt-size of a match rule, and without a state
		client sends 5 times c4 s4 udp 1000 51 len 22
		server hears 5 times c4 s4 udp 1000 51 len 22
		client sends 5 times c4 s4 udp 1000 51 len 23
		client sends 5 times c4 s4 udp 1000 52 len 22
		server hears 5 times c4 s4 udp 1000 52 len 22
		client sends 5 times c4 s4 udp 1000 52 len 23
	END

	rules <<-END
		block
		pass out on wan0
		pass in on lan0 inet proto icmp max-pkt-rate 2/2 no state
		pass in on lan0 inet proto udp to port 50 max-pkt-rate 3/60
		anchor "inner" {
			pass in on lan0 inet proto udp to port 51 once
		}
	END
	converse <<-END
		# max-pkt-rate without a state, and within one
		client sends 5 times c4 s4 icmp 8 0 1 1
		server hears 2 times c4 s4 icmp 8 0 1 1
		client sends 5 times c4 s4 udp 1000 50
		server hears 3 times c4 s4 udp 1000 50
		server sends 5 times s4 c4 udp 50 1000
		client hears 5 times s4 c4 udp 50 1000
		# a rule that holds once, in an anchor; its state goes on
		client sends c4 s4 udp 1000 51
		server hears c4 s4 udp 1000 51
		client sends c4 s4 udp 1001 51
		client sends 5 times c4 s4 udp 1000 51
		server hears 5 times c4 s4 udp 1000 51
	END
	same "$MODE: the rule is shown as used up" 1 \
		"$(pf gateway -a '*' -vvsr | grep -c 'port = 51 once # expired')"
	sleep 2.1 # the seconds of max-pkt-rate
	converse <<-END
		# max-pkt-rate, two seconds later
		client sends 2 times c4 s4 icmp 8 0 1 1
		server hears 2 times c4 s4 icmp 8 0 1 1
	END
	pf gateway -q -a inner -F rules

	rules <<-END
		table <greedy> persist
		pass
		pass in on lan0 proto udp to port 50 keep state (max 2)
		pass in on lan0 proto udp to port 51 keep state (max-src-states 2)
		pass in on lan0 proto tcp to port 80 \
			keep state (max-src-conn 1, overload <greedy>)
	END
	converse <<-END
		# max: of all sources together
		client sends c4 s4 udp 1001 50
		server hears c4 s4 udp 1001 50
		client sends c6 s6 udp 1002 50
		server hears c6 s6 udp 1002 50
		client sends c4 s4 udp 1003 50
		client sends c6 s6 udp 1003 50
		client sends 5 times c4 s4 udp 1001 50
		server hears 5 times c4 s4 udp 1001 50
		# max-src-states: of each source, of either family
		client sends c4 s4 udp 1001 51
		server hears c4 s4 udp 1001 51
		client sends c4 s4 udp 1002 51
		server hears c4 s4 udp 1002 51
		client sends c4 s4 udp 1003 51
		client sends c6 s6 udp 1001 51
		server hears c6 s6 udp 1001 51
		client sends c6 s6 udp 1002 51
		server hears c6 s6 udp 1002 51
		client sends c6 s6 udp 1003 51
		client sends d4 s4 udp 1001 51
		server hears d4 s4 udp 1001 51
		# max-src-conn: connections count once they are established
		client sends c4 s4 tcp 1001 80 S 1000 0
		server hears c4 s4 tcp 1001 80 S 1000 0
		client sends c4 s4 tcp 1002 80 S 1000 0
		server hears c4 s4 tcp 1002 80 S 1000 0
		server sends s4 c4 tcp 80 1001 SA 5000 1001
		client hears s4 c4 tcp 80 1001 SA 5000 1001
		client sends c4 s4 tcp 1001 80 A 1001 5001
		server hears c4 s4 tcp 1001 80 A 1001 5001
	END
	same "$MODE: sources with their states" \
		"192.168.100.10 1, 192.168.100.9 2, 192.168.100.9 2, 2001:db8:100::9 2," \
		"$(pf gateway -sS | awk '{ print $1, $4 }' | sort | xargs)"
	same "$MODE: nobody is greedy yet" "" "$(pf gateway -t greedy -T show | xargs)"
	converse <<-END
		# the second connection of max-src-conn 1
		server sends s4 c4 tcp 80 1002 SA 5000 1001
		client hears s4 c4 tcp 80 1002 SA 5000 1001
		client sends c4 s4 tcp 1002 80 A 1001 5001
	END
	same "$MODE: the greedy" 192.168.100.9 "$(pf gateway -t greedy -T show | xargs)"
	pf gateway -q -t greedy -T flush
	pf gateway -q -K 0.0.0.0/0 2>/dev/null
	pf gateway -q -K ::/0 2>/dev/null

	# the limit of states of all rules, and its change while it is reached
	pf gateway -q -F states
	rules <<-END
		set limit states 0
		pass no state
		pass in on lan0 proto udp to port 50
	END
	converse <<-END
		# set limit states 0: none fits
		client sends 5 times c4 s4 udp 1000 50
		client sends 5 times c4 s4 udp 1000 51
		server hears 5 times c4 s4 udp 1000 51
	END
	rules <<-END
		set limit states 1000
		pass no state
		pass in on lan0 proto udp to port 50
	END
	converse <<-END
		# a higher limit holds at once
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times c4 s4 udp 1000 50
	END
}
in_every_mode limits

# a fragmented datagram has the length of the whole
daemon gateway
await 5 on gateway ip link show pffrag0
# answered ADDRESS BYTES - prints the answers to a ping of BYTES bytes, which leaves in fragments
answered() {
	on client ping -n -q -c 1 -W 1 -M dont -s "$2" "$1" >/dev/null 2>&1 && echo passed ||
		echo "no answer"
}
filter gateway <<-END
	pass
	pass in on lan0 inet proto icmp max-pkt-size 2000
	pass in on lan0 inet6 proto icmp6 icmp6-type echoreq max-pkt-size 2000
END
same "IPv4, 2000 bytes in fragments" passed "$(answered "$SERVER4" 1972)"
same "IPv4, 2001 bytes in fragments" "no answer" "$(answered "$SERVER4" 1973)"
same "IPv6, 2000 bytes in fragments" passed "$(answered "$SERVER6" 1952)"
same "IPv6, 2001 bytes in fragments" "no answer" "$(answered "$SERVER6" 1953)"
verdict
