# The log's disk is full: the filter continues, skipstepd reports the error, and continues when
# there is room again.
#
#   client ----------------- gateway (log on 64 kB of tmpfs) ----------------- server
#                  lan0                                         wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

filter gateway <<'END'
pass all
block in log on lan0 proto udp to port 7777
END
mkdir "$WORK/disk"
mount -t tmpfs -o size=64k skipstep "$WORK/disk" || unable "cannot mount a tmpfs"
daemon gateway "$WORK/disk/pflog"

# flood - sends 1500 datagrams that are blocked and logged
flood() {
	send_datagrams 1500 client $SERVER4 7777
}
full() {
	[ "$(df --output=avail "$WORK/disk" | tail -n 1)" -le 4 ]
}
flood
await 3 full
same "the disk fills up" 0 $?
await 3 grep -qi "no space" "$WORK/skipstepd-gateway.log"
same "the daemon says so" 0 $?
cat "$WORK/skipstepd-gateway.log"
holds "the daemon lives" kill -0 "${PROCESSES[skipstepd-gateway]}"
same "a passed port" passed "$(probe_web client $SERVER4 80)"
flood
at_least 3000 "packets the rule blocked" "$(pf gateway -vsr | awk '/7777/ { getline; print $5 }')"

# Room again, as after logrotate.
rm "$WORK/disk/pflog0"
kill -HUP "${PROCESSES[skipstepd-gateway]}"
await 3 test -e "$WORK/disk/pflog0"
on client python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"after", ("'$SERVER4'", 7777))'
await 3 eval 'tcpdump -n -r "$WORK/disk/pflog0" 2>/dev/null | grep -q 7777'
same "the log goes on when there is room" 0 $?

# The disk is full again, and the worker is killed. At its end, skipstepd counts the records that
# both workers have lost.
# lost - prints the number of records that skipstepd reports as lost at its end
lost() {
	sed -n 's/^skipstepd: \([0-9]*\) log records were lost$/\1/p' "$WORK/skipstepd-gateway.log"
}
flood
await 3 full
same "the disk fills up again" 0 $?
flood
sleep 1.5 # the worker reports once a second
worker=$(worker_of gateway log)
kill -KILL "$worker"
await 5 eval '[ -n "$(worker_of gateway log)" ] && [ "$(worker_of gateway log)" != '"$worker"' ]' ||
	die "no other worker"
await 5 confined "$(worker_of gateway log)" || die "the other worker does not start"
flood
daemon_stop gateway
at_least 3000 "log records that were lost" "$(lost)"
verdict
