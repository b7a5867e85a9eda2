# long: waits for the ends of two trials, and for a lock that is held
#
# The filter goes back in time while a process holds the lock of the instance, and while many
# processes want it. skipstepd and pfctl do their part once they have the lock.
#
#   client ----------------- gateway (skipstepd) ----------------- server
#                  lan0                             wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 81
instance=/run/skipstep/${PINS[gateway]##*/}

# rules PORT [LINE] - prints rules that pass connections to a port
rules() {
	printf '%s\n' "${2-}" "table <shared> persist" "block all" \
		"pass in on lan0 proto tcp to port $1" "pass out on wan0 proto tcp to port $1"
}
# passes PORT - prints "passed" or "no answer" for a new connection
passes() {
	probe_web client "$SERVER4" "$1"
}
queues() {
	on gateway tc qdisc show dev wan0 | grep -c "^qdisc htb"
}
gone_back() {
	pf gateway -s confirm | grep -q '^No rules are on trial'
}
rules 80 >"$WORK/80"
rules 81 "queue line on wan0 bandwidth 100M default" >"$WORK/81"
pf gateway -q -ef "$WORK/80" || die "the rules were not loaded"
daemon gateway

# A process takes the lock during the trial and keeps it.
pf gateway -q -f "$WORK/81" --confirm 2
same "queues on trial" 1 "$(queues)"
start connection client nc "$SERVER4" 81
await 1 eval '[ "$(state_count gateway ":81 .*ESTABLISHED:ESTABLISHED")" = 2 ]' || die "no connection"
# shellcheck disable=SC2016
start holder gateway sh -c 'exec 9<"$1" && flock 9 && echo held && exec sleep 60' - "$instance/lock"
await 1 grep -q held "$WORK/holder.log" || die "nobody holds the lock"
await 4 gone_back || die "the filter does not go back"
same "new connections by the old rules" passed "$(passes 80)"
same "new connections by the rules on trial" "no answer" "$(passes 81)"
same "rules in force" 1 "$(pf gateway -sr | grep -c '^pass in .* port = 80')"
same "states of rules that only the load had" 0 "$(state_count gateway ":81 .*ESTABLISHED")"
holds "the trial failed, as pfctl says" eval \
	"pf gateway -s confirm | grep -q '^The last load on trial ($WORK/81, by root .*) was not confirmed in 2 s'"
holds "nobody could end the trial" test -e "$instance/trial.json"
same "a queue waits for the lock" 1 "$(queues)"
refused=$(pf gateway confirm 2>&1)
holds "a command that wants the lock names its holder" grep -q "$instance/lock.*sleep 60" <<<"$refused"
same "the rules are in force still" passed "$(passes 80)"
stop holder
holds "skipstepd ends the trial once it has the lock" await 2 test ! -e "$instance/trial.json"
holds "the queue goes" await 2 eval '[ "$(queues)" = 0 ]'
holds "skipstepd says so" await 1 grep -q \
	'a load was not confirmed in 2 s: the rules before it are in force again' \
	"$WORK/skipstepd-gateway.log"
stop connection
holds "a load is possible again" pf gateway -q -f "$WORK/80"

# Many processes want the lock all the time.
# crowd ADDRESS - adds an address to a table and deletes it, for ever
crowd() {
	while :; do
		pf gateway -q -t shared -T add "$1"
		pf gateway -q -t shared -T delete "$1"
	done
}
pf gateway -q -f "$WORK/81" --confirm 3
begin=$SECONDS
for number in 1 2 3 4 5 6; do
	crowd "203.0.113.$number" >"$WORK/crowd-$number.log" 2>&1 &
	PROCESSES[crowd-$number]=$!
done
await 8 gone_back || die "the filter does not go back"
at_most 5 "seconds until the filter went back, of 3" $((SECONDS - begin))
same "new connections by the old rules" passed "$(passes 80)"
same "new connections by the rules on trial" "no answer" "$(passes 81)"
for number in 1 2 3 4 5 6; do
	stop crowd-$number
	same "complaints of a process that wanted the lock" "" "$(cat "$WORK/crowd-$number.log")"
done
holds "the trial was ended meanwhile" await 2 test ! -e "$instance/trial.json"
holds "and its queue went" await 2 eval '[ "$(queues)" = 0 ]'
holds "the same rules can be loaded" pf gateway -q -f "$WORK/80"
verdict
