# A full state table refuses new states and counts them; existing states continue.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53
web server 80

filter gateway <<'END'
set limit states 20
set timeout { adaptive.start 0, adaptive.end 0 }
pass inet
pass inet6 no state
END
start transfer client curl --silent --output /dev/null --limit-rate 20M --write-out \
	'%{size_download}' "http://$SERVER4/large"
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 2 ]' ||
	die "the transfer does not start"
passed=0
for ((i = 0; i < 14; i++)); do
	[ "$(probe_udp client $SERVER4 53)" != passed ] || passed=$((passed + 1))
done
# Each exchange needs a state on each of the gateway's interfaces.
same "exchanges that found room" 9 $passed
same "states" 20 "$(state_count gateway)"
at_least 5 "packets refused for want of memory" "$(reason gateway memory)"
wait "${PROCESSES[transfer]}"
unset "PROCESSES[transfer]"
same "bytes of a transfer that had its states before" 67108864 "$(cat "$WORK/transfer.log")"
verdict
