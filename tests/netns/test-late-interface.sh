# An interface that appears after the load is filtered as soon as skipstepd attaches it, also when
# it disappears and comes back.
#
#   client ----------------- gateway ----------------- server
#                  lan0      late0     wan0
#                              |
#                            eth0
#                            guest   (wired up last)  198.51.100.2  2001:db8:51::2
# long: 23 s
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 8080

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass out on wan0
pass in on late0 proto tcp from (late0:network) to port 80
END
daemon gateway

# plug_in [IFINDEX] - joins the guest to the gateway by a new interface
plug_in() {
	wire guest eth0 gateway late0 "$@"
	address gateway late0 198.51.100.1/24 2001:db8:51::1/64
	address guest eth0 198.51.100.2/24 2001:db8:51::2/64
	on guest ip route add default via 198.51.100.1
	on guest ip -6 route add default via 2001:db8:51::1
}

host guest
plug_in

await 5 eval '[ "$(probe_web guest '$SERVER4' 8080)" = "no answer" ]'
same "what no rule passes is blocked" 0 $?
await 3 eval 'pf gateway -sI | grep -q "^late0"'
same "pfctl -sI knows the interface" 0 $?
await 3 eval '[ "$(probe_web guest '$SERVER4' 80)" = passed ]'
same "its rule and its dynamic address hold" 0 $?
same "its rule and its dynamic address hold, IPv6" passed "$(probe_web guest $SERVER6 80)"
same "and still blocked" "no answer" "$(probe_web guest $SERVER4 8080)"

# the interface's data changes in place, while packets may read it
on gateway ip link set late0 name early0
holds "called otherwise, its rule is not for it" \
	await 3 eval '[ "$(probe_web guest '$SERVER4' 80)" = "no answer" ]'
on gateway ip link set early0 name late0
holds "called as before, its rule holds" \
	await 3 eval '[ "$(probe_web guest '$SERVER4' 80)" = passed ]'

on gateway ip link delete late0
await 3 eval '! pf gateway -sI | grep -q "^late0"'
holds "the daemon is well after the interface went" kill -0 "${PROCESSES[skipstepd-gateway]}"
same "others are filtered as before" "no answer" "$(probe_web client $SERVER4 80)"

# in a long-lived namespace indexes are large
plug_in 70000
await 5 eval '[ "$(probe_web guest '$SERVER4' 8080)" = "no answer" ]'
same "back again, what no rule passes is blocked" 0 $?
holds "back again, its rule and its dynamic address hold" \
	await 3 eval '[ "$(probe_web guest '$SERVER4' 80)" = passed ]'
same "back again, IPv6" passed "$(probe_web guest $SERVER6 80)"
same "back again, and still blocked" "no answer" "$(probe_web guest $SERVER4 8080)"

# skipstepd and pfctl attach the same interfaces at once
host crowded
filter crowded <<<"pass"
daemon crowded
for number in {1..60}; do
	echo "link add left$number type veth peer name right$number"
done >"$WORK/many"
on crowded ip -batch "$WORK/many" &
many=$!
while kill -0 $many 2>/dev/null; do
	pf crowded -q -e
done >"$WORK/enable" 2>&1
wait $many
same "pfctl names no interface that is not filtered" "" \
	"$(head -n 1 "$WORK/enable")"
same "nor does skipstepd" "skipstepd: ready" "$(cat "$WORK/skipstepd-crowded.log")"
holds "all are attached" await 5 eval \
	'[ "$(pf crowded -sI -vv | grep -c "Hook: *tc")" -ge 121 ]'
verdict
