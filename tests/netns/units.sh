# Runs the programs of packaging/ with the capabilities and mounts of their units, in the test's own
# namespaces. The script is process 1 there, like systemd on a machine.
[ -n "${UNITS:-}" ] || UNITS=1 exec unshare --mount --propagation private --net --pid --fork \
	--kill-child=TERM --mount-proc bash "$0"
. "$(dirname "$0")/lab.sh"
command -v systemd-analyze >/dev/null ||
	unable "systemd-analyze is missing (Debian's package systemd)"
mount -t tmpfs -o mode=755 tmpfs /run || die "no /run of the test's own"
mount -t tmpfs -o mode=755 tmpfs /var/log
while umount /sys/fs/bpf 2>/dev/null; do :; done
mount -t bpf -o mode=700 bpf /sys/fs/bpf # as systemd does
chmod 755 "$WORK"

# unit NAME - prints the path of a unit that runs the test's programs. DATA names the folder of
# boot.conf
unit() {
	local file=$WORK/$1.service
	sed "s,@sbin@,$BIN,g; s,@data@,${DATA:-$ROOT/packaging},; s,/etc/pf.conf,$WORK/pf.conf,g" \
		"$ROOT/packaging/$1.service" >"$file"
	echo "$file"
}
# setting NAME KEY - prints a value of a unit
setting() {
	sed -n "s/^$2=//p" "$ROOT/packaging/$1.service"
}
# command_of NAME KEY [N] - prints the n-th command of a unit, without its prefix characters
command_of() {
	sed -n "s/^$2=[-+]*//p" "$(unit "$1")" | sed 's/\$\$/$/g' | sed -n "${3:-1}p"
}
# as_command NAME KEY [N] - runs the n-th command of a unit in the unit's environment
as_command() {
	eval "set -- \"\$1\" $(command_of "$@")"
	(as_service "$@")
}
# as_service NAME COMMAND... - runs a command with the capabilities and mounts of a unit
as_service() {
	local name=$1 capabilities
	shift
	capabilities=$(setting "$name" CapabilityBoundingSet | tr 'A-Z' 'a-z' | sed 's/cap_/+/g; s/ /,/g')
	# folders that systemd makes before it starts a program
	[ -z "$(setting "$name" RuntimeDirectory)" ] || install -d -m 700 /run/skipstep
	[ -z "$(setting "$name" LogsDirectory)" ] || mkdir -p /var/log/skipstep
	case $(setting "$name" ExecStartPre) in
	-+*) eval "$(command_of "$name" ExecStartPre)" ;;
	esac
	# shellcheck disable=SC2016
	exec unshare --mount --propagation slave bash -c '
		for kept in /run/skipstep /var/log/skipstep; do
			[ ! -d $kept ] || mount --bind $kept $kept
		done
		if [ "$4" = yes ]; then # PrivateDevices
			mkdir "$6/dev" && mount -t tmpfs -o mode=755 tmpfs "$6/dev"
			for at in null zero full random urandom tty $5; do
				at=${at#-}
				at=${at#/dev/}
				mkdir -p "$6/dev/$(dirname "$at")"
				: >"$6/dev/$at"
				mount --bind "/dev/$at" "$6/dev/$at"
			done
			mount --rbind "$6/dev" /dev
		fi
		cut -d " " -f 5 /proc/self/mountinfo | sort -u | while read -r at; do
			case $at in
			/proc* | /sys* | /dev* | /run/skipstep | /var/log/skipstep) ;;
			*) mount -o remount,bind,ro "$at" 2>/dev/null ;; # some are hidden behind others
			esac
		done
		if [ "$2" = yes ]; then # ProtectKernelTunables
			for at in /proc/sys $3; do mount --bind "${at#-}" "${at#-}"; done
			mount -o remount,bind,ro /proc/sys
			mount -o remount,bind,ro /sys
			# as systemd does, whatever ReadWritePaths says of this folder
			mount -o remount,bind,ro /sys/fs/bpf
			! : 2>/dev/null >/proc/sys/vm/swappiness || { echo "/proc/sys can be written to"; exit 1; }
		fi
		! : 2>/dev/null >/usr/writable || { echo "the file system can be written to"; exit 1; }
		capabilities=$1
		shift 6
		exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,$capabilities" "$@"' \
		bash "$capabilities" "$(setting "$name" ProtectKernelTunables)" \
		"$(setting "$name" ReadWritePaths)" "$(setting "$name" PrivateDevices)" \
		"$(setting "$name" BindPaths)" "$(mktemp -d "$WORK/$name-XXXXXX")" "$@"
}
# service NAME COMMAND... - starts a service
service() {
	local name=$1
	shift
	(as_service "$name" "$@") </dev/null >"$WORK/$name.log" 2>&1 &
	PROCESSES[$name]=$!
}
