# States that `pfctl -S` stores and `pfctl -L` restores continue, under rules that pass new
# connections only.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

rules() {
	filter gateway <<-'RULES'
		block all
		pass inet6 proto icmp6
		match proto tcp to port 80 scrub (reassemble tcp)
		pass in on lan0 proto tcp to port 80 tag web
		pass out on wan0 proto tcp to port 80 label "web"
	RULES
}
# matched COUNTER - prints a counter of the match rule
matched() {
	pf gateway -vsr -R 2 | grep -o "$1: [0-9]*" | grep -o '[0-9]*$'
}
rules
start transfer client curl --silent --output /dev/null --limit-rate 16M --speed-time 5 \
	--speed-limit 1000 \
	--write-out '%{size_download}' "http://$SERVER4/large"
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 2 ]' ||
	die "the transfer does not start"
# connections pause while the states are stored, because packets would make the stored states stale
kill -STOP "${PROCESSES[transfer]}"
await 3 eval 'now=$(pf gateway -ss -v | grep pkts | cut -d , -f 3); sleep 0.3
	[ "$now" = "$(pf gateway -ss -v | grep pkts | cut -d , -f 3)" ]' ||
		die "the transfer does not stop"

holds "pfctl -S" pf gateway -S "$WORK/states"
same "who may read the file" 600 "$(stat --format %a "$WORK/states")"
same "TCP states in it" 2 "$(grep -c '"protocol":6' "$WORK/states")"
before=$(pf gateway -ss | grep tcp | sort)
holds "pfctl -F states" pf gateway -F states
same "states that are left" 0 "$(state_count gateway tcp)"
holds "pfctl -L" pf gateway -L "$WORK/states"
same "the states" "$before" "$(pf gateway -ss | grep tcp | sort)"
same "their rules" "rule 3 rule 4" "$(pf gateway -ss -v | grep -o 'rule [34]' | sort | xargs)"
same "states of the match rule" 2 "$(matched States)"
packets=$(matched Packets)
holds "pfctl -L again" pf gateway -L "$WORK/states"
same "states, which were there" 2 "$(state_count gateway ESTABLISHED:ESTABLISHED)"
# with other timestamps than before, the servers would drop the client's segments
kill -CONT "${PROCESSES[transfer]}"
wait "${PROCESSES[transfer]}"
same "curl's exit status" 0 $?
same "its bytes" 67108864 "$(cat "$WORK/transfer.log")"
unset "PROCESSES[transfer]"
at_least $((packets + 100)) "packets of the match rule" "$(matched Packets)"

pf gateway -q -F states
pf gateway -q -f - <<<'pass'
pf gateway -L "$WORK/states"
same "states under other rules" 2 "$(state_count gateway ESTABLISHED:ESTABLISHED)"
same "their rules" "" "$(pf gateway -ss -v | grep -A 2 tcp | grep -o 'rule [0-9]*')"
verdict
