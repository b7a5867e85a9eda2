# The writer of the log is too slow: packets do not wait for it, and each record without room is
# counted.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

filter gateway <<'END'
pass all
block in log on lan0 proto udp to port 7777
END
daemon gateway
log=$WORK/gateway-pflog0

# flood - sends 6000 datagrams that are blocked and logged, more than the ring can hold
flood() {
	send_datagrams 6000 client $SERVER4 7777
}
blocked() {
	pf gateway -vsr | awk '/7777/ { getline; print $5 }'
}
lost() {
	pf gateway --json -si | python3 \
		-c 'import json, sys; print(json.load(sys.stdin)["log_lost"])'
}
written() {
	tcpdump -n -r "$log" 2>/dev/null | grep -c 7777
}
all_there() {
	[ "$(($(written) + $(lost)))" = "$(blocked)" ]
}

flood
same "packets blocked" 6000 "$(blocked)"
await 10 all_there
same "records written and lost" 6000 "$(($(written) + $(lost)))"
before=$(lost)

daemon_signal gateway STOP
flood
same "packets blocked while it stands still" 12000 "$(blocked)"
same "packets that pass" passed "$(probe_web client $SERVER4 80)"
at_least 1000 "records lost" "$(($(lost) - before))"
daemon_signal gateway CONT
await 10 all_there
same "records written and lost, together" 12000 "$(($(written) + $(lost)))"

before=$(written)
on client python3 -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"after", ("'$SERVER4'", 7777))'
await 5 eval '[ "$(written)" = $((before + 1)) ]'
same "the log goes on" $((before + 1)) "$(written)"
verdict
