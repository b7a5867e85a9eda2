# Rules are replaced repeatedly during a transfer. The connection keeps its state, and at every
# moment exactly one whole rule set is in force, even if loads race or are killed.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

# rules N PORT - prints a rule set of N rules with the same label
rules() {
	echo "block all"
	seq -f "block in proto tcp to port %.0f label set-$1" 10001 $((10000 + $1))
	echo "pass in on lan0 proto tcp to port $2"
	echo "pass out on wan0 proto tcp to port $2"
}
rules 200 80 >"$WORK/small"
rules 900 81 >"$WORK/large"
pf gateway -q -ef "$WORK/small" || die "the rules were not loaded"

# 64 MB at 8 MB/s take about eight seconds, of which ten loads take one or two.
start transfer client curl --silent --show-error --output /dev/null --limit-rate 8M \
	--write-out '%{size_download}' "http://$SERVER4/large"
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 2 ]' ||
	die "the transfer does not start"
for ((i = 0; i < 5; i++)); do
	pf gateway -q -f "$WORK/large" && pf gateway -q -f "$WORK/small" || die "a reload failed"
done
pf gateway -q -f "$WORK/large"
kill -0 "${PROCESSES[transfer]}" || die "the transfer is over before the loads are"
same "states that survived them" 2 "$(state_count gateway ESTABLISHED:ESTABLISHED)"
same "a new connection, which the last rules do not pass" "no answer" \
	"$(probe_web client $SERVER4 80)"
wait "${PROCESSES[transfer]}"
same "curl's exit status" 0 $?
unset "PROCESSES[transfer]"
same "bytes transferred" 67108864 "$(cat "$WORK/transfer.log")"

# Two loads at once, of which one is killed at a random time, twenty times.
torn=0
for ((i = 0; i < 20; i++)); do
	pf gateway -q -f "$WORK/small" & one=$!
	pf gateway -q -f "$WORK/large" & two=$!
	sleep "0.0$((RANDOM % 9))$((RANDOM % 9))"
	[ $((i % 2)) = 0 ] || kill -KILL $two 2>/dev/null
	wait $one $two 2>/dev/null
	case $(pf gateway -sr | wc -l) in
	203 | 903) ;;
	*) torn=$((torn + 1)) ;;
	esac
done
same "rule sets that were neither the one nor the other" 0 $torn
pf gateway -q -f "$WORK/small"
same "and rules can still be loaded" passed "$(probe_web client $SERVER4 80)"
verdict
