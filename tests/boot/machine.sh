#!/bin/bash
# Runs in the machine of tests/real-boot, once its multi-user units start. It prints orders for the
# peer (tests/boot/peer.py), checks the machine, and turns it off:
#
#   ok TEXT
#   not ok TEXT: why
#
# /boot-test/run names the run.
exec >/dev/ttyS0 2>&1
stty -F /dev/ttyS1 raw -echo
exec </dev/ttyS1
PATIENCE=600 # timeout of each wait in seconds; only a broken machine reaches it

# same TEXT WANTED GOT - checks that WANTED and GOT are equal
same() {
	if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: wanted '$2', got '$3'"; fi
}
holds() {
	local text=$1
	shift
	if "$@"; then echo "ok $text"; else echo "not ok $text: $*"; fi
}
await() {
	local end=$((SECONDS + PATIENCE))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}
# order WORD... - gives the peer an order and waits until the peer has carried it out
order() {
	echo "@$*"
	read -r -t $PATIENCE _ || echo "not ok the peer does $*"
}
journal() { journalctl -q -b -o cat -u "$1"; }
# said UNIT TEXT - true if the journal has a message of the unit that matches TEXT
said() { journal "$1" | grep -qE -- "$2"; }
complaints() { journal skipstepd | grep '^skipstepd: ' | grep -v '^skipstepd: ready$' | head -n 3; }
rules() { pfctl -sr 2>/dev/null | head -n 1; }
hook() { pfctl -sI -vv -i "$1" 2>/dev/null | sed -n 's/.*Hook: *//p'; }
attached() { [ "$(hook "$1")" = tc ]; }
active() { [ "$(systemctl is-active "$1")" = active ]; }

booted() {
	holds "the machine comes up" await active multi-user.target
	holds "eth0 has its address" await eval 'ip -4 address show eth0 | grep -q 192.0.2.1'
	holds "eth0.5 has its address" await eval 'ip -4 address show eth0.5 | grep -q 198.18.5.1'
}
# boot_rules - checks that the boot rules are in force before and after the peer has tried all ports
boot_rules() {
	holds "the boot rules are loaded" active skipstep-boot
	same "they are in force" "block drop all" "$(rules)"
	same "the filter is enabled" 1 "$(pfctl -si | grep -c '^Status: Enabled')"
	holds "eth0 is attached" await attached eth0
	order rounds 2 0
	same "they are in force still" "block drop all" "$(rules)"
}
loaded() {
	holds "pf.conf is loaded" await active skipstep-rules
	order answered 8080
	order rounds 2 0
	holds "skipstepd runs" await active skipstepd
	holds "eth0 is attached" attached eth0
	same "skipstepd complains about nothing" "" "$(complaints)"
}
refused() {
	booted
	holds "the journal names the fault" await said skipstep-rules "$1"
	holds "it says what to do" await said skipstep-rules \
		'boot rules stay in force.*tried again by itself, at once by: systemctl restart'
	boot_rules
	holds "skipstepd runs" await active skipstepd
	holds "pf.conf is tried again" await eval \
		'[ "$(journal skipstep-rules | grep -cE "boot rules stay")" -ge 2 ]'
}

run_good() {
	booted
	loaded
}
# echoes - exchanges a line over the connection to the echo server
echoes() {
	local line
	echo "line $1" >&7
	read -r -t $PATIENCE line <&7
	same "the connection $1" "line $1" "$line"
}
run_upgrade() {
	local daemon
	booted
	loaded
	busybox nc -ll -p 7 -e busybox cat &
	await eval 'ss -Hlnt "sport = :7" | grep -q .'
	exec 7<>/dev/tcp/192.0.2.1/7
	echoes "before the upgrade"
	daemon=$(systemctl show -P MainPID skipstepd)
	dpkg --install /packages/0.0.2/*.deb 2>&1 || echo "not ok the packages are upgraded"
	echoes "after the upgrade"
	holds "skipstepd is new" await eval 'active skipstepd &&
		[ "$(systemctl show -P MainPID skipstepd)" != '"$daemon"' ]'
	loaded
	same "the package has its version" 0.0.2 "$(dpkg-query -W -f '${Version}' skipstep)"
	echo "@phase removed"
	dpkg --remove skipstep-ftp skipstep-web skipstep 2>&1 || echo "not ok the packages are removed"
	echoes "after the removal"
	holds "nothing is pinned" [ ! -e /sys/fs/bpf/skipstep ]
	same "no unit of skipstep is active" "" "$(systemctl list-units --no-legend --plain \
		--state=active '*skipstep*' '*ftp*')"
}
run_syntax() {
	refused 'pf.conf:3: syntax error'
	sed 3d /etc/pf.conf >/etc/pf.conf.new
	mv /etc/pf.conf.new /etc/pf.conf
	holds "the load is tried at once on demand" systemctl restart skipstep-rules
	loaded
}
run_name() {
	refused 'later\.example'
	echo "192.0.2.77 later.example" >>/etc/hosts
	loaded
	same "the name is in the rules" 1 "$(pfctl -sr | grep -c 192.0.2.77)"
}
run_limits() {
	booted
	loaded
	same "the limit of pf.conf is in force" 200000 \
		"$(pfctl -sm | awk '$1 == "states" { print $NF }')"
	same "it was so at the first load" "" "$(journal skipstep-rules | grep 'not loaded')"
}
run_boot_conf() {
	booted
	holds "the journal names the fault" said skipstep-boot 'boot.conf:4: syntax error'
	holds "it says what is in force, and what to do" said skipstep-boot \
		'boot.conf is not loaded: the host takes an address and ssh.*Mend'
	refused 'pf.conf:3: syntax error'
	sed -i 3d /etc/pf.conf
	holds "the load is tried at once on demand" systemctl restart skipstep-rules
	loaded
}
# closed FAULT - checks that nftables has closed the host
closed() {
	booted
	holds "the journal names the fault" said skipstep-boot "$1"
	holds "nftables closes the host" active skipstep-closed
	holds "the journal says so, and what to do" said skipstep-closed \
		'nftables blocks everything but ssh.*Mend that, then: systemctl restart skipstep-boot'
	order rounds 2 0
}
run_no_pfctl() {
	closed 'pfctl: not found'
	mv /usr/sbin/pfctl.away /usr/sbin/pfctl
	holds "skipstep starts on demand" systemctl restart skipstep-boot skipstep-rules
	loaded
	holds "nftables closes nothing any more" await eval '! nft list table inet skipstep_closed'
}
run_no_tcx() {
	closed 'this kernel lacks tcx: skipstep needs Linux 6.6 or newer'
}
run_killed() {
	booted
	holds "skipstepd was killed for the last time" await grep -q end /run/killer
	echo "skipstepd was killed: $(sort /run/killer | uniq -c | xargs)"
	holds "before it was ready" grep -q 'killed: start' /run/killer
	holds "and after that" grep -q 'killed: running' /run/killer
	holds "skipstepd runs again" await active skipstepd
	loaded
}
late_device() {
	order rounds 1 0
	echo "@device"
	holds "the late device has its address" await eval \
		'ip -4 address show 2>/dev/null | grep -q 198.51.100.1'
}
run_late() {
	booted
	loaded
	late_device
	holds "skipstepd attaches the late device" await attached eth1
	order rounds 2 1
}
run_late_without_daemon() {
	booted
	loaded
	systemctl stop skipstepd
	echo "@phase guarded"
	late_device
	same "nobody attaches the late device" "none: unattached, the guard drops its packets" \
		"$(hook eth1)"
	order rounds 2 1
	echo "@phase loaded"
	holds "a reload attaches it" systemctl reload skipstep-rules
	holds "it is attached" attached eth1
}
run_no_daemon() {
	booted
	holds "pf.conf is loaded" await active skipstep-rules
	order answered 8080
	order rounds 2 0
	holds "eth0 is attached" attached eth0
	late_device
	order rounds 2 1
}
run_no_filter() {
	booted
	order rounds 3 0
}
run_no_guard() {
	booted
	loaded
	systemctl stop skipstepd
	late_device
	order rounds 3 1
}

# reboot - resets the machine, as its switch does. After the boot this script runs again
reboot() {
	sync
	systemctl reboot --force --force
	sleep infinity
}
# try_rules PHASE - puts rules on trial that pass another port
try_rules() {
	echo "@phase $1"
	holds "other rules are on trial" pfctl -q -f /boot-test/new.conf --confirm 100000 --write
	order answered 443
	same "pfctl says so" "On trial: /boot-test/new.conf" "$(pfctl -s confirm | head -n 1)"
	holds "pf.conf is the same as before" cmp /etc/pf.conf /boot-test/old.conf
}
run_reboot() {
	local boots
	boots=$(cat /boot-test/boots 2>/dev/null || echo 0)
	echo $((boots + 1)) >/boot-test/boots
	booted
	case $boots in
	0)
		cp /etc/pf.conf /boot-test/old.conf
		loaded
		try_rules first-trial
		reboot
		;;
	1)
		loaded
		same "nothing is on trial after a boot" "No rules are on trial." "$(pfctl -s confirm)"
		holds "pf.conf is the same as before the boot" cmp /etc/pf.conf /boot-test/old.conf
		try_rules second-trial
		holds "the rules are confirmed" pfctl -q confirm
		holds "pf.conf has them" cmp /etc/pf.conf /boot-test/new.conf
		sed -i 's/@phase load/@phase written-load/' \
			/etc/systemd/system/skipstep-rules.service.d/test.conf
		reboot
		;;
	2)
		holds "pf.conf is loaded" await active skipstep-rules
		order answered 443
		order rounds 2 0
		holds "eth0 is attached" attached eth0
		;;
	esac
}

run=$(cat /boot-test/run)
echo "@run $run"
"run_$run"
echo "--- units"
systemctl list-jobs --no-legend
systemctl --failed --no-legend --plain
for unit in skipstep-boot skipstep-closed skipstep-attached skipstepd skipstep-rules; do
	journalctl -q -b -o short-monotonic -u $unit | tail -n 40
done
echo "@end"
systemctl poweroff --force --force
