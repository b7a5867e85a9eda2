# The log as an unmodified tcpdump and tshark read it, and as pfctl follows it.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 8080

filter gateway <<'END'
pass all
block in log on lan0 proto tcp to port 8080
pass in log (all) on lan0 proto tcp to port 80
END
daemon gateway
same "blocked" "no answer" "$(probe_web client $SERVER4 8080)"
same "blocked, IPv6" "no answer" "$(probe_web client $SERVER6 8080)"
same "passed" passed "$(probe_web client $SERVER4 80)"
log=$WORK/gateway-pflog0
holds "log (all): every packet of a connection" await 5 has_records 8 "$log" \
	'rule 2/0\(match\): pass'
tcpdump -n -e -ttt -r "$log" >"$WORK/tcpdump" 2>"$WORK/tcpdump.err"
cat "$WORK/tcpdump.err" "$WORK/tcpdump"
holds "tcpdump knows the link type" grep -q "PFLOG" "$WORK/tcpdump.err"
holds "rule, action, direction, interface" grep \
	-Eq "rule 1/0\(match\): block in on lan0: 192.168.100.2.[0-9]+ > $SERVER4.8080: Flags \[S\]" "$WORK/tcpdump"
holds "IPv6 as well" grep \
	-Eq "rule 1/0\(match\): block in on lan0: 2001:db8:100::2.[0-9]+ > $SERVER6.8080: Flags \[S\]" "$WORK/tcpdump"
# followed live, and from one file to the next
start follow gateway "$BIN/pfctl" log "$log"
start follow-json gateway "$BIN/pfctl" log --json --all "$log"
holds "what was there is read" await 5 has_read follow "$log"
same "blocked" "no answer" "$(probe_web client $SERVER4 8080)"
await 3 grep -q "rule 1/(match) block in on lan0: tcp 192.168.100.2:[0-9]* > $SERVER4:8080 S" \
	"$WORK/follow.log" ||
	die "pfctl log does not follow: $(cat "$WORK/follow.log")"
same "what was there before" 0 "$(grep -c "pass in" "$WORK/follow.log")"
at_least 8 "with --all" "$(grep -c '"action":"pass"' "$WORK/follow-json.log")"
mv "$log" "$log.0"
kill -HUP "${PROCESSES[skipstepd-gateway]}"
lines=$(wc -l <"$WORK/follow.log")
same "blocked" "no answer" "$(probe_web client $SERVER6 8080)"
await 3 grep -q "on lan0: tcp \[*2001:db8:100::2" "$WORK/follow.log" ||
	die "the new log is not followed: $(tail -2 "$WORK/follow.log")"
at_least $((lines + 1)) "lines" "$(wc -l <"$WORK/follow.log")"

if command -v tshark >/dev/null; then
	same "tshark's first record" "block lan0 1 in 8080" \
		"$(tshark -r "$log" -T fields -E separator=/s -c 1 \
		-e pflog.action -e pflog.ifname -e pflog.rulenr -e pflog.dir -e tcp.dstport \
		2>/dev/null | sed 's/^1 /block /; s/ 1 1 8080$/ 1 in 8080/')"
else
	echo "tshark is not installed: not asked"
fi

# The records of a packet have the translation of match rules, even if no other rule matches and the
# packet leaves unchanged.
filter gateway <<'END'
match out log (matches) on wan0 inet proto tcp nat-to 192.168.10.99
END
pf gateway -q -F states
mv "$log" "$log.1"
kill -HUP "${PROCESSES[skipstepd-gateway]}"
same "passed, without a state" passed "$(probe_web client $SERVER4 80)"
same "without a state" 0 "$(state_count gateway)"
# each of the two rules has one record for the connection's first packet, and more for the others
holds "both rules are in the log" await 5 has_records 2 "$log" .
same "pflog: rule, rewritten, source" "-1 1 192.168.10.99, 0 1 192.168.10.99" \
	"$(python3 - "$log" <<'END'
import socket, struct, sys
data = open(sys.argv[1], "rb").read()
seen, at = set(), 24
while at < len(data):
    length = struct.unpack_from("I", data, at + 8)[0]
    header = data[at + 16:]
    rule = struct.unpack_from(">i", header, 36)[0]
    seen.add((rule, header[61], socket.inet_ntoa(header[64:68])))
    at += 16 + length
print(", ".join("%d %d %s" % record for record in sorted(seen)))
END
)"
verdict
