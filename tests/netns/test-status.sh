# The counters of `pfctl -si` and related commands, and the commands that reset them: status, the
# log interface, rules and labels, limits, the debug level, and an expired `once` rule.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
filter gateway <<'END'
set loginterface lan0
pass
pass in on lan0 inet proto icmp label "ping $if $nr"
pass in on lan0 inet6 proto icmp6 label "six"
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
END
same "ping $SERVER4" passed "$(probe_ping client $SERVER4)"
same "ping $SERVER6" passed "$(probe_ping client $SERVER6)"

# An echo enters and leaves by two interfaces: four state lookups of a family, of which two create a
# state.
at_least 8 "searches" "$(reason gateway searches)"
at_least 4 "inserts" "$(reason gateway inserts)"
at_least 4 "packets that rules decided" "$(reason gateway match)"
# interface NAME - prints a counter of the interface that `set loginterface` names, over IPv4
interface() {
	pf gateway -si | awk -v name="$1" '/Packets In/ { at = "in " } /Packets Out/ { at = "out " }
		/Bytes (In|Out)/ && tolower($1 " " $2) == name { print $3 } tolower(at $1) == name { print $2 }'
}
same "bytes into lan0" 84 "$(interface "bytes in")"
same "bytes out of lan0" 84 "$(interface "bytes out")"
same "packets into lan0" 1 "$(interface "in passed")"
same "packets out of lan0" 1 "$(interface "out passed")"
same "packets blocked" 0 "$(interface "in blocked")"
same "labels: evaluations, packets, bytes, in, out, states" "ping lan0 1 2 168 1 84 1 84 1" \
	"$(pf gateway -sl | awk '$1 == "ping" { print $1, $2, $3, $5, $6, $7, $8, $9, $10, $11 }')"
holds "counters of rules" eval \
	'pf gateway -sr -v | grep -A 1 ping | grep -q "Packets: 2         Bytes: 168         States: 1 "'
holds "-z clears those of rules" pf gateway -z
same "labels" "ping lan0 1 0 0 0 0 0 0 0 0 six 0 0 0 0 0 0 0 0" "$(pf gateway -sl | xargs)"
at_least 4 "and nothing else, inserts" "$(reason gateway inserts)"
holds "-F info clears the rest" pf gateway -F info
# hosts may have sent router solicitations and multicast reports meanwhile
holds "inserts are counted anew" [ "$(reason gateway inserts)" -lt 4 ]
same "bytes into lan0" 0 "$(interface "bytes in")"
at_least 4 "and ends no state" "$(state_count gateway icmp)"
filter gateway <<<pass
same "an interface that is no longer named" "" "$(interface "bytes in")"

# blocked packets of each family
filter gateway <<'END'
set loginterface lan0
pass
block in on lan0 inet proto icmp
block in on lan0 inet6 proto icmp6 icmp6-type echoreq
END
pf gateway -q -F states
pf gateway -q -F info
same "ping $SERVER4" "no answer" "$(probe_ping client $SERVER4)"
same "ping $SERVER6" "no answer" "$(probe_ping client $SERVER6)"
same "packets blocked" 1 "$(interface "in blocked")"
same "over IPv6" 1 "$(pf gateway -si | awk '/Packets In/ { here = 1 }
	here && $1 == "Blocked" { print $3; exit }')"
same "none on the way out" 0 "$(interface "out blocked")"

for level in emerg alert crit err warning notice info debug; do
	pf gateway -q -x $level
	same "debug level" "$level" "$(pf gateway -si | sed -n 's/.*Debug: //p')"
done
pf gateway -q -x loud 2>/dev/null
same "exit status for a level that does not exist" 1 $?

filter gateway <<'END'
set limit { states 50, src-nodes 20, frags 30, tables 40, table-entries 60 }
pass
END
same "limits" "states 50 src-nodes 20 frags 30 tables 40 table-entries 60" \
	"$(pf gateway -sm | awk \
	'$1 ~ /^(states|src-nodes|frags|tables|table-entries)$/ { print $1, $4 }' | xargs)"
for n in $(seq 1 41); do echo "table <t$n> persist"; done >"$WORK/tables"
(echo "set limit tables 40"; cat "$WORK/tables"; echo pass) | pf gateway -q -f - 2>/dev/null
same "exit status of a rule set with more tables than the limit" 1 $?
(echo "set limit tables 41"; cat "$WORK/tables"; echo pass) | pf gateway -q -f -
same "with as many" 0 $?

filter gateway <<'END'
block in on lan0 inet proto icmp
pass in on lan0 inet proto icmp once
pass out on wan0
END
pf gateway -q -F states
same "a rule that holds once" passed "$(probe_ping client $SERVER4)"
same "does not hold twice" "no answer" "$(probe_ping client $SERVER4)"
same "it is not shown any more" 0 "$(pf gateway -sr | grep -c once)"
same "unless all is asked for" 1 \
	"$(pf gateway -sr -vv | grep -c '^@1 pass in on lan0 inet proto icmp all once # expired')"
pf gateway -q -F states
same "nor does it when its states are gone" "no answer" "$(probe_ping client $SERVER4)"
verdict
