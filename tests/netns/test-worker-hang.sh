# A hanging worker of skipstepd: the guardian notices within 40 seconds, reports it, and starts
# another worker, which continues the work. SIGSTOP makes a worker hang.
# long: a guardian waits for 40 seconds
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
filter gateway <<'END'
pass all
pass out on wan0 proto icmp set delay 10
END
start "skipstepd-gateway" gateway "$BIN/skipstepd" -f "$WORK/gateway-pflog" -e "$SERVER4:4739"
daemon_log=$WORK/skipstepd-gateway.log
await 10 grep -q "skipstepd: ready" "$daemon_log" || die "no skipstepd: $(cat "$daemon_log")"

tasks=(fragments divert delay log flows)
declare -A hanging
for task in "${tasks[@]}"; do
	await 10 worker_of gateway "$task" || die "no worker for $task: $(cat "$daemon_log")"
	hanging[$task]=$(worker_of gateway "$task")
done
fragments() { [ "$(probe_ping_long)" = passed ]; }
probe_ping_long() {
	on client ping -n -q -c 1 -W 1 -s 4000 192.168.100.1 >/dev/null && echo passed
}
delayed() { [ "$(probe_ping client "$SERVER4")" = passed ]; }
holds "fragments before" await 10 fragments
holds "delayed packets before" await 10 delayed

since=$(date +%s)
kill -STOP "${hanging[@]}"
same "fragments while the worker hangs" "" "$(probe_ping_long)"
same "delayed packets while the worker hangs" "no answer" "$(probe_ping client "$SERVER4")"

# replaced TASK - true if another process has the task
replaced() {
	local now
	now=$(worker_of gateway "$1") && [ "$now" != "${hanging[$1]}" ]
}
for task in "${tasks[@]}"; do
	holds "$task: another worker takes the place" await 120 replaced "$task"
	same "$task: the worker that hung is gone" "" \
		"$(ps --no-headers -o pid -p "${hanging[$task]}")"
done
at_least 35 "seconds that a worker may be silent" "$(($(date +%s) - since))"
for work in "reassembles fragments" "hands packets to programs" "holds delayed packets" \
	"writes the log" "reports flows"; do
	holds "the journal names the worker that $work" \
		grep -q "the worker that $work: does not respond, and is restarted" "$daemon_log"
done
holds "fragments after that" await 10 fragments
holds "delayed packets after that" await 10 delayed
daemon_stop gateway
verdict
