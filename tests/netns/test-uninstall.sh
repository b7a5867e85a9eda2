# `make uninstall` after a run of ftp-proxy removes every instance and all files of skipstep. The
# test runs in a mount namespace with its own /run, /etc and bpffs, so other instances of the
# machine stay.
. "$(dirname "$0")/lab.sh"
command -v make >/dev/null || unable "no make here"
PREFIX=$WORK/usr

# uninstalling COMMANDS - runs the commands and `make uninstall` in new namespaces; prints the exit
# status and all remaining files
uninstalling() {
	mkdir -p "$PREFIX/sbin" "$PREFIX/share/man/man8" "$WORK/units"
	cp "$BIN/pfctl" "$BIN/ftp-proxy" "$PREFIX/sbin"
	touch "$PREFIX/share/man/man8/pfctl.8" "$WORK/units/ftp-proxy.service"
	printf 'block\nanchor "ftp-proxy/*"\n' >"$WORK/pf.conf"
	unshare --mount --net sh -ec '
		mount --make-rprivate /
		cp /etc/passwd /etc/group "$1"
		for folder in /run /etc; do mount -t tmpfs tmpfs $folder; done
		cp "$1/passwd" "$1/group" /etc
		mount -t bpf bpf /sys/fs/bpf
		sbin=$2/sbin conf=$1/pf.conf
		eval "$3"
		status=0
		make --no-print-directory -C "$4" uninstall PREFIX="$2" UNITS="$1/units" \
			>"$1/uninstall.log" 2>&1 || status=$?
		echo "status $status"
		ls -d /sys/fs/bpf/skipstep /run/skipstep 2>/dev/null || true
	' sh "$WORK" "$PREFIX" "$1" "$ROOT"
	find "$PREFIX" "$WORK/units" -type f
}

instances='"$sbin/pfctl" -q -p first -f "$conf"; "$sbin/pfctl" -q -p second -f "$conf"'
proxy='"$sbin/pfctl" -q -f "$conf"; "$sbin/pfctl" -q -e; ip link set lo up
	"$sbin/ftp-proxy" -d 2>"$1/proxy.log" & proxy=$!
	for try in $(seq 50); do grep -q listening "$1/proxy.log" && break; sleep 0.1; done
	kill $proxy; wait $proxy || true; [ -d /run/skipstep/empty ]'

same "a machine where nothing ran" "status 0" "$(uninstalling true)"
same "two instances" "status 0" "$(uninstalling "$instances")"
same "after ftp-proxy" "status 0" "$(uninstalling "$proxy")" || cat "$WORK/uninstall.log"
same "files of an instance that an interrupted pfctl left" "status 0" \
	"$(uninstalling 'mkdir -p /run/skipstep/left; touch /run/skipstep/left/lock')"
verdict
