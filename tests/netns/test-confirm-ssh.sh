# long: waits until ssh gives a connection up
#
# An administrator loads rules over ssh that lock him out. He does nothing, and gets back in.
#
#   client ----------------- gateway (filters, sshd)
#                  lan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
ssh_server gateway
# login [OPTION]... COMMAND - runs a command by ssh
login() {
	on client "${SSH[@]}" -o ServerAliveInterval=1 -o ServerAliveCountMax=2 "$@"
}
# without `flags any`, a session that began before the filter would hang
printf '%s\n' "block all" "pass in proto tcp to port 2222 flags any" "pass out" >"$WORK/good"
printf '%s\n' "block all" "pass out" >"$WORK/bad"
pf gateway -q -ef "$WORK/good" || die "the rules were not loaded"
same "a login" root "$(login root@192.168.100.1 id -un)"

# The rules cut new logins. The session itself has a state, so an ended state makes it hang.
login root@192.168.100.1 "$BIN/pfctl -q -f $WORK/bad --confirm 4 && $BIN/pfctl -q -F states; sleep 60" \
	>"$WORK/session.log" 2>&1 &
session=$!
await 3 eval "pf gateway -s confirm | grep -q '^On trial: $WORK/bad'" || die "nothing is on trial"
same "a login under the new rules" 255 "$(login root@192.168.100.1 id -un; echo $?)"
wait $session
same "the session is cut" 255 $?
await 6 login root@192.168.100.1 true || die "no login is possible any more"
holds "he finds out why" eval \
	"login root@192.168.100.1 '$BIN/pfctl -s confirm' | grep -q 'was not confirmed in 4 s'"

# A session without a state, which the new rules block. pfctl says so, and asks on a terminal.
pf gateway -q -d
login root@192.168.100.1 "$BIN/pfctl -q -F states; $BIN/pfctl -ef $WORK/bad --confirm 2 2>$WORK/seen" &
session=$!
await 3 grep -q "your ssh session from 192.168.100.2 will be blocked by the rule in line 1" "$WORK/seen"
same "a warning" 0 $?
await 5 login root@192.168.100.1 true || die "no login is possible any more"
holds "the filter is disabled again" eval "pf gateway -si | grep -q '^Status: Disabled'"
wait $session
same "what happens if he does not confirm" \
	"pfctl: the rules before come back in 2 s if you do not confirm" "$(grep 'come back in' "$WORK/seen")"
answer() {
	echo "$1" | login -tt root@192.168.100.1 "$BIN/pfctl -ef $WORK/bad" 2>&1 | tr -d '\r'
}
seen=$(answer n)
holds "a question" grep -q '^Load these rules all the same? \[y/N\]' <<<"$seen"
holds "a hint" grep -q 'with --confirm 60, the rules before come back' <<<"$seen"
holds "the filter is still disabled" eval "pf gateway -si | grep -q '^Status: Disabled'"
same "rules after a no" 3 "$(pf gateway -sr | wc -l)"
verdict
