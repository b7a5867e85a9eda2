# A source with too many connections is added to a table and loses its states; others are
# unaffected.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
ATTACKER=192.168.100.77
on client ip address add $ATTACKER/24 dev eth0
web server 80

# knock - makes one request of the attacker
knock() {
	on client curl --silent --output /dev/null --max-time 1 --interface $ATTACKER \
		"http://$SERVER4/"
}

filter gateway <<'RULES'
table <bruteforce> persist
block in quick from <bruteforce>
pass
pass in on lan0 proto tcp to port 80 keep state (max-src-conn-rate 5/30, overload <bruteforce> flush global)
RULES
start good client curl --silent --output /dev/null --limit-rate 20M --write-out '%{size_download}' \
	"http://$SERVER4/large"
start bad client curl --silent --output /dev/null --limit-rate 1M --interface $ATTACKER \
	"http://$SERVER4/large"
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 4 ]' ||
	die "the transfers do not start"

knocks=0
while knock && [ $knocks -lt 40 ]; do
	knocks=$((knocks + 1))
done
at_least 4 "knocks that were answered, one transfer not counted" $knocks
same "in the table" "$ATTACKER" "$(pf gateway -t bruteforce -T show | xargs)"
same "answered since" "" "$(knock && echo answered)"
# OpenBSD ends states of the interface on which the source came in; states of the other interface
# time out.
await 15 eval '[ "$(state_count gateway "<- $ATTACKER")" = 0 ]' ||
	die "the attacker's states are not flushed"
same "connections over the rate" 1 "$(pf gateway -vsi | awk '/max-src-conn-rate/ { print $2 }')"
same "overloads" 1 "$(pf gateway -vsi | awk '/overload table insertion/ { print $4 }')"
same "sources tracked" "$CLIENT4 $ATTACKER" "$(pf gateway -sS | awk '{ print $1 }' | xargs)"
stop bad
wait "${PROCESSES[good]}"
unset "PROCESSES[good]"
same "bytes of the other's transfer" 67108864 "$(cat "$WORK/good.log")"
pf gateway -q -t bruteforce -T delete $ATTACKER
same "forgotten" "killed 1 src nodes from 1 sources and 0 destinations" \
	"$(pf gateway -K $ATTACKER 2>&1)"
same "forgiven" "answered" "$(knock && echo answered)"

# The next time the entry is removed by its age, while packets of others pass.
start flow client ping -n -q -i 0.05 $SERVER4
pf gateway -q -t bruteforce -T add 198.51.100.1
while knock && [ $knocks -lt 80 ]; do
	knocks=$((knocks + 1))
done
same "in the table once more" "$ATTACKER 198.51.100.1" "$(pf gateway -t bruteforce -T show | xargs)"
same "nobody is there for an hour" "0/0 addresses expired." \
	"$(pf gateway -t bruteforce -T expire 3600 2>&1)"
same "still not answered" "" "$(knock && echo answered)"
sleep 2
pf gateway -q -t bruteforce -T zero 198.51.100.1
same "who is there for two seconds" "1/1 addresses expired. D $ATTACKER" \
	"$(pf gateway -v -t bruteforce -T expire 2 2>&1 | xargs)"
same "whose counters were cleared since" "198.51.100.1" \
	"$(pf gateway -t bruteforce -T show | xargs)"
pf gateway -q -K $ATTACKER
same "forgiven by age" "answered" "$(knock && echo answered)"
stop flow INT
holds "no packet of others was lost" grep -q ' 0% packet loss' "$WORK/flow.log"
verdict
