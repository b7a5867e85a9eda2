# An interface that joins a group is judged by the group's rules at once, also for packets of a flow
# on the fast path without a state.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0, in group dmz later

# group names that no other process uses
[ -n "${SKIPSTEP_OWN_MOUNTS:-}" ] || exec env SKIPSTEP_OWN_MOUNTS=1 unshare --mount bash "$0"
. "$(dirname "$0")/lab.sh"
mkdir -p /etc/iproute2
touch /etc/iproute2/group
{ cat /etc/iproute2/group; echo "7066 dmz"; } >"$WORK/group"
mount --bind "$WORK/group" /etc/iproute2/group
gateway_between_client_and_server
one_by_one_server server $SERVER4
on gateway ip link set lo group dmz # the group exists before wan0 is in it
filter gateway <<'END_OF_RULES'
pass no state
block out on dmz proto udp to port 7
END_OF_RULES
daemon gateway
same "datagrams go and come" 20 "$(one_by_one client $SERVER4 20 0.01 | cut -d ' ' -f 1)"
forwarded() {
	pf gateway --json -si |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["fast_forward"]["tc"])'
}
one_by_one client $SERVER4 90 0.02 >"$WORK/answers" &
flow=$!
sleep 0.7 # a part of the flow
at_least 20 "datagrams that took the fast path" "$(forwarded)"
on gateway ip link set wan0 group dmz
wait $flow
answers=$(cut -d ' ' -f 1 "$WORK/answers")
at_least 10 "answers before wan0 is in the group" "$answers"
at_most 75 "answers in all" "$answers"
umount /etc/iproute2/group
verdict
