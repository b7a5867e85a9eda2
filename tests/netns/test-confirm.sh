# long: waits for the ends of three trials
#
# Loads on trial: `pfctl -f FILE --confirm SECONDS` goes back by itself, unless somebody confirms
# it. No skipstepd runs here, so only the kernel can go back.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 81

# rules PORT [LINE] - prints rules that pass connections to a port
rules() {
	printf '%s\n' "table <shared> persist" "table <listed> { 192.0.2.$1 }" "${2-}" "block all" \
		"block in quick from <listed>" "block in quick from <shared>" \
		"pass in on lan0 proto tcp to port $1" "pass out on wan0 proto tcp to port $1"
}
# passes PORT - prints "passed" or "no answer" for a new connection
passes() {
	probe_web client "$SERVER4" "$1"
}
trial() {
	pf gateway -q "$@" 2>&1
}
gone_back() {
	pf gateway -s confirm | grep -q '^No rules are on trial'
}
rules 80 >"$WORK/80"
rules 81 >"$WORK/81"
pf gateway -q -ef "$WORK/80" || die "the rules were not loaded"
same "nothing is on trial" "No rules are on trial." "$(pf gateway -s confirm)"
same "so nothing can be confirmed" \
	"pfctl: no rules are on trial: \`pfctl -f file --confirm seconds\` loads some" \
	"$(trial confirm)"

# The time runs out. A connection of the new rules ends, and one of the old rules stays.
start old client curl --silent --output /dev/null --limit-rate 1M "http://$SERVER4/large"
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 2 ]' || die "no transfer"
same "a load on trial" \
	"pfctl: on trial for 6 s: run \`pfctl confirm\` to keep these rules, or the rules before come back" \
	"$(pf gateway -f "$WORK/81" --confirm 6 2>&1)"
same "a new connection by the new rules" passed "$(passes 81)"
same "a new connection by the old rules" "no answer" "$(passes 80)"
seen=$(pf gateway -s confirm)
same "the load" "On trial: $WORK/81" "$(head -1 <<<"$seen")"
holds "its user" grep -q '^  loaded by root (process [0-9]*) on ' <<<"$seen"
holds "a rule that it removes" grep -q '^- pass in on lan0 .* port = 80' <<<"$seen"
holds "a rule that it adds" grep -q '^+ pass in on lan0 .* port = 81' <<<"$seen"
holds "the status says so" eval "pf gateway -si | grep -q '^On trial: the rules before come back in'"
holds "and JSON" eval "pf gateway --json -si | grep -q '\"seconds_left\": [0-6]'"
refused=$(trial -f "$WORK/80")
holds "another load is refused" grep -q '^pfctl: rules of user 0 (process [0-9]*) are on trial for [0-6] s more: run `pfctl confirm` or `pfctl revert` first' <<<"$refused"
start new client nc "$SERVER4" 81
await 1 eval '[ "$(state_count gateway ":81 .*ESTABLISHED:ESTABLISHED")" = 2 ]' || die "no connection"
pf gateway -q -t shared -T add 203.0.113.7
await 8 gone_back || die "the filter does not go back"
same "new connections by the old rules" passed "$(passes 80)"
same "new connections by the rules on trial" "no answer" "$(passes 81)"
same "states of rules that only the load had" 0 "$(state_count gateway ":81 .*ESTABLISHED")"
same "states of the old rules" 2 "$(state_count gateway ":80 .*ESTABLISHED:ESTABLISHED")"
same "the contents of a table that the load replaced" "   192.0.2.80" \
	"$(pf gateway -t listed -T show)"
same "an address that was added to another table" "   203.0.113.7" \
	"$(pf gateway -t shared -T show)"
holds "the failed load is remembered" eval \
	"pf gateway -s confirm | grep -q '^The last load on trial ($WORK/81, by root .*) was not confirmed in 6 s'"
same "a late confirmation" \
	"pfctl: too late: the load was not confirmed in 6 s, and the rules before it are in force: load again" \
	"$(trial confirm)"
stop new

# Two loads on trial: the filter goes back to the rules before the first one.
pf gateway -q -f "$WORK/81" --confirm 60
rules 82 >"$WORK/82"
pf gateway -q -f "$WORK/82" --confirm 60
pf gateway -q -f "$WORK/81" --confirm 60
pf gateway -q -f "$WORK/82" --confirm 60
same "rules of the last load" 1 "$(pf gateway -sr | grep -c '^pass in .* port = 82')"
same "a command that ends the trial" \
	"pfctl: reverted: the rules before the load of $WORK/82 by root are in force again" \
	"$(pf gateway revert 2>&1)"
same "rules after it" 1 "$(pf gateway -sr | grep -c '^pass in .* port = 80')"
same "the old connection" 2 "$(state_count gateway ":80 .*ESTABLISHED:ESTABLISHED")"

# Confirmed in time.
pf gateway -q -f "$WORK/81" --confirm 1
same "a confirmation" "pfctl: confirmed: the load of $WORK/81 by root stays" \
	"$(pf gateway confirm 2>&1)"
sleep 2.1
same "connections after the time" passed "$(passes 81)"
same "nothing is on trial" "No rules are on trial." "$(pf gateway -s confirm)"
pf gateway -q -f "$WORK/80" || die "a load after a confirmed one is refused"

# With --keep-states, states of new rules stay.
pf gateway -q -f "$WORK/81" --confirm 60 --keep-states
start new client nc "$SERVER4" 81
await 1 eval '[ "$(state_count gateway ":81 .*ESTABLISHED:ESTABLISHED")" = 2 ]' || die "no connection"
pf gateway -q revert
same "states with --keep-states" 2 "$(state_count gateway ":81 .*ESTABLISHED:ESTABLISHED")"
stop new

# Errors arm nothing.
echo "pass in on" >"$WORK/wrong"
pf gateway -q -f "$WORK/wrong" --confirm 60 2>"$WORK/errors"
same "the exit status of a load with an error" 1 $?
same "nothing is on trial after it" 1 "$(pf gateway -s confirm | grep -c '^No rules are on trial')"

# Anchors, tables and flushes.
pf gateway -q -a guests -f - <<<"block in proto udp"
pf gateway -q -a guests -f "$WORK/81" --confirm 60
same "an anchor on trial" 2 "$(pf gateway -a guests -sr | grep -c 'port = 81')"
pf gateway -q revert
same "an anchor after it" "block drop in proto udp all" "$(pf gateway -a guests -sr)"
pf gateway -q --confirm 60 -t listed -T replace 198.51.100.0/24
same "a table on trial" "   198.51.100.0/24" "$(pf gateway -t listed -T show)"
pf gateway -q revert
same "a table after it" "   192.0.2.80" "$(pf gateway -t listed -T show)"
pf gateway -q -F rules --confirm 60
same "flushed rules on trial" 0 "$(pf gateway -sr | wc -l)"
pf gateway -q revert
same "rules after a flush" 1 "$(pf gateway -sr | grep -c '^pass in .* port = 80')"

# --write copies the file as it was loaded, and only when it is confirmed.
mkdir "$WORK/etc"
cp /etc/services /etc/protocols /etc/passwd /etc/group "$WORK/etc"
echo "# before" >"$WORK/etc/pf.conf"
confirmed() {
	on gateway unshare --mount sh -c 'mount --bind "$1" /etc && exec "$2" -q confirm' - \
		"$WORK/etc" "$BIN/pfctl"
}
cp "$WORK/81" "$WORK/later"
pf gateway -q -f "$WORK/later" --confirm 60 --write
echo "changed later" >"$WORK/later"
same "before the confirmation" "# before" "$(cat "$WORK/etc/pf.conf")"
holds "a confirmation that writes" confirmed
holds "pf.conf has the loaded rules" cmp "$WORK/81" "$WORK/etc/pf.conf"

# A load that enables the filter: it is disabled afterwards, and no program is left attached.
pf gateway -q -d
pf gateway -q -ef "$WORK/80" --confirm 2
holds "the filter is enabled" eval "pf gateway -si | grep -q '^Status: Enabled'"
await 4 gone_back || die "the filter does not go back"
holds "the filter is disabled" eval "pf gateway -si | grep -q '^Status: Disabled'"
# the next change detaches the programs, which pass all packets by now
pf gateway -q -t shared -T add 203.0.113.8
same "interfaces with a program" 0 "$(pf gateway --json -s Interfaces | grep -c '"hook": "tc')"
stop old
verdict
