# Filter, states and counters work without skipstepd. The log continues when skipstepd is back.
#
#   client ----------------- gateway (skipstepd dies) ----------------- server
#                  lan0                                 wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 8080

filter gateway <<'END'
block log all
pass inet6 proto icmp6
pass in on lan0 proto tcp to port 80
pass out on wan0 proto tcp to port 80
END
daemon gateway
start transfer client curl --silent --output /dev/null --limit-rate 40M --write-out \
	'%{size_download}' "http://$SERVER4/large"
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 2 ]' ||
	die "the transfer does not start"
daemon_stop gateway KILL

same "a passed port" passed "$(probe_web client $SERVER4 80)"
same "a blocked port" "no answer" "$(probe_web client $SERVER4 8080)"
same "a passed port, IPv6" passed "$(probe_web client $SERVER6 80)"
wait "${PROCESSES[transfer]}"
unset "PROCESSES[transfer]"
same "bytes of a transfer that ran meanwhile" 67108864 "$(cat "$WORK/transfer.log")"
blocked=$(pf gateway -vsr | awk '/^block/ { getline; print $5; exit }')
at_least 1 "packets counted by the block rule" "$blocked"

daemon gateway
before=$(tcpdump -n -r "$WORK/gateway-pflog0" 2>/dev/null | wc -l)
same "a blocked port" "no answer" "$(probe_web client $SERVER4 8080)"
await 3 eval '[ "$(tcpdump -n -r "$WORK/gateway-pflog0" 2>/dev/null | wc -l)" -gt '"$before"' ]'
same "the log goes on" 0 $?
verdict
