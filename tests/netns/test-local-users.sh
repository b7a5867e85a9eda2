# Local users can neither stop nor read the filter. User nobody tries to lock, read and replace the
# files of an instance under `umask 0`, also files that an earlier version left open to all users.
# If root holds the lock for too long, every command ends and names the holder.
#
#   client ----------------- gateway (nobody, skipstepd) ----------------- server
#                  lan0                                   wan0
#
# The test has its own /run and /sys/fs/bpf; nothing is mounted there at the beginning.
# long: 45 s: it waits for locks
[ -n "${LOCAL_USERS:-}" ] ||
	LOCAL_USERS=1 exec unshare --mount --propagation private bash "$0"
. "$(dirname "$0")/lab.sh"
mount -t tmpfs -o mode=755 tmpfs /run || die "no /run of the test's own"
while umount /sys/fs/bpf 2>/dev/null; do :; done
chmod 755 "$WORK"
umask 0
gateway_between_client_and_server
RUN=/run/skipstep/${PINS[gateway]##*/}
AS_NOBODY=(setpriv --reuid=nobody --regid=nogroup --clear-groups)

# nobody COMMAND... - runs a command on the gateway as user nobody
nobody() {
	on gateway "${AS_NOBODY[@]}" "$@"
}
# open_to_others FOLDER... - prints each folder and file that users other than its owner may use
open_to_others() {
	find "$@" -not -type l -perm /077 -printf '%m %p\n'
}
# refused COMMAND... - true if user nobody may not run the command
refused() {
	! nobody "$@"
}
# within SECONDS NAME HOST COMMAND... - runs a command; $status is its exit status, or 124 after a
# timeout. Its output is in $WORK/NAME.log
within() {
	local seconds=$1 name=$2 host=$3
	shift 3
	on "$host" timeout "$seconds" "$@" </dev/null >"$WORK/$name.log" 2>&1
	status=$?
}
# held NAME FILE [COMMAND...] - locks a file until `stop NAME`
held() {
	local name=$1 file=$2
	shift 2
	start "$name" gateway "$@" bash -c \
		'exec 9<"$1" && flock 9 && echo locked && exec sleep 1000' bash "$file"
	await 5 grep -q locked "$WORK/$name.log"
}
rules() {
	printf '%s\n' 'block log all' 'anchor "ftp-proxy/*"' 'pass inet6 proto icmp6' "$@"
}

# files made under umask 0
pf gateway -q -f - <<<"$(rules 'table <secret> { 192.0.2.1, 192.0.2.2 }' \
	'pass on lan0 proto udp to port 53 divert-packet port 700')" || die "the rules were not loaded"
pf gateway -q -e
daemon gateway
await 5 test -S "$RUN/divert/700" || die "no socket"
probe_ping client "$SERVER4" >"$WORK/ping.log" # it is blocked, and logged
await 5 test -s "$WORK/gateway-pflog0" || die "no log"
same "mode of the BPF file system" 1700 "$(stat --format %a /sys/fs/bpf)"
same "what others may do in /run/skipstep" "" "$(open_to_others /run/skipstep)"
same "and with the pins" "" "$(open_to_others /sys/fs/bpf)"
holds "pfctl -S" pf gateway -S "$WORK/states"
pf gateway -q -f - <<<"$(rules)"
same "mode of the states" 600 "$(stat --format %a "$WORK/states")"
same "mode of the log" 600 "$(stat --format %a "$WORK/gateway-pflog0")"
same "what others may do after a load" "" "$(open_to_others /run/skipstep)"
holds "nobody may not lock" refused flock --nonblock "$RUN/lock" true
holds "nobody may not read" refused cat "$RUN/memory.json"
holds "nobody sees no pins" refused ls /sys/fs/bpf/skipstep
# user nobody owns the file that pfctl -S would write to
touch "$WORK/mine.new"
chown nobody "$WORK/mine.new"
exec 8<"$WORK/mine.new"
holds "pfctl -S over a file of nobody" pf gateway -S "$WORK/mine"
same "whose it is" "root 600" "$(stat --format '%U %a' "$WORK/mine")"
same "what is to be read in the file that was there" "" "$(cat <&8)"
exec 8<&-

# an instance closes files that an earlier version left open; a lock that user nobody holds delays
# pfctl
widen() {
	chmod 755 /run/skipstep "$RUN" /sys/fs/bpf/skipstep
	chmod 644 "$RUN"/*.* "$RUN/lock"
}
daemon_stop gateway
widen
held stranger "$RUN/lock" "${AS_NOBODY[@]}"
same "nobody holds the lock" 0 $?
within 30 load gateway "$BIN/pfctl" -f - # an empty rule set
same "pfctl -f ends with an error" 1 $status
named="/lock: still locked after 10 s, by process ${PROCESSES[stranger]} (sleep 1000)"
holds "it names the process" grep -qF "$named" "$WORK/load.log"
cat "$WORK/load.log"
same "what others may do then" "" "$(open_to_others /run/skipstep /sys/fs/bpf)"
stop stranger KILL
pf gateway -q -f - <<<"$(rules)"
same "pfctl -f without that process" 0 $?

# root holds the lock: skipstepd reports it, continues, and ends on request
daemon gateway
held root "$RUN/lock"
on gateway ip link add later0 type veth peer name other0
holds "skipstepd names the process" await 15 grep -q "by process ${PROCESSES[root]} (sleep 1000)" \
	"$WORK/skipstepd-gateway.log"
holds "and lives" kill -0 "${PROCESSES[skipstepd-gateway]}"
stop root KILL
holds "it follows the interface afterwards" await 5 eval 'pf gateway -sI | grep -q later0'
held root "$RUN/lock"
on gateway ip link add later1 type veth peer name other1
sleep 0.5
before=${EPOCHREALTIME/[.,]/}
daemon_stop gateway
same "skipstepd ends when it is told to" 0 $?
at_most 3000 "milliseconds that it needs for that" $(((${EPOCHREALTIME/[.,]/} - before) / 1000))
stop root KILL

# a dead process left rules and its locked file, and no process holds that lock now
dead=$(sh -c 'echo $$')
pf gateway -q -a "ftp-proxy/$dead.1" -f - <<<"pass proto tcp to port 21"
holds "rules of a dead process" eval 'pf gateway -sA -v | grep -q "ftp-proxy/$dead.1"'
mkdir -p "$RUN/owners"
: >"$RUN/owners/ftp-proxy.$dead"
held root "$RUN/lock"
within 30 proxy gateway "$BIN/ftp-proxy" -d -D 6
same "ftp-proxy, which has rules to remove, ends" 1 $status
holds "it names the process, too" grep -q "by process ${PROCESSES[root]} (sleep 1000)" \
	"$WORK/proxy.log"
stop root KILL
chmod 755 /run/skipstep "$RUN" "$RUN/owners"
chmod 644 "$RUN/owners/ftp-proxy.$dead"
held stranger "$RUN/owners/ftp-proxy.$dead" "${AS_NOBODY[@]}"
same "nobody holds the lock of the dead process" 0 $?
daemon gateway
holds "skipstepd removes its rules" await 3 eval '! pf gateway -sA -v | grep -q ftp-proxy/'
stop stranger
start proxy gateway "$BIN/ftp-proxy" -d -D 6
await 5 test -n "$(ls "$RUN/owners")"
await 5 listening gateway tcp 8021 || die "no ftp-proxy: $(cat "$WORK/proxy.log")"
same "what others may do beside ftp-proxy" "" "$(open_to_others /run/skipstep)"
holds "nobody may not lock the proxy's file" refused flock --nonblock "$RUN"/owners/ftp-proxy.* true
sleep 1
holds "a living owner is left alone" test -e "$RUN/owners/ftp-proxy.${PROCESSES[proxy]}"
stop proxy
daemon_stop gateway

# files and folders of another user are refused
chown nobody "$RUN/memory.json"
said=$(pf gateway -sr 2>&1)
same "exit status where nobody owns the memory" 1 $?
named="^pfctl: $RUN/memory.json: belongs to user $(id -u nobody)"
holds "its path and owner are named" grep -q "$named" <<<"$said"
chown root "$RUN/memory.json"
chown nobody /run/skipstep
said=$(pf gateway -q -f - <<<"$(rules)" 2>&1)
same "exit status where nobody owns the folder" 1 $?
holds "it is named" grep -q "^pfctl: /run/skipstep: belongs to user" <<<"$said"
chown root /run/skipstep
holds "the rest is as it was" pf gateway -sr
pf gateway -q --remove

# user nobody may have pinned first, in a BPF file system that all users may write to
umount /sys/fs/bpf
mount -t bpf bpf /sys/fs/bpf
same "mode of a BPF file system that another program mounts" 1777 "$(stat --format %a /sys/fs/bpf)"
nobody mkdir /sys/fs/bpf/skipstep || die "nobody cannot make a folder"
said=$(pf gateway -q -f - <<<"$(rules)" 2>&1)
same "exit status where nobody made the folder" 1 $?
named="^pfctl: /sys/fs/bpf/skipstep: belongs to user .*rm -r"
holds "it is named, with what to do" grep -q "$named" <<<"$said"
chown root /sys/fs/bpf/skipstep
said=$(pf gateway -q -f - <<<"$(rules)" 2>&1)
same "exit status where everybody may write to the folder" 1 $?
named="^pfctl: /sys/fs/bpf/skipstep: other users can write to it (mode 777)"
holds "the mode is named" grep -q "$named" <<<"$said"
rmdir /sys/fs/bpf/skipstep
pf gateway -q -f - <<<"$(rules)"
same "pfctl -f without that folder" 0 $?
chmod 777 /sys/fs/bpf
said=$(pf gateway -sr 2>&1)
same "exit status where everybody may rename the folder" 1 $?
holds "it is said how to close it" grep -q "^pfctl: /sys/fs/bpf: other .*chmod 700" <<<"$said"
chmod 1777 /sys/fs/bpf
same "what others may do with the pins" "" "$(open_to_others /sys/fs/bpf/skipstep)"
verdict
