# State limiters and source limiters on real hosts. They refuse packets over their limits, `pfctl -s
# LimiterStates` and `-s LimiterSrcs` show them, and they survive a reload. A source leaves their
# table when its states end, and `pfctl -I id -k source` removes a source.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53

# A refused exchange takes three seconds. A state lives up to a second less than its timeout,
# because the timeout counts whole seconds.
rules() {
	cat <<END
set timeout { udp.first 8, udp.single 8, udp.multiple 8 }
state limiter few id 1 limit 5
source limiter each id 2 entries 10 limit 100 inet mask $1 table <many> above 2 below 2
block all
pass inet6 proto icmp6 no state
pass in on lan0 inet proto udp state limiter few source limiter each
pass out on wan0 inet proto udp
END
}
rules 32 | filter gateway
passed=0
for ((i = 0; i < 8; i++)); do
	[ "$(probe_udp client $SERVER4 53)" != passed ] || passed=$((passed + 1))
done
same "exchanges that found room" 5 $passed
at_least 3 "packets refused" "$(reason gateway state-limit)"
pf gateway -sLimiterStates >"$WORK/states"
pf gateway -v -sLimiterSrcs >"$WORK/sources"
cat "$WORK/states" "$WORK/sources"
holds "the state limiter" grep -Eq '^  1        5/5          nil/nil          5 +[3-9] +0$' \
	"$WORK/states"
holds "the source limiter" grep -Eq '^  2        1/10         100   nil/nil          5 +0 +0 +0$' \
	"$WORK/sources"
holds "its source" grep -Eq "^	$CLIENT4/32 rdomain 0 inuse 5/100 admit 5 hardlim 0 ratelim 0$" \
	"$WORK/sources"
same "the table" "$CLIENT4" "$(pf gateway -t many -T show | tr -d ' ')"

rules 32 | filter gateway
same "a reload keeps what is used" "5/5" \
	"$(pf gateway -sLimiterStates | awk '$1 == 1 { print $2 }')"
same "one more is refused" "no answer" "$(probe_udp client $SERVER4 53)"
rules 24 | on gateway "$BIN/pfctl" -q -f - 2>"$WORK/refused" &&
	die "masks changed while there are sources"
cat "$WORK/refused"
holds "another mask is refused" grep -q 'source limiter each tracks sources' "$WORK/refused"

await 15 eval '[ "$(state_count gateway)" = 0 ]' || die "the states do not end"
same "the table afterwards, though no packet came" "" "$(pf gateway -t many -T show)"
same "there is room again" passed "$(probe_udp client $SERVER4 53)"

# A removed source begins with a new count. Its old states continue and do not lower the new count.
filter gateway <<'END'
set timeout { udp.first 4, udp.single 4, udp.multiple 4 }
source limiter one id 3 entries 10 limit 1
block all
pass inet6 proto icmp6 no state
pass in on lan0 inet proto udp source limiter one
pass out on wan0 inet proto udp
END
# of_source - prints the client's states, admitted packets and refused packets
of_source() {
	pf gateway -v -sLimiterSrcs | awk -v who="$CLIENT4/32" '$1 == who { print $5, $7, $9 }'
}
same "the first exchange" passed "$(probe_udp client $SERVER4 53)"
same "the second" "no answer" "$(probe_udp client $SERVER4 53)"
same "an address that it does not know" "pfctl: source limiter 3 has no entry for 192.0.2.1" \
	"$(on gateway "$BIN/pfctl" -I 3 -k source -k 192.0.2.1 2>&1)"
same "a limiter that is not there" "pfctl: no source limiter has the id 2" \
	"$(on gateway "$BIN/pfctl" -I 2 -k source -k $CLIENT4 2>&1)"
pf gateway -I 3 -k source -k $CLIENT4
same "it is forgotten" "" "$(of_source)"
at_least 1 "its states" "$(state_count gateway)"
same "no states counted" 0/10 "$(pf gateway -sLimiterSrcs | awk '$1 == 3 { print $2 }')"
same "the exchange after that" passed "$(probe_udp client $SERVER4 53)"
same "what is known of it" "1/1 1 0" "$(of_source)"
await 15 eval '[ "$(state_count gateway)" = 0 ]' || die "the states do not end"
same "when all states are gone" "0/1 1 0" "$(of_source)"
verdict
