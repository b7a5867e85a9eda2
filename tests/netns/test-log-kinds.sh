# Each kind of log record, as tcpdump reads it: with and without states, of all packets of a state,
# of match rules, in another log, of translated, damaged and refused packets, and with the user, in
# both families.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0            203.0.113.1 to .12
# long: tcpdump reads the log of each rule set
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
# a case is an address of the server, in each family
addresses=()
tables=
for number in {1..12}; do
	addresses+=("203.0.113.$number" "2001:db8:113::$number")
	on server ip address add "203.0.113.$number/32" dev lo
	on server ip address add "2001:db8:113::$number/128" dev lo
	tables+="table <_$number> const { 203.0.113.$number, 2001:db8:113::$number }"$'\n'
done
addresses[18]=64:ff9b::203.0.113.10 addresses[19]=64:ff9b::203.0.113.10
on gateway ip route add 203.0.113.0/24 via $SERVER4
on gateway ip route add 2001:db8:113::/64 via $SERVER6
link_address=$(link_address gateway lan0)
daemon gateway
log=$WORK/gateway-pflog0 other=$WORK/gateway-pflog1

# seen LOG FIRST - prints the number of each kind of record from record FIRST on: rule, action,
# direction, interface, source, destination and more; 67 and 547 are ports
seen() {
	tcpdump -n -e -r "$1" 2>/dev/null | tail -n "+$2" | sed -E 's/^[^ ]* rule //
		s/4294967295/default/; s/unkn\(12\)/match/; s/unkn\(3\)/(short)/; s/ on / /
		s/\/[0-9]*\(match\)//; s/\/[0-9]*\(/(/
		s/(203\.0\.113\.|2001:db8:113::)([0-9]*)(:| |\.)/case \2\3/g
		s/192\.168\.100\.2|2001:db8:100::2/client/g
		s/192\.168\.10\.81|2001:db8:10::81/gateway/g
		s/gateway\.[0-9]*/gateway/; s/ICMP6?,? //; s/, (id|length) .*//
		s/(\.(9|53|67|547)): ?.*/\1/; s/truncated.* client/client/' | LC_ALL=C sort -V |
		uniq -c | sed 's/^ *//'
}
ends() { # COUNT - true if the last case has COUNT records
	has_records "$1" "$log" ' (203.0.113.|2001:db8:113::)12: ICMP'
}
records=0 others=0 times=0
kinds() { # SETTING...
	filter gateway <<-END
		$(printf '%s\n' "$@")
		set ruleset-optimization none
		$tables
		match log (to pflog1) to <_1>
		block in proto tcp to port { 1:6, 8:15 }
		pass
		pass log to <_1> no state
		pass log from <_1> no state
		pass log to <_2>
		pass log (all) to <_3>
		match log (matches) to <_5>
		pass to <_5>
		pass in log on lan0 inet to 203.0.113.7 rdr-to 203.0.113.4
		pass in log on lan0 inet6 to 2001:db8:113::7 rdr-to 2001:db8:113::4
		pass out log on wan0 inet to 203.0.113.8 nat-to 192.168.10.81
		pass out log on wan0 inet6 to 2001:db8:113::8 nat-to 2001:db8:10::81
		pass in log on lan0 to <_9> keep state (max 1)
		pass in log on lan0 inet6 to 64:ff9b::/96 af-to inet from 192.168.10.81
		pass out log (user) on wan0 to <_11>
		pass in log proto udp to port { 67, 547 }
		block log to <_12>
	END
	pf gateway -q -F states
	on client python3 "$HERE/log-games.py" send eth0 "$link_address"
	for number in 0 1; do
		on gateway python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (sys.argv[1], 9))' \
			"${addresses[20 + number]}"
	done
	on client python3 "$HERE/echoes.py" $SERVER4 $SERVER6 -- "${addresses[@]}" >/dev/null
	times=$((times + 2))
	holds "$*: the last record" await 5 ends $times
	same "$*: what differs in the log" "" \
		"$(diff <(expected) <(seen "$log" $((records + 1))))"
	same "$*: the other log" "2 0: match in lan0: client > case 1: echo request
2 0: match out wan0: client > case 1: echo request" "$(seen "$other" $((others + 1)))"
	same "$*: what differs in users, and addresses after translation" "" \
		"$(diff <(translated) <(python3 "$HERE/log-games.py" read "$log" $((records + 1))))"
	records=$(records "$log" .) others=$(records "$other" .)
}
# twice where both families match the rule; rule 5 is a match rule and the deciding rule
expected() {
	cat <<-END
		2 4: pass in lan0: client > case 1: echo request
		2 4: pass out wan0: client > case 1: echo request
		2 5: pass in wan0: case 1 > client: echo reply
		2 5: pass out lan0: case 1 > client: echo reply
		2 6: pass in lan0: client > case 2: echo request
		2 6: pass out wan0: client > case 2: echo request
		2 7: pass in lan0: client > case 3: echo request
		2 7: pass in wan0: case 3 > client: echo reply
		2 7: pass out lan0: case 3 > client: echo reply
		2 7: pass out wan0: client > case 3: echo request
		2 8: match in lan0: client > case 5: echo request
		2 8: match out wan0: client > case 5: echo request
		4 9: pass in lan0: client > case 5: echo request
		4 9: pass out wan0: client > case 5: echo request
		1 10: pass in lan0: client > case 7: echo request
		1 11: pass in lan0: client > case 7: echo request
		1 12: pass out wan0: client > case 8: echo request
		1 13: pass out wan0: client > case 8: echo request
		2 14: pass in lan0: client > case 9: echo request
		1 15: pass in lan0: client > 64:ff9b::cb00:710a: echo request
		2 16: pass out wan0: client > case 11: echo request
		2 16: pass out wan0: gateway > case 11.9
		1 17: pass in lan0: 0.0.0.0.68 > 255.255.255.255.67
		1 18: pass in lan0: ::.546 > ff02::1:2.547
		2 19: block in lan0: client > case 12: echo request
		1 default(ip-option): block in lan0: client.9 > case 4.53
		1 default(short): block in lan0: client.9 > case 4.53
	END
}
translated() {
	cat <<-END
		16 0
		16 0
		10 nobody 192.168.100.2 > 203.0.113.4
		11 nobody 2001:db8:100::2 > 2001:db8:113::4
		12 nobody 192.168.10.81 > 203.0.113.8
		13 nobody 2001:db8:10::81 > 2001:db8:113::8
		15 nobody 192.168.10.81 > 203.0.113.10
	END
}
each_way kinds
same "packets that found no room for a state" 9 "$(reason gateway state-limit)"
verdict
