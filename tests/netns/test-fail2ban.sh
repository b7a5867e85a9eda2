# fail2ban bans an address with its own action `pf`, unchanged: it makes a persistent table in an
# anchor, and then loads a rule that names it into the same anchor. Its stop empties the anchor,
# flushes the table and deletes it.
#
#   client ----------------- gateway (fail2ban) ----------------- server
#                  lan0                          wan0
. "$(dirname "$0")/lab.sh"
folder=$(unpacked fail2ban) || unable "fail2ban cannot be had here"
export PYTHONPATH=$folder/usr/lib/python3/dist-packages
python3 -c 'import fail2ban.server.server' 2>"$WORK/import" ||
	unable "fail2ban does not run here: $(tail -n 1 "$WORK/import")"
gateway_between_client_and_server
GATEWAY4=192.168.100.1
web gateway 22 80
filter gateway <<-'END'
	set skip on lo
	pass
	anchor "f2b/*"
END

cp -r "$folder/etc/fail2ban" "$WORK/fail2ban"
rm -f "$WORK"/fail2ban/jail.d/*
printf '[Definition]\ndbfile = None\n' >"$WORK/fail2ban/fail2ban.local"
cat >"$WORK/fail2ban/jail.local" <<-END
	[DEFAULT]
	banaction = pf
	backend = polling
	maxretry = 2
	findtime = 600
	bantime = 600

	[sshd]
	enabled = true
	logpath = $WORK/auth.log
END
: >"$WORK/auth.log"
# f2b ARGUMENT... - talks to the server of fail2ban
f2b() {
	python3 "$folder/usr/bin/fail2ban-client" -c "$WORK/fail2ban" -s "$WORK/f2b.sock" "$@"
}
# table - prints the flags and the name of the jail's table
table() {
	pf gateway -a f2b/sshd -sT -v 2>&1 | xargs
}
# fails ADDRESS - reports a failed login to fail2ban
fails() {
	echo "$(LC_ALL=C date '+%b %e %H:%M:%S') gateway sshd[7]: Failed password for root" \
		"from $1 port 4000 ssh2" >>"$WORK/auth.log"
}
has_rule() {
	pf gateway -a f2b/sshd -sr | grep -q f2b-sshd
}
banned() {
	pf gateway -a f2b/sshd -t f2b-sshd -T show | grep -qw "$1"
}
unbanned() {
	! banned "$1"
}

start fail2ban gateway env PATH="$BIN:$PATH" python3 "$folder/usr/bin/fail2ban-server" -xf \
	-c "$WORK/fail2ban" -s "$WORK/f2b.sock" -p "$WORK/f2b.pid" --logtarget STDOUT start
await 20 grep -q "Jail 'sshd' started" "$WORK/fail2ban.log" ||
	die "fail2ban does not start: $(tail -n 5 "$WORK/fail2ban.log")"
await 5 has_rule || die "no rule"
same "the table of the jail" "-pa-r-C f2b-sshd@f2b/sshd" "$(table)"
same "its rule" "block drop quick proto tcp from <f2b-sshd> to any port = 22" \
	"$(pf gateway -a f2b/sshd -sr)"

same "before the ban" passed "$(probe_web client $GATEWAY4 22)"
fails $CLIENT4
fails $CLIENT4
await 20 banned $CLIENT4 || die "no ban: $(tail -n 5 "$WORK/fail2ban.log")"
same "the port of the jail" "no answer" "$(probe_web client $GATEWAY4 22)"
same "another port" passed "$(probe_web client $GATEWAY4 80)"
f2b set sshd unbanip $CLIENT4 >"$WORK/unban" 2>&1
await 10 unbanned $CLIENT4 || die "no end of the ban: $(cat "$WORK/unban")"
same "after the ban" passed "$(probe_web client $GATEWAY4 22)"

# the main rule set is loaded again while an address is banned
f2b set sshd banip $CLIENT4 >"$WORK/ban" 2>&1
await 10 banned $CLIENT4 || die "no ban: $(cat "$WORK/ban")"
filter gateway <<-'END'
	set skip on lo
	pass
	anchor "f2b/*"
END
same "the ban after a load of the main rule set" "no answer" "$(probe_web client $GATEWAY4 22)"

f2b stop >"$WORK/stop" 2>&1
stop fail2ban
same "errors of fail2ban" "" "$(grep -w 'ERROR\|CRITICAL' "$WORK/fail2ban.log")"
same "the anchor after its end" "pfctl: Anchor does not exist." "$(table)"
same "the port after its end" passed "$(probe_web client $GATEWAY4 22)"
verdict
