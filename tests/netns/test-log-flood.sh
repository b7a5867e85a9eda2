# Two senders flood a rule with `log` from both CPUs: skipstepd's memory stays bounded, it answers
# signals within a second, and each record is written or counted as lost.
# alone
#
#   client (two senders) ----------------- gateway ----------------- server
#                                     lan0         wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server

filter gateway <<'END'
pass all
block in log on lan0 inet proto udp to port 7777
END
log=$WORK/gateway-pflog0
daemon gateway
main=${PROCESSES[skipstepd-gateway]}
written=0

# count FILE - adds the file's records to the count of written records, and removes the file
count() {
	local records
	records=$(python3 - "$1" <<'END_OF_PROGRAM'
import mmap, struct, sys
with open(sys.argv[1], "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    place, records = 24, 0
    while place < len(data):
        place += 16 + struct.unpack_from("<I", data, place + 8)[0]
        records += 1
    assert place == len(data), "the last record is cut off"
    print(records)
END_OF_PROGRAM
	) || die "$1 is no log"
	written=$((written + records))
	rm "$1"
}
# resident - prints the peak resident memory of skipstepd and its workers in kilobytes
resident() {
	local process sum=0 most
	for process in $(daemon_processes gateway); do
		most=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$process/status" 2>/dev/null)
		sum=$((sum + ${most:-0}))
	done
	echo "$sum"
}
# milliseconds - prints the wall clock in milliseconds
milliseconds() {
	echo $((${EPOCHREALTIME/[.,]/} / 1000))
}
blocked() {
	pf gateway -vsr | awk '/7777/ { getline; print $5 }'
}
lost() {
	pf gateway --json -si | python3 \
		-c 'import json, sys; print(json.load(sys.stdin)["log_lost"])'
}
all_there() {
	cp "$log" "$WORK/copy" && before=$written && count "$WORK/copy"
	sum=$((written + $(lost)))
	written=$before
	[ "$sum" = "$(blocked)" ]
}

# There is a sender for each CPU, and none of them waits.
for sender in 1 2; do
	start "flood-$sender" client python3 -c '
import socket
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
wire.connect(("'$SERVER4'", 7777))
while True:
    for _ in range(1000):
        wire.send(b"x" * 100)
'
done
await 5 test -s "$log" || die "nothing is logged"
end=$(($(milliseconds) + ${FLOOD_SECONDS:-5} * 1000))
slowest=0 rotations=0
while [ "$(milliseconds)" -lt "$end" ]; do
	mv "$log" "$WORK/rotated"
	began=$(milliseconds)
	kill -HUP "$main"
	await 20 test -s "$log" || die "skipstepd does not answer SIGHUP"
	took=$(($(milliseconds) - began))
	[ "$took" -le "$slowest" ] || slowest=$took
	rotations=$((rotations + 1))
	count "$WORK/rotated"
	sleep 0.5
done
same "the filter lets others pass" passed "$(probe_ping client $SERVER4)"
at_most 65536 "kilobytes in memory" "$(resident)"
at_least 2 "rotations" "$rotations"
at_most 1000 "milliseconds until SIGHUP was answered" "$slowest"

began=$(milliseconds)
daemon_stop gateway
same "the daemon ends" 0 $?
at_most 1000 "milliseconds until SIGTERM was answered" $(($(milliseconds) - began))
for sender in 1 2; do stop "flood-$sender"; done

# the next skipstepd writes the records that wait in the ring
daemon gateway
await 20 all_there
same "records written and lost" "$(blocked)" "$sum"
at_least 100000 "records in the flood" "$(blocked)"
verdict
