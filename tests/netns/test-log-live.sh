# The log as tcpdump shows it while packets come: `pfctl log -w -` takes the place of the device
# pflog0. Lines appear within a second of their packets, also after a rotation.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 25

filter gateway <<'END'
table <white> persist
pass all
block in log on lan0 proto udp to port 20000:20099
pass in log on lan0 proto tcp to port 25
END
log=$WORK/gateway-pflog0

# watch NAME COMMAND... - starts `pfctl log -w -` with its output piped to a command, whose output
# goes to $WORK/NAME.log; the command ends with pfctl
watch() {
	local name=$1
	shift
	# shellcheck disable=SC2016
	start "$name" gateway bash -c \
		'pfctl=$0 log=$1; shift; exec "$pfctl" log -w - "$log" > >(exec "$@")' \
		"$BIN/pfctl" "$log" "$@"
}

# ended NAME - true if the process of `start NAME` has ended
ended() {
	! kill -0 "${PROCESSES[$1]}"
}

# The file does not exist yet.
watch live tcpdump -l -n -e -ttt -r -
holds "tcpdump has the header before the first packet" await 3 grep -q "link-type PFLOG" \
	"$WORK/live.log"
watch blocked tcpdump -l -n -e -r - action block and udp port 20001
# the filter of spamlogd: the first packet of a connection of a mail server
watch mail tcpdump -l -n -e -r - 'ip and port 25 and action pass and tcp[13]&0x12=0x2'
if command -v tshark >/dev/null; then
	watch shark tshark -l -n -i - -T fields -E separator=/s -e pflog.rulenr -e udp.dstport
	await 10 grep -q "Capturing on" "$WORK/shark.log" ||
		die "tshark does not start: $(cat "$WORK/shark.log")"
else
	echo "tshark is not installed: not asked"
fi
# the same as a command for each connection, from docs/howto/logs.md
start white gateway bash -c '"$0" log -w - "$1" |
	tcpdump -l -n -q -t -r - "ip and port 25 and action pass and tcp[13]&0x12=0x2" |
	while read -r _ source _ destination _; do "$0" -q -t white -T add "${source%.*}"; done' \
	"$BIN/pfctl" "$log"
mkfifo -m 600 "$WORK/pipe"
start pipe gateway "$BIN/pfctl" log -w "$WORK/pipe" "$log"
start named gateway tcpdump -l -n -e -r "$WORK/pipe"
for name in blocked mail white named; do
	await 3 grep -q PFLOG "$WORK/$name.log" || die "$name: $(cat "$WORK/$name.log")"
done
daemon gateway

# shown PORT - sends a datagram; true if tcpdump prints its line within a second
shown() {
	send_datagrams 1 client $SERVER4 "$1"
	await 1 grep -Eq \
		"rule 1/0\(match\): block in on lan0: 192.168.100.2.[0-9]+ > $SERVER4.$1: UDP" \
		"$WORK/live.log"
}
holds "the line of the first packet appears within a second" shown 20000
holds "and that of the next" shown 20001
mv "$log" "$log.0"
kill -HUP "${PROCESSES[skipstepd-gateway]}"
holds "after a rotation, too" shown 20002
holds "the new file has the packet" await 3 has_records 1 "$log" "20002: UDP"

same "a connection that passes" passed "$(probe_web client $SERVER4 25)"
holds "its first packet is shown" await 1 grep -q 'rule 2/0(match): pass in on lan0' \
	"$WORK/live.log"
same "action block and udp port 20001" 1 "$(grep -c 'block in on lan0' "$WORK/blocked.log")"
if [ -n "${PROCESSES[shark]:-}" ]; then
	holds "tshark shows the packets, too" await 3 grep -qx "1 20002" "$WORK/shark.log"
fi
same "spamlogd's filter" 1 "$(grep -c 'pass in on lan0' "$WORK/mail.log")"
holds "the source is in the table" await 3 pf gateway -q -t white -T test 192.168.100.2
same "the table" "   192.168.100.2" "$(pf gateway -t white -T show)"
same "a named pipe" "$(grep -o 'block in .*' "$WORK/live.log")" \
	"$(grep -o 'block in .*' "$WORK/named.log")"
same "no line twice" "" "$(grep -o 'block in .*' "$WORK/live.log" | sort | uniq -d)"

# -w FILE, with the records that are there
start copy gateway "$BIN/pfctl" log --all -w "$WORK/copy" "$log"
await 3 has_records "$(records "$log" .)" "$WORK/copy" .
same "the copy" "$(tcpdump -n -e -tt -r "$log" 2>/dev/null)" \
	"$(tcpdump -n -e -tt -r "$WORK/copy" 2>/dev/null)"
same "the mode of the copy" 600 "$(stat --format %a "$WORK/copy")"

# pfctl ends with its reader, although no packet comes
stop named
holds "pfctl ends with the reader of a named pipe" await 3 ended pipe
same "one packet" "0 0" "$(on gateway timeout 5 bash -c \
	'"$0" log --all -w - "$1" | tcpdump -c 1 -r - >/dev/null 2>&1; echo "${PIPESTATUS[@]}"' \
	"$BIN/pfctl" "$log")"
verdict
