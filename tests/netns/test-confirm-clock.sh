# Somebody sets the clock back and forth during a trial: the filter goes back when the time is over
# by the clock since boot. The test sets the machine's clock, so it runs only in the emulated
# machine of tests/older-kernel, which sets OWN_CLOCK.
. "$(dirname "$0")/lab.sh"
[ -n "${OWN_CLOCK-}" ] || unable "sets the machine's clock: tests/older-kernel runs it"
host machine
DAY=86400

# uptime - prints the seconds since boot, which no clock changes
uptime() {
	local seconds
	read -r seconds _ </proc/uptime
	echo "${seconds%.*}"
}
# set_clock SECONDS - moves the wall clock by so many seconds
set_clock() {
	date -s "@$(($(date +%s) + $1))" >/dev/null || die "the clock cannot be set"
}
on_trial() {
	pf machine -s confirm | grep -q '^On trial'
}
left() {
	pf machine --json -s confirm | grep -o '"seconds_left": [0-9]*' | grep -o '[0-9]*$'
}
echo "pass" >"$WORK/open"
printf '%s\n' "pass" "block on lo inet proto icmp" >"$WORK/closed"
pf machine -q -ef "$WORK/open" || die "the rules were not loaded"
same "before the trial" passed "$(probe_ping machine 127.0.0.1)"

pf machine -q -f "$WORK/closed" --confirm 20 || die "the rules were not loaded"
begin=$(uptime)
for days in 3 -6 4000 -3997; do
	set_clock $((days * DAY))
	holds "the rules are on trial after $days days" on_trial
	same "and in force" "no answer" "$(probe_ping machine 127.0.0.1)"
	at_least $((18 - $(uptime) + begin)) "seconds left" "$(left)"
	at_most $((20 - $(uptime) + begin + 1)) "seconds left" "$(left)"
done
while on_trial && [ $(($(uptime) - begin)) -lt 40 ]; do
	set_clock $((RANDOM % 2 ? 1000 : -1000))
	sleep 0.5
done
at_least 19 "seconds until the filter went back, of 20" $(($(uptime) - begin))
at_most 22 "seconds until the filter went back, of 20" $(($(uptime) - begin))
same "after the trial" passed "$(probe_ping machine 127.0.0.1)"

# A confirmation in time stays valid when the clock is set beyond the end of the trial.
pf machine -q -f "$WORK/closed" --confirm 5 || die "the rules were not loaded"
set_clock $DAY
holds "the load is confirmed in time" pf machine -q confirm
set_clock $((-2 * DAY))
begin=$(uptime)
while [ $(($(uptime) - begin)) -lt 7 ]; do
	sleep 0.5
done
same "a confirmed load" "no answer" "$(probe_ping machine 127.0.0.1)"
verdict
