# The processes of skipstepd that parse packets have no rights. A killed worker is restarted, and no
# packet passes unfiltered meanwhile.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
echo_server server 53

filter gateway <<'END'
pass all
block in log on lan0 proto udp to port 7777
pass in on lan0 proto udp to port 53 divert-packet port 700
pass out on wan0 proto icmp set delay 10
END
log=$WORK/gateway-pflog0
start collector server nc -u -l -k 4739
await 5 listening server udp 4739 || die "no collector"
start "skipstepd-gateway" gateway "$BIN/skipstepd" -f "$WORK/gateway-pflog" -e "$SERVER4:4739"
daemon_log=$WORK/skipstepd-gateway.log
await 10 grep -q "skipstepd: ready" "$daemon_log" || die "no skipstepd: $(cat "$daemon_log")"

# of PROCESS FIELD - prints a field of its status
of() {
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}
tasks=(fragments divert delay log flows)
# `make install` makes the first user, which no other program uses
uid=$(id -u _skipstepd 2>/dev/null || id -u nobody)
for task in "${tasks[@]}"; do
	await 10 worker_of gateway "$task" || die "no worker for $task: $(cat "$daemon_log")"
	worker=$(worker_of gateway "$task")
	await 10 eval '[ "$(of "$worker" Seccomp)" = 2 ]'
	same "$task: user" "$uid $uid $uid $uid" "$(of "$worker" Uid | tr '\t' ' ')"
	same "$task: group is not root's" 0 "$(of "$worker" Gid | grep -cw 0)"
	same "$task: further groups" 0 "$(of "$worker" Groups | grep -cw 0)"
	for set in CapInh CapPrm CapEff CapAmb; do
		same "$task: $set" 0000000000000000 "$(of "$worker" $set)"
	done
	same "$task: no new privileges" 1 "$(of "$worker" NoNewPrivs)"
	same "$task: system calls are filtered" 2 "$(of "$worker" Seccomp)"
	same "$task: files that it sees" "" "$(ls -A "/proc/$worker/root/")"
	same "$task: its root" /run/skipstep/empty "$(readlink "/proc/$worker/root")"
	same "$task: threads" 1 "$(of "$worker" Threads)"
	same "$task: files that it has open, but the log and devices" "" \
		"$(readlink "/proc/$worker"/fd/* | grep -v -e '^socket:' -e '^anon_inode:\[event' \
		-e '^/dev/null$' -e '^/dev/net/tun$' -e "^$WORK/" -e '^pipe:')"
done
same "the guardian is root" 0 "$(of "${PROCESSES[skipstepd-gateway]}" Uid | cut -f 1)"
same "workers of the guardian" ${#tasks[@]} "$(pgrep -c --parent "${PROCESSES[skipstepd-gateway]}")"

# each worker does its task
program() {
	[ -z "${PROCESSES[program]:-}" ] || stop program
	start program gateway python3 "$ROOT/examples/divert.py" -p "${PINS[gateway]##*/}" 700
	await 10 grep -q ready "$WORK/program.log" || die "no program: $(cat "$WORK/program.log")"
}
works() {
	local before
	case $1 in
	fragments) on client ping -n -q -c 1 -W 1 -s 4000 192.168.100.1 ;;
	divert) [ "$(probe_udp client "$SERVER4" 53)" = passed ] || { program; false; } ;;
	delay) [ "$(probe_ping client "$SERVER4")" = passed ] ;;
	log)
		before=$(stat --format %s "$log" 2>/dev/null || echo 0)
		on client python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("'$SERVER4'", 7777))'
		await 1 eval '[ "$(stat --format %s "$log")" -gt '"$before"' ]'
		;;
	flows) # templates, at the beginning
		before=$(stat --format %s "$WORK/collector.log")
		[ "$before" -gt "${collected:-0}" ] && collected=$before
		;;
	esac
}
# replaced TASK PROCESS - true if another process has the task
replaced() {
	local now
	now=$(worker_of gateway "$1") && [ "$now" != "$2" ]
}
# kill_worker TASK - kills a worker, and waits until the guardian has noticed
kill_worker() {
	local worker
	worker=$(worker_of gateway "$1") || die "no worker for $1"
	kill -KILL "$worker"
	await 5 eval "! kill -0 $worker" || die "the worker for $1 does not end"
}
for task in "${tasks[@]}"; do
	holds "$task: done" await 10 works "$task"
done
for task in divert delay log flows; do
	worker=$(worker_of gateway "$task")
	kill_worker "$task"
	holds "$task: a worker takes the place of one that was killed" await 10 replaced "$task" \
		"$worker"
	holds "$task: done by the next one" await 10 works "$task"
done
same "files of the log, with whole records" 0 \
	"$(tcpdump -n -r "$log" 2>&1 >/dev/null | grep -c truncated)"

# A worker that dies repeatedly is restarted after increasing pauses. Meanwhile no packet passes
# that the worker would have to process.
for _ in 1 2 3 4; do
	worker=$(worker_of gateway fragments)
	kill_worker fragments
	await 20 replaced fragments "$worker" || die "no further worker for fragments"
	await 10 eval '[ "$(of "$(worker_of gateway fragments)" Seccomp)" = 2 ]'
done
before=$(reason gateway fragment)
kill_worker fragments
same "fragments without a worker" "" "$(works fragments | grep '1 received')"
same "the device for fragments" "" "$(on gateway ip -o link | grep pffrag)"
at_least $((before + 1)) "packets counted as fragment" "$(reason gateway fragment)"
same "whole packets without a worker" passed "$(probe_ping client $SERVER6)"
holds "the next worker puts fragments together" await 20 works fragments

for work in "reassembles fragments" "hands packets to programs" "holds delayed packets" \
	"writes the log" "reports flows"; do
	holds "the journal names the worker that $work" \
		grep -q "the worker that $work: ended (signal: 9 (SIGKILL)" "$daemon_log"
done
at_most 20 "lines in the journal" "$(wc -l <"$daemon_log")"

# no worker outlives its guardian
workers=$(pgrep --parent "${PROCESSES[skipstepd-gateway]}" | tr '\n' ,)
daemon_stop gateway KILL
same "workers without a guardian" "" "$(ps --no-headers -p "${workers%,}")"
verdict
