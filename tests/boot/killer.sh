#!/bin/bash
# Runs in the machine of tests/real-boot from the first start of skipstepd on, and kills skipstepd
# with all its processes. Until pf.conf is loaded it kills skipstepd before skipstepd is ready, and
# then AFTER times when it is ready. So pf.conf must be loaded without skipstepd. /run/killer gets a
# line for each kill, with the state of skipstepd, and `end`.
#
# The script starts no program while it waits, because the machine has one slow processor, and
# skipstepd would get none of it.
AFTER=5
GROUP=/sys/fs/cgroup/system.slice/skipstepd.service
exec {NOTHING}<> <(:)

# pause TENTHS - waits a random time of at most TENTHS tenths of a second
pause() {
	local tenths=$((RANDOM % ($1 + 1)))
	read -r -t "$((tenths / 10)).$((tenths % 10))1" -u "$NOTHING"
}
# runs - true if skipstepd has a process
runs() {
	local process
	{ read -r process <"$GROUP/cgroup.procs"; } 2>/dev/null
}
# kill_it TENTHS - waits until skipstepd runs, and kills it within TENTHS tenths of a second
kill_it() {
	local state
	until runs; do
		pause 1
	done
	pause "$1"
	state=$(systemctl show -P SubState skipstepd)
	echo 1 >"$GROUP/cgroup.kill"
	echo "killed: $state" >>/run/killer
	while runs; do
		pause 1
	done
}

until systemctl -q is-active skipstep-rules; do
	kill_it 10
done
for ((count = 0; count < AFTER; count++)); do
	until systemctl -q is-active skipstepd; do
		pause 5
	done
	kill_it 10
done
echo end >>/run/killer
