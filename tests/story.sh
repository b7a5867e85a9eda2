# The story of a new user, told by tests/packages on a system that has just got the packages: rules
# that lock the user out, the way back, the reason, the page, pftop, and a guesser who is banned.
# UPDATE=1 writes the picture of README.md.
# The programs of the host "peer" are the user's own: ssh, a browser, a terminal. All others are
# those of the system.

# typed COMMAND - writes a command into the picture, with its output from standard input
typed() {
	{
		echo "# $1"
		fold -s -w 99
	} >>"$WORK/picture"
}

# login COMMAND - runs a command on the machine by ssh, as the user does
login() {
	on peer "${SSH[@]}" -o ServerAliveInterval=1 -o ServerAliveCountMax=2 root@192.0.2.1 "$@"
}

# within NAME [USER] COMMAND... - starts a process of the system on the host "machine", as `enter`
within() {
	local name=$1 user=()
	[ -z "$2" ] || user=(--userspec="$2:$2")
	shift 2
	start "$name" machine unshare --pid --fork --kill-child --mount-proc="$root/proc" \
		chroot "${user[@]}" "$root" "$@"
}

# end NAME - ends a process of the system: unshare ignores SIGTERM, and so may its first process
end() {
	pkill -TERM -P "${PROCESSES[$1]}"
	await 2 eval "! kill -0 ${PROCESSES[$1]}"
	stop "$1" KILL
}

# unit NAME - starts the program of a unit of the packages, as the user of the unit
unit() {
	local file=$root/lib/systemd/system/$1.service command
	command=$(sed -n 's/^ExecStart=//p' "$file")
	# shellcheck disable=SC2086
	within "$1" "$(sed -n 's/^User=//p' "$file")" $command
}

# remote_access - starts the system's sshd, and makes a key for the user
remote_access() {
	ssh-keygen -q -t ed25519 -N '' -f "$WORK/key"
	mkdir -p "$root/run/sshd" "$root/root/.ssh"
	cp "$WORK/key.pub" "$root/root/.ssh/authorized_keys"
	SSH=(ssh -q -i "$WORK/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
		-o BatchMode=yes -o ConnectTimeout=2)
	# with the beginning of a line that syslog writes, for fail2ban
	within sshd "" sh -c '/usr/sbin/sshd -D -e -o UsePAM=no 2>&1 | while read -r line; do
		echo "$(LC_ALL=C date "+%b %e %H:%M:%S") machine sshd[1]: $line"; done >/var/log/auth.log'
	await 5 login true || die "no login: $(cat "$root/var/log/auth.log")"
}

# locked_out - rules without ssh, on trial; drops are watched meanwhile
locked_out() {
	local began=$SECONDS
	printf '%s\n' 'set skip on lo' 'block log all' 'pass out' >"$root/etc/pf.conf"
	typed "cat /etc/pf.conf" <"$root/etc/pf.conf"
	login 'pfctl -ef /etc/pf.conf --confirm 10 2>/root/said
		timeout 9 pfctl drops on eth0 proto tcp port 22 >/root/drops 2>&1'
	same "the session is cut" 255 $?
	holds "no other session is possible" eval '! login true'
	holds "the filter has a countdown" eval \
		'enter pfctl -s confirm | grep -Eq "come back in [0-9]+ s \(of 10 s\)"'
	holds "the user gets in again by waiting" await 20 login true
	at_most 14 "seconds that this took" $((SECONDS - began))
	holds "the load has named the reason" grep -q \
		'your ssh session from 192.0.2.2 will be blocked by the rule in line 2' "$root/root/said" ||
		cat "$root/root/said"
	typed "pfctl -ef /etc/pf.conf --confirm 10; \
timeout 9 pfctl drops on eth0 proto tcp port 22 >drops" <"$root/root/said"
	echo "(the ssh session stops here; another one is possible after ten seconds)" >>"$WORK/picture"
	same "the filter is as before" 0 "$(login pfctl -si | grep -c '^Status: Enabled')"
}

# reason_found - drops has shown the user's own packets, with the line of the rule
reason_found() {
	await 10 grep -q 'pf.conf:2' "$root/root/drops"
	holds "drops names the packet, the reason and the line" grep -Eq \
		'match.*rule 0 \(pf.conf:2\).*tcp 192\.0\.2\.2:[0-9]+ > 192\.0\.2\.1:22 S' "$root/root/drops"
	grep -m 1 ' S seq' "$root/root/drops" | sed 's/ seq .*/ .../' | typed "cat drops"
}

# rules_mended - the missing line, on trial and confirmed by a new session
rules_mended() {
	local line
	for line in 'pass in proto tcp to port ssh' 'anchor "f2b/*"'; do
		echo "$line" >>"$root/etc/pf.conf"
		typed "echo '$line' >>/etc/pf.conf" </dev/null
	done
	login pfctl -ef /etc/pf.conf --confirm 30 2>&1 | typed "pfctl -ef /etc/pf.conf --confirm 30"
	holds "a new session confirms" eval 'login pfctl confirm >"$WORK/confirmed" 2>&1'
	typed "pfctl confirm        # in a new ssh session" <"$WORK/confirmed"
	same "the filter stays" 1 "$(login pfctl -si | grep -c '^Status: Enabled')"
}

# page_seen - the page in a browser, through ssh, as its page of the documentation says
page_seen() {
	local token
	mkdir "$root/run/skipstep-broker"
	unit skipstepd
	unit skipstep-broker
	await 10 test -S "$root/run/skipstep-broker/socket" || die "$(cat "$WORK/skipstep-broker.log")"
	unit skipstep-web
	token=$(login skipstep-broker token add reader screen)
	start tunnel peer "${SSH[@]}" -N -L 8099:127.0.0.1:8099 root@192.0.2.1
	await 10 on peer curl -s -o /dev/null http://127.0.0.1:8099/ ||
		die "no page: $(cat "$WORK/skipstep-web.log" "$WORK/tunnel.log")"
	on peer env HOME="$WORK" PICTURES="${PICTURES:-}" READER="$token" \
		PROBE="nc -z -w 1 192.0.2.1 23" /usr/bin/python3 "$HERE/web-page.py" \
		http://127.0.0.1:8099/ story || FAILED=1
	stop tunnel
}

# terminal_seen - pftop in a terminal of 80x24, through ssh
terminal_seen() {
	local terminal=(on peer env LC_ALL=C.UTF-8 tmux -u -S "$WORK/terminal" -f /dev/null)
	"${terminal[@]}" new-session -d -x 80 -y 24 \
		"$(printf '%q ' "${SSH[@]}") -tt root@192.0.2.1 pftop -s 1 -v rules"
	holds "pftop shows the rule with a bar" await 10 eval \
		'"${terminal[@]}" capture-pane -p | grep -Eq "^0 +[^ 0-9]+ +[1-9][0-9]* .* block drop log all"'
	"${terminal[@]}" send-keys d
	on peer nc -z -w 2 192.0.2.1 23
	holds "and the dropped packet" await 10 eval \
		'"${terminal[@]}" capture-pane -p | grep -q "match .*eth0 .*pf.conf:2"'
	"${terminal[@]}" capture-pane -p | grep -v '^$' | typed "pftop -s 1 -v drops"
	"${terminal[@]}" send-keys q
	"${terminal[@]}" kill-server 2>/dev/null
}

# guesser_banned - fail2ban with its action `pf`, and another address of the peer
guesser_banned() {
	printf '%s\n' '[DEFAULT]' 'banaction = pf' 'backend = polling' 'maxretry = 3' \
		'[sshd]' 'enabled = true' 'logpath = /var/log/auth.log' >"$root/etc/fail2ban/jail.local"
	mkdir -p "$root/run/fail2ban"
	within fail2ban "" fail2ban-server -xf --logtarget STDOUT start
	await 20 grep -q "Jail 'sshd' started" "$WORK/fail2ban.log" || die "$(cat "$WORK/fail2ban.log")"
	on peer ip address add 192.0.2.3/24 dev eth0
	guess() {
		on peer "${SSH[@]}" -b 192.0.2.3 admin@192.0.2.1
	}
	guess
	holds "the guesser reaches sshd" grep -q 'Invalid user admin from 192.0.2.3' \
		"$root/var/log/auth.log"
	guess
	guess
	holds "fail2ban bans the guesser" await 20 eval \
		'login pfctl -a f2b/sshd -t f2b-sshd -T show | grep -qw 192.0.2.3' ||
		tail "$WORK/fail2ban.log"
	same "the guesser gets no answer" 124 \
		"$(on peer timeout 3 nc -s 192.0.2.3 192.0.2.1 22 </dev/null >/dev/null 2>&1; echo $?)"
	holds "the user still gets in" login true
	login timeout 4 pfctl drops from 192.0.2.3 >"$WORK/drops" 2>&1 &
	while kill -0 $! 2>/dev/null; do
		guess
	done
	holds "drops names the rule of fail2ban" grep -Eq \
		'match.*rule f2b/sshd/0.*tcp 192\.0\.2\.3:[0-9]+ > 192\.0\.2\.1:22 S' "$WORK/drops"
	login pfctl -a f2b/sshd -t f2b-sshd -T show | typed "pfctl -a f2b/sshd -t f2b-sshd -T show"
}

# story - tells the story
story() {
	local name
	mount -t proc proc "$root/proc"
	chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
		openssh-server fail2ban >"$WORK/apt" 2>&1 || die "no sshd: $(tail -n 3 "$WORK/apt")"
	umount "$root/proc"
	remote_access
	locked_out
	reason_found
	rules_mended
	page_seen
	terminal_seen
	guesser_banned
	holds "the picture of README.md" python3 "$HERE/picture.py" "$ROOT/README.md" story \
		"${UPDATE:-}" <"$WORK/picture" || cat "$WORK/picture"
	for name in fail2ban skipstep-web skipstep-broker skipstepd sshd; do
		end "$name"
	done
	enter pfctl -q --remove
	rm -r "$root/etc/pf.conf" "$root/run/skipstep-broker"
}
