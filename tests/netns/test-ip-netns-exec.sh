# pfctl under `ip netns exec`, which hides /sys/fs/bpf behind another /sys: the filter is the same
# as with nsenter. A command that sees another /run than process 1 is refused.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
#
# This script is process 1 of a PID namespace, because a container may hide its own process 1. It
# has its own BPF file system, because pfctl would remove the unfinished pins of processes that it
# does not see.
# shellcheck disable=SC2016
[ -n "${IP_NETNS_EXEC:-}" ] ||
	IP_NETNS_EXEC=$$ exec unshare --pid --fork --kill-child --mount-proc \
		sh -c 'mount -t bpf bpf /sys/fs/bpf && exec bash "$0"' "$0"
. "$(dirname "$0")/lab.sh"
LAB=skipstep-$IP_NETNS_EXEC
gateway_between_client_and_server

# inside ARGUMENT... - runs pfctl on the gateway, in the mounts of `ip netns exec`
inside() {
	ip netns exec "$LAB-gateway" "$BIN/pfctl" "$@"
}
same "what ip netns exec hides" sysfs \
	"$(ip netns exec "$LAB-gateway" stat --file-system --format %T /sys/fs/bpf)"
inside -q -ef - <<-'END' || die "the rules were not loaded"
	set skip on lo
	block
	pass inet proto icmp
END
same "rules, seen with nsenter" "block drop all pass inet proto icmp all" \
	"$(pf gateway -sr | xargs)"
same "they pass" passed "$(probe_ping client "$SERVER4")"
same "and block" "no answer" "$(probe_ping client "$SERVER6")"
at_least 2 "states" "$(inside -ss | grep -c icmp)"
same "a table" "1 table created. 1/1 addresses added." \
	"$(inside -t bad -T add 192.0.2.1 2>&1 | xargs)"
same "the table, seen with nsenter" 192.0.2.1 "$(pf gateway -t bad -T show | xargs)"
pf gateway -q -f - <<<"pass"
same "a load with nsenter, seen inside" "pass all flags S/SA" "$(inside -sr)"
same "what they pass" passed "$(probe_ping client "$SERVER6")"
same "pfctl -d" "pf disabled" "$(inside -d 2>&1)"
same "pfctl --remove" "pf removed" "$(inside --remove 2>&1)"
same "the pins" "" "$(ls -d "${PINS[gateway]}" 2>/dev/null)"

# another /run has the files of other instances
said=$(unshare --mount --propagation private sh -c "mount --rbind /run/netns /mnt &&
	mount -t tmpfs tmpfs /run && mkdir /run/netns && mount --rbind /mnt /run/netns &&
	exec ip netns exec '$LAB-gateway' '$BIN/pfctl' -sr" 2>&1)
same "exit status with another /run" 1 $?
holds "the message says what to do" grep -q '^pfctl: /sys/fs/bpf: no BPF .*nsenter' <<<"$said"
verdict
