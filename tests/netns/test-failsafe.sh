# The failsafe list: ports of /etc/pf.failsafe stay open, whatever is loaded behind the list, and a
# list that is wrong refuses the load.
# long: 26 s
#
#   visitor                             host
#   eth0 ------------------------------ eth0
#   192.0.2.1                      192.0.2.2
. "$(dirname "$0")/lab.sh"
host visitor
host host
wire visitor eth0 host eth0
address visitor eth0 192.0.2.1/24
address host eth0 192.0.2.2/24
PATIENCE=1
witness host 22 80
own_etc
LIST=$ETC/pf.failsafe

# ports - how the visitor fares at ports 22 and 80
ports() {
	seen_from visitor 192.0.2.2 22 | tr '\n' ' '
	seen_from visitor 192.0.2.2 80
}
OPEN="192.0.2.1 no answer"
CLOSED="no answer no answer"
load() { # LINE... - loads rules; prints the messages
	printf '%s\n' "$@" >"$WORK/pf.conf"
	pf host -f "$WORK/pf.conf" 2>&1
}
# says WHAT PATTERN COMMAND... - checks that a command fails with a message
says() {
	local what=$1 pattern=$2 said status
	shift 2
	said=$("$@" 2>&1)
	status=$?
	same "$what: exit status" 1 $status
	same "$what: message" 1 "$(grep -c -- "$pattern" <<<"$said")"
}

# without a list
load "block quick" && pf host -q -e
same "without a list" "$CLOSED" "$(ports)"
same "doctor without a list" 1 "$(pf host doctor | grep -c '^OK    failsafe *no list')"

# each load begins with the list
cat >"$LIST" <<-'END_OF_LIST'
	# ssh
	ports = "{ 22 }"
	pass in proto tcp to port $ports no state
	pass out proto tcp from port $ports no state
END_OF_LIST
same "the rules in force before a load" "$CLOSED" "$(ports)"
same "doctor says so" 1 "$(pf host doctor | grep -c '^FAIL  failsafe ')"
same "a load" "" "$(load "block quick")"
same "block quick" "$OPEN" "$(ports)"
same "the first rule" 'anchor "failsafe" quick all' "$(pf host -sr | head -n 1)"
same "its rules" 2 "$(pf host -a failsafe -sr | grep -c '^pass')"
same "doctor with the list" 1 "$(pf host doctor | grep -c '^OK    failsafe .*2 rules of /etc/pf.failsafe')"
load "set skip on lo" "set state-defaults no-sync" "match in scrub (no-df)" \
	"table <banned> { 192.0.2.1 }" "block quick from <banned>" >"$WORK/said"
same "a table of banned addresses" "$OPEN" "$(ports)"
load "set limit states 1" "block" "pass in proto tcp to port 80" >"$WORK/said"
same "the first state" 192.0.2.1 "$(seen_from visitor 192.0.2.2 80)"
same "a full table of states" "$OPEN" "$(ports)"
load "set limit states 1000" "block quick" >"$WORK/said"
same "the optimizer" "" "$(pf host -o basic -f "$WORK/pf.conf" 2>&1)"
same "with the optimizer" "$OPEN" "$(ports)"
same "-nvf" "# failsafe list: 2 rules of /etc/pf.failsafe" \
	"$(pf host -nvf "$WORK/pf.conf" | head -n 1)"
same "explain of a file" "pass by rule failsafe/0, /etc/pf.failsafe:3" \
	"$(pf host explain -f "$WORK/pf.conf" 'in eth0 tcp 192.0.2.1:4000 > 192.0.2.2:22 S' |
		grep '^pass')"
same "explain of the rules in force" "pass by rule failsafe/0, /etc/pf.failsafe:3" \
	"$(pf host explain 'in eth0 tcp 192.0.2.1:4000 > 192.0.2.2:22 S' | grep '^pass')"
echo "pass in" >"$WORK/other.conf"
same "diff compares what comes behind the list" 1 \
	"$(pf host diff "$WORK/pf.conf" "$WORK/other.conf" | grep -c '^[-+] .*failsafe\|^+ pass in')"

# commands do not change the list
for command in "-f $WORK/other.conf" "-F rules" "-F all"; do
	# shellcheck disable=SC2086
	says "pfctl -a failsafe $command" "edit this file, and then load" \
		pf host -a failsafe $command
done
says "pfctl -a 'failsafe/*' -F rules" "edit this file" pf host -a 'failsafe/*' -F rules
same "after these commands" "$OPEN" "$(ports)"
for what in nat states Sources info Tables; do
	pf host -q -F $what 2>"$WORK/said"
done
pf host -q -z
pf host -q -a other -f "$WORK/other.conf"
pf host -q -a other -F rules
same "after other flushes" "$OPEN" "$(ports)"
pf host -q -F rules
same "pfctl -F rules: nothing is blocked" "192.0.2.1 192.0.2.1" "$(ports)"
same "and no list is left" "" "$(pf host -a failsafe -sr 2>/dev/null)"
load "block quick" >"$WORK/said"
same "the next load" "$OPEN" "$(ports)"
pf host -q -a '*' -F all
same "pfctl -a '*' -F all: nothing is blocked" "192.0.2.1 192.0.2.1" "$(ports)"
load "block quick" >"$WORK/said"
same "the next load after it" "$OPEN" "$(ports)"

# trials have the list
load "block" >"$WORK/said"
pf host -q -f "$WORK/pf.conf" --confirm 60
same "a load on trial" "$OPEN" "$(ports)"
pf host -q revert
same "after it" "$OPEN" "$(ports)"

# pf.conf has no anchor of this name
says "an anchor in pf.conf" "$WORK/pf.conf:1: anchor \"failsafe\" is the failsafe list" \
	load "anchor failsafe"

# a wrong list refuses each load, and the rules in force stay
cp "$LIST" "$WORK/list"
echo "block in" >>"$LIST"
says "a block rule" "^/etc/pf.failsafe:5: .*write block rules into pf.conf" load "block quick"
same "doctor with a wrong list" 1 "$(pf host doctor | grep -c '^FAIL  failsafe ')"
cp "$WORK/list" "$LIST"
chmod 666 "$LIST"
says "a list that others may write" "^/etc/pf.failsafe: .*chmod go-w" load "pass"
chmod 644 "$LIST"
chown 1 "$LIST"
says "a list of another user" "^/etc/pf.failsafe: .*chown root" load "pass"
chown 0 "$LIST"
mv "$LIST" "$WORK/list"
ln -s nowhere "$LIST"
says "a link to nowhere" "^/etc/pf.failsafe: No such file" load "pass"
rm "$LIST"
same "meanwhile" "$OPEN" "$(ports)"

# a new list, and no list
echo "pass in proto tcp to port 80 no state" >"$LIST"
echo "pass out proto tcp from port 80 no state" >>"$LIST"
same "doctor with a new list" 1 "$(pf host doctor | grep -c '^WARN  failsafe .*other rules')"
load "block quick" >"$WORK/said"
same "a new list" "no answer 192.0.2.1" "$(ports)"
: >"$LIST"
same "an empty list" "/etc/pf.failsafe: warning: the failsafe list has no rules" \
	"$(load "block quick")"
printf 'pass in proto tcp to port 8080 no state\n' >"$LIST"
pf host -q -f "$WORK/pf.conf" --confirm 60 2>"$WORK/said"
same "-s confirm shows a change of the list" \
	"+ failsafe: pass in proto tcp from any to any port = 8080 no state" \
	"$(pf host -s confirm | grep '^+' | sed "s,  # /etc/pf.failsafe:1$,,")"
pf host -q revert
rm "$LIST"
same "the load that removes the list" 1 \
	"$(load "block quick" | grep -c 'there is no /etc/pf.failsafe any more')"
same "without the list" "$CLOSED" "$(ports)"
same "the next load" "" "$(load "block quick")"
verdict
