# `pfctl -k` by the addresses and ports of a state, its rule's label, its id, its key and its next
# hop, on one interface or on all, with -M on both sides of a connection; `pfctl -ss` shows the
# remaining states.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 51
echo_server server 52
OTHER4=192.168.100.77
on client ip address add $OTHER4/24 dev eth0

filter gateway <<'END'
set timeout { udp.first 600, udp.single 600, udp.multiple 600 }
set skip on lo
pass
pass in on lan0 proto udp to port 51 label "one"
pass in on lan0 proto udp to port 52 label "two"
END

# talk - makes two states on lan0 and two on wan0 for each of three senders
talk() {
	pf gateway -q -F states
	local from to port
	for from in $CLIENT4 $OTHER4 $CLIENT6; do
		case $from in *:*) to=$SERVER6 ;; *) to=$SERVER4 ;; esac
		for port in 51 52; do
			echo hello | on client timeout 1 nc -u -W 1 -s "$from" -p $((4000 + port)) \
				"$to" $port >/dev/null || die "no echo"
		done
	done
}

# killed WHAT COUNT LEFT ARGUMENT... - checks the number of states that pfctl reports as killed, and
# the number that remain
killed() {
	local what=$1 count=$2 left=$3
	shift 3
	same "$what" "killed $count states" "$(pf gateway "$@" 2>&1 | sed 's/ from .*//')"
	same "left, $what" "$left" "$(state_count gateway '^[a-z0-9]* udp')"
}

# id PATTERN - prints the id of the state whose line matches
id() {
	pf gateway -ss -vv | awk -v pattern="$1" \
		'$0 ~ pattern { found = 1 } found && $1 == "id:" { print $2; exit }'
}

talk
same "states before" 12 "$(state_count gateway '^[a-z0-9]* udp')"
killed "by source" 4 8 -k $OTHER4
killed "by source, which has none left" 0 8 -k $OTHER4
killed "by network" 4 4 -k 2001:db8:100::/64
killed "by source and destination" 0 4 -k $CLIENT4 -k $CLIENT4
killed "by any source, and destination" 4 0 -k 0.0.0.0/0 -k $SERVER4

talk
killed "by label" 3 9 -k label -k one
killed "by a label that no rule has" 0 9 -k label -k three
killed "by key, on both sides of the gateway" 2 7 -k key -k "udp $CLIENT4:4052 -> $SERVER4:52"
killed "by a key of which one end is another" 0 7 -k key -k "udp $OTHER4:4053 -> $SERVER4:52"
killed "by key, written from the other end" 2 5 -k key -k "udp ${SERVER6}[52] <- ${CLIENT6}[4052]"
same "the state that is to be killed by its id" 1 \
	"$(state_count gateway "$SERVER4:52 <- $OTHER4:4052")"
killed "by id" 1 4 -k id -k "$(id "$SERVER4:52 <- $OTHER4:4052")"
same "that state" 0 "$(state_count gateway "$SERVER4:52 <- $OTHER4:4052")"
same "the one of the same packets on the other side" 1 \
	"$(state_count gateway "$OTHER4:4052 -> $SERVER4:52")"

# -M kills the state on the other interface, too, also of a translated connection
talk
killed "by id, on both sides" 2 10 -M -k id -k "$(id "$SERVER4:52 <- $OTHER4:4052")"
same "states of that connection" 0 "$(state_count gateway "$OTHER4:4052")"
killed "by label, on both sides" 6 4 -M -k label -k one
filter gateway <<END
set timeout { udp.first 600, udp.single 600, udp.multiple 600 }
set skip on lo
pass
pass in on lan0 inet proto udp to port 51 rdr-to $SERVER4 port 52 label "one"
match out on wan0 inet proto udp from $CLIENT4 nat-to (wan0)
END
talk
same "translated states" 2 "$(state_count gateway "192.168.10.81:.*($CLIENT4:")"
killed "by label, translated, on both sides" 4 8 -M -k label -k one
same "translated states that are left" 1 "$(state_count gateway "192.168.10.81:.*($CLIENT4:")"
said=$(pf gateway -M -e 2>&1 | head -n 1)
same "-M alone" "pfctl: -M applies to states of -k and -F only" "$said"
filter gateway <<'END'
set timeout { udp.first 600, udp.single 600, udp.multiple 600 }
set skip on lo
pass
pass in on lan0 proto udp to port 51 label "one"
pass in on lan0 proto udp to port 52 label "two"
END

# states outlive their rules until they are killed, also by the label of a removed rule
talk
filter gateway <<'END'
set skip on lo
block
pass inet6 proto icmp6
END
# goes_on PORT - sends from a port that `talk` has used
goes_on() {
	[ "$(echo hello | on client timeout 1 nc -u -W 1 -s $CLIENT4 -p $((4000 + $1)) \
		$SERVER4 "$1")" = hello ] && echo passed || echo "no answer"
}
same "a state whose rule is gone" passed "$(goes_on 51)"
killed "by a label that another rule had" 3 9 -k label -k two
same "a state whose rule had another label" passed "$(goes_on 51)"
same "a state that was killed by its label" "no answer" "$(goes_on 52)"
killed "by the label of the rule that is gone" 3 6 -k label -k one
same "a state that was killed by its label" "no answer" "$(goes_on 51)"

# a state with its own next hop
filter gateway <<END
set timeout { udp.first 600, udp.single 600, udp.multiple 600 }
pass
pass in on lan0 inet proto udp to port 51 route-to $SERVER4
END
talk
killed "by a gateway that no state has" 0 12 -k gateway -k 192.168.10.3
killed "by gateway" 2 10 -k gateway -k $SERVER4
same "states to the port of that rule, over IPv4 into lan0" 0 \
	"$(state_count gateway "$SERVER4:51 <- ")"

# floating states are bound to no interface; states bound to an interface can be killed by it
filter gateway <<'END'
set state-policy if-bound
set timeout { udp.first 600, udp.single 600, udp.multiple 600 }
pass
END
talk
same "states bound to their interfaces" 6 "$(state_count gateway '^wan0 udp')"
killed "by source, on one interface" 2 10 -i lan0 -k $CLIENT4
talk
pf gateway -q -M -i wan0 -F states
same "flushed on one interface, with the other sides" 0 "$(state_count gateway '^[a-z0-9]* udp')"
talk
killed "by source, on one interface" 2 10 -i lan0 -k $CLIENT4
pf gateway -q -i wan0 -F states
same "flushed on one interface" 4 "$(state_count gateway '^[a-z0-9]* udp')"
verdict
