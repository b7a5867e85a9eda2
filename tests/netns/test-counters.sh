# Exact counters of rules, states, anchors and addresses: with and without a state, behind match
# rules, for blocked and refused packets, and with translation. They are the same for each evaluator
# and on each path through the gateway.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
C4=192.168.100.9 C6=2001:db8:100::9 S4=192.168.10.9 W4=192.168.10.81

# counted WHAT - compares the counters with standard input: packets and bytes of labelled rules in
# both directions, with the number of states they created; packets and bytes of states in both
# directions, with their rule; packets and bytes of tables. Counters of zero are left out.
counted() {
	same "$MODE: $1" "$(cat)" "$({
		pf gateway -a '*' -sl |
			awk '$3 + $9 { print $1, "in", $5 ":" $6, "out", $7 ":" $8, "states", $9 }'
		pf gateway -vss | awk '/^[a-z]/ { udp = / udp / }
			udp && /pkts/ {
				gsub(",", "")
				split($6, packets, ":"); split($8, bytes, ":")
				print "state", packets[1] ":" bytes[1], packets[2] ":" bytes[2],
					$10, $11, $12, $13
			}'
		pf gateway -vvsT | awk '$1 ~ /^-/ { table = $2 }
			/Packets/ && $4 { print "<" table ">", substr($1, 1, length($1) - 1), $4 ":" $6 }'
	} | sed 's/ *$//')"
}
# twelve datagrams of 32 bytes to the server, eight of 38 bytes back
there_and_back() { # CLIENT SERVER [HEARD-CLIENT HEARD-SERVER]
	converse <<-END
		# there and back
		client sends 12 times $1 $2 udp 1000 7 len 4
		server hears 12 times ${3:-$1} ${4:-$2} udp 1000 7 len 4
		server sends 8 times ${4:-$2} ${3:-$1} udp 7 1000 len 10
		client hears 8 times $2 $1 udp 7 1000 len 10
	END
}

# Table names differ between rule sets, because a table that stays would keep its counters.
exact() {
	local refused
	# a match rule counts by the direction of the state, other rules by that of the packet
	rules <<-END
		table <twice> counters { $C4 }
		table <matched> counters { $S4 }
		table <passed> counters { $S4 }
		block
		match in on lan0 inet proto udp from <twice> label "match-in"
		pass in on lan0 inet proto udp from <twice> label "pass-in"
		match out on wan0 inet proto udp to <matched> label "match-out"
		pass out on wan0 inet proto udp to <passed> label "pass-out"
	END
	there_and_back c4 s4
	counted "match and pass with a state" <<-END
		match-in in 12:384 out 8:304 states 0
		pass-in in 12:384 out 8:304 states 1
		match-out in 12:384 out 8:304 states 0
		pass-out in 8:304 out 12:384 states 1
		state 12:384 8:304 rule 2
		state 12:384 8:304 rule 4
		<matched> In/Match 8:304
		<matched> Out/Match 12:384
		<passed> In/Pass 8:304
		<passed> Out/Pass 12:384
		<twice> In/Match 12:384
		<twice> In/Pass 12:384
		<twice> Out/Match 8:304
		<twice> Out/Pass 8:304
	END
	same "$MODE: of the table's address" "In/Match: 12 In/Pass: 12 Out/Match: 8 Out/Pass: 8" \
		"$(pf gateway -t twice -vvT show | awk '/Packets/ && $4 { print $1, $4 }' | xargs)"

	# without a state only the deciding rule counts
	rules <<-END
		table <source> counters { $C4 }
		table <uncounted> counters { $S4 }
		table <goal> counters { $S4 }
		block
		match in on lan0 inet proto udp from <source> label "match-in"
		pass in on lan0 inet proto udp from <source> no state label "pass-in"
		pass out on lan0 inet proto udp to <source> no state label "back-out"
		pass in on wan0 inet proto udp from <goal> no state label "back-in"
		match out on wan0 inet proto udp to <uncounted> label "match-out"
		pass out on wan0 inet proto udp to <goal> no state label "pass-out"
	END
	there_and_back c4 s4
	counted "match and pass without a state" <<-END
		pass-in in 12:384 out 0:0 states 0
		back-out in 0:0 out 8:304 states 0
		back-in in 8:304 out 0:0 states 0
		pass-out in 0:0 out 12:384 states 0
		<goal> In/Pass 8:304
		<goal> Out/Pass 12:384
		<source> In/Pass 12:384
		<source> Out/Pass 8:304
	END

	rules <<-END
		table <skipped> counters { $S4 }
		table <blocked> counters { $S4 }
		pass inet proto udp
		match in on lan0 inet proto udp to <skipped> port 7 label "match"
		block in on lan0 inet proto udp to <blocked> port 7 label "block"
	END
	converse <<-END
		# blocked
		client sends 12 times c4 s4 udp 1000 7 len 4
	END
	counted "match and block" <<-END
		block in 12:384 out 0:0 states 0
		<blocked> In/Block 12:384
	END

	# a rule that has reached its limit of states does not count the packets that it refuses
	refused=$(reason gateway state-limit)
	rules <<-END
		table <asked> counters { $S4 }
		table <limited> counters { $S4 }
		block
		match in on lan0 inet proto udp to <asked> port 7 label "match"
		pass in on lan0 inet proto udp to <limited> port 7 keep state (max 1) label "one"
		pass out on wan0
	END
	there_and_back c4 s4
	converse <<-END
		# beyond the states of the rule
		client sends 3 times c4 s4 udp 1001 7 len 4
	END
	counted "a pass rule that has all its states" <<-END
		match in 12:384 out 8:304 states 0
		one in 12:384 out 8:304 states 1
		state 12:384 8:304 rule 2
		state 12:384 8:304 rule 3
		<asked> In/Match 12:384
		<asked> Out/Match 8:304
		<limited> In/Pass 12:384
		<limited> Out/Pass 8:304
	END
	same "$MODE: refused" $((refused + 3)) "$(reason gateway state-limit)"

	# tables count a state for its translated addresses; XPass counts the original ones
	rules <<-END
		table <before> counters { $C4 }
		table <target> counters { $S4 }
		table <after> counters { $W4 }
		block
		pass in on lan0 inet proto udp
		match out on wan0 inet proto udp from <before> to <target> label "before"
		match out on wan0 inet proto udp from <before> nat-to (wan0) static-port label "nat-to"
		match out on wan0 inet proto udp from <after> label "after"
		pass out on wan0 inet proto udp from <after> label "pass"
	END
	there_and_back c4 s4 w4 s4
	counted "nat-to of a match rule" <<-END
		before in 12:384 out 8:304 states 0
		nat-to in 12:384 out 8:304 states 0
		after in 12:384 out 8:304 states 0
		pass in 8:304 out 12:384 states 1
		state 12:384 8:304 rule 1
		state 12:384 8:304 rule 5
		<after> In/Match 8:304
		<after> In/Pass 8:304
		<after> Out/Match 12:384
		<after> Out/Pass 12:384
		<before> In/XPass 16:608
		<before> Out/XPass 24:768
		<target> In/Match 8:304
		<target> Out/Match 12:384
	END

	rules <<-END
		table <inside> counters { $C4 }
		table <outside> counters { $S4 }
		block
		pass in on lan0 inet proto udp
		match out on wan0 inet proto udp from <inside> label "match"
		pass out on wan0 inet proto udp from <inside> to <outside> \
			nat-to (wan0) static-port label "pass"
	END
	there_and_back c4 s4 w4 s4
	counted "nat-to of a pass rule" <<-END
		match in 12:384 out 8:304 states 0
		pass in 8:304 out 12:384 states 1
		state 12:384 8:304 rule 1
		state 12:384 8:304 rule 3
		<inside> In/XPass 16:608
		<inside> Out/XPass 24:768
		<outside> In/Pass 8:304
		<outside> Out/Pass 12:384
	END

	rules <<-END
		table <redirected> counters { 192.168.10.77 }
		table <host> counters { $S4 }
		block
		pass out on wan0 inet proto udp
		match in on lan0 inet proto udp to <redirected> label "before"
		match in on lan0 inet proto udp to <redirected> rdr-to $S4 label "rdr-to"
		match in on lan0 inet proto udp to <host> label "after"
		pass in on lan0 inet proto udp to <host> label "pass"
	END
	there_and_back c4 192.168.10.77 c4 s4
	counted "rdr-to of a match rule" <<-END
		before in 12:384 out 8:304 states 0
		rdr-to in 12:384 out 8:304 states 0
		after in 12:384 out 8:304 states 0
		pass in 12:384 out 8:304 states 1
		state 12:384 8:304 rule 5
		state 12:384 8:304 rule 1
		<host> In/Match 12:384
		<host> In/Pass 12:384
		<host> Out/Match 8:304
		<host> Out/Pass 8:304
		<redirected> In/XPass 24:768
		<redirected> Out/XPass 16:608
	END

	# with af-to the packets of both directions arrive inbound; pf counts all of them in the
	# first direction
	rules <<-END
		table <client6> counters { $C6 }
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		match in on lan0 inet6 proto udp from <client6> label "match"
		pass in on lan0 inet6 proto udp from <client6> to 64:ff9b::/96 \
			af-to inet from (wan0) label "af-to"
	END
	converse <<-END
		# there and back
		client sends 12 times c6 64:ff9b::192.168.10.9 udp 1000 7 len 4
		server hears 12 times w4 s4 df udp \$port 7 len 4
		server sends 8 times s4 w4 udp 7 \$port len 10
		client hears 8 times 64:ff9b::c0a8:a09 c6 udp 7 1000 len 10
	END
	counted "af-to from IPv6" <<-END
		match in 20:928 out 0:0 states 0
		af-to in 20:928 out 0:0 states 1
		state 20:928 0:0 rule 4
		<client6> In/XPass 40:1856
	END

	rules <<-END
		table <client4> counters { $C4 }
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		match in on lan0 inet proto udp from <client4> label "match"
		pass in on lan0 inet proto udp from <client4> to 192.168.10.77 \
			af-to inet6 from 2001:db8:10::81 to 2001:db8:10::9 label "af-to"
	END
	converse <<-END
		# there and back
		client sends 12 times c4 192.168.10.77 udp 1000 7 len 4
		server hears 12 times w6 s6 udp \$port 7 len 4
		server sends 8 times s6 w6 udp 7 \$port len 10
		client hears 8 times 192.168.10.77 c4 df udp 7 1000 len 10
	END
	counted "af-to from IPv4" <<-END
		match in 20:848 out 0:0 states 0
		af-to in 20:848 out 0:0 states 1
		state 20:848 0:0 rule 4
		<client4> In/XPass 40:1696
	END

	rules <<-END
		nat on wan0 inet proto udp from $C4 to any port 7 -> (wan0) static-port
		block
		pass in on lan0 inet proto udp
		match out on wan0 inet proto udp from $W4 label "match"
		pass out on wan0 inet proto udp from $W4 label "pass"
	END
	there_and_back c4 s4 w4 s4
	counted "nat of the old style" <<-END
		match in 12:384 out 8:304 states 0
		pass in 8:304 out 12:384 states 1
		state 12:384 8:304 rule 1
		state 12:384 8:304 rule 3
	END
	same "$MODE: the nat rule itself" "20 688" \
		"$(pf gateway -vsn | sed -n 's/.*Packets: \([0-9]*\) *Bytes: \([0-9]*\) .*/\1 \2/p')"

	# an anchor rule counts the packets of the rules in its anchor
	rules <<-END
		block
		anchor "outer" on lan0 label "outer" {
			match in inet proto udp label "match"
			anchor "inner" label "inner" {
				pass in inet proto udp to port 7 label "pass"
			}
		}
		pass out on wan0
	END
	there_and_back c4 s4
	counted "rules in anchors" <<-END
		match in 12:384 out 8:304 states 0
		inner in 12:384 out 8:304 states 1
		pass in 12:384 out 8:304 states 1
		state 12:384 8:304 anchor 1 rule 0
		state 12:384 8:304 rule 2
	END
	pf gateway -q -a outer/inner -F rules
	pf gateway -q -a outer -F rules
}
in_every_mode exact
verdict
