# Hosts with other programs that filter or translate packets: Docker, firewalld and so on. Each such
# host has mounts and processes of its own. Debian's packages are unpacked once, and a host sees
# them in its /usr and /etc, but this machine does not.
. "$(dirname "$0")/lab.sh"
declare -A INSIDE=()

# furnish HOST PACKAGE... - gives a host packages; `inside HOST` then runs their programs. The first
# package names the folder of the packages
furnish() {
	local host=$1 folder
	shift
	grep -qw overlay /proc/filesystems || unable "this kernel has no overlayfs"
	[ "$(readlink /lib)" = usr/lib ] || unable "/lib is no link to usr/lib here"
	folder=$(unpacked "$@") || unable "$1 cannot be had here"
	mkdir "$WORK/in-$host"
	nsenter --net="/run/netns/$LAB-$host" unshare --mount --pid --ipc --uts --fork \
		bash -c "$(declare -f furnished); furnished $folder $WORK/in-$host" \
		</dev/null >"$WORK/in-$host.log" 2>&1 &
	INSIDE[$host]=$!
	await 5 grep -qx ready "$WORK/in-$host.log" ||
		die "no mounts for $host: $(cat "$WORK/in-$host.log")"
	# the first process there: its death ends all others
	INSIDE[$host]=$(pgrep --parent "${INSIDE[$host]}")
}

# furnished FOLDER PLACE - runs as the first process of a host: makes its mounts, and waits for
# processes that lose their parents
furnished() {
	set -e
	mount -t tmpfs tmpfs "$2"
	mkdir "$2/etc" "$2/etc-work" "$2/cgroup"
	mount --rbind /sys/fs/cgroup "$2/cgroup"
	mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr
	[ ! -d "$1/lib" ] || mount -t overlay overlay -o "lowerdir=$1/lib:/usr/lib" /usr/lib
	mkdir -p "$1/etc"
	mount -t overlay overlay \
		-o "lowerdir=$1/etc:/etc,upperdir=$2/etc,workdir=$2/etc-work" /etc
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount --rbind "$2/cgroup" /sys/fs/cgroup
	mount -t tmpfs tmpfs /run
	mount -t tmpfs tmpfs /var/lib
	mount -t tmpfs tmpfs /var/log
	echo ready
	while :; do
		sleep 1000 &
		wait
	done
}

# inside HOST COMMAND... - runs a command where the host's packages are
inside() {
	local host=$1
	shift
	[ -n "${INSIDE[$host]:-}" ] || { on "$host" "$@"; return; }
	nsenter --target "${INSIDE[$host]}" --mount --pid --ipc --uts --net --wd=/ -- "$@"
}

# start_inside NAME HOST COMMAND... - runs a command there in the background, until the test ends;
# its output goes to $WORK/NAME.log
start_inside() {
	local name=$1 host=$2
	shift 2
	inside "$host" "$@" </dev/null >"$WORK/$name.log" 2>&1 &
}

# beside_end - kills the processes of furnished hosts before lab_end removes the hosts
beside_end() {
	local status=$?
	trap '' INT TERM HUP
	[ ${#INSIDE[@]} = 0 ] || kill -KILL "${INSIDE[@]}"
	await 3 no_groups
	return $status
}
# no_groups - removes the control groups of containers; fails while one has a process
no_groups() {
	find /sys/fs/cgroup -depth -type d -path "*/$LAB*" -exec rmdir {} \;
	[ -z "$(find /sys/fs/cgroup -type d -path "*/$LAB*")" ]
}
trap 'beside_end; lab_end' EXIT

# system_bus HOST - starts a message bus for the host's programs. No service starts on demand, so
# there is no polkit, and root may do everything
system_bus() {
	inside "$1" sh -c 'mkdir /run/dbus
		[ ! -d /usr/share/dbus-1/system-services ] ||
			mount -t tmpfs tmpfs /usr/share/dbus-1/system-services'
	start_inside "bus-$1" "$1" dbus-daemon --system --nofork --nopidfile
	await 5 inside "$1" [ -S /run/dbus/system_bus_socket ] ||
		die "no message bus: $(cat "$WORK/bus-$1.log")"
}

# page_rules PAGE NUMBER - prints a rule set of a page in docs/howto, counted from 1
page_rules() {
	awk -v number="$2" '
		/^```$/ { inside = 0 }
		inside && seen == number
		/^```pf$/ { inside = 1; seen++ }' "$ROOT/docs/howto/$1.md" | grep . ||
		die "docs/howto/$1.md has no rule set $2"
}

# visitor_and_host - makes a host with one interface to the outside, and a visitor there:
#
#   visitor                             host
#   eth0 ------------------------------ eth0
#   192.0.2.1  2001:db8::1       192.0.2.2  2001:db8::2
visitor_and_host() {
	host visitor
	router host
	wire visitor eth0 host eth0
	address visitor eth0 192.0.2.1/24 2001:db8::1/64
	address host eth0 192.0.2.2/24 2001:db8::2/64
	await 5 on visitor ping -n -q -c 1 -W 1 2001:db8::2 ||
		die "the hosts do not reach each other"
}
