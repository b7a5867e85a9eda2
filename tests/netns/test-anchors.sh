# Anchors are loaded, replaced and flushed separately while packets pass; the log names the anchor.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 8080

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass out on wan0
anchor "services/*" in on lan0 proto tcp
END
daemon gateway
same "nothing is in the anchor yet" "no answer" "$(probe_web client $SERVER4 80)"
echo 'pass log proto tcp to port 80' | pf gateway -q -a services/web -f -
same "its rule passes" passed "$(probe_web client $SERVER4 80)"
same "and no other port" "no answer" "$(probe_web client $SERVER4 8080)"
printf 'table <friends> { 192.168.100.0/24 }\npass proto tcp from <friends> to port 8080\n' |
	pf gateway -q -a services/other -f -
same "one more beside it" passed "$(probe_web client $SERVER4 8080)"
same "that does not change the first" passed "$(probe_web client $SERVER4 80)"
same "its table is its own" "192.168.100.0/24" \
	"$(pf gateway -a services/other -t friends -T show | xargs)"
pf gateway -q -a services/other -t friends -T flush
same "and can be changed" "no answer" "$(probe_web client $SERVER4 8080)"

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass out on wan0
anchor "services/*" in on lan0 proto tcp
END
same "a new main rule set keeps the anchors" passed "$(probe_web client $SERVER4 80)"
pf gateway -q -a services/web -F rules
same "a flushed one passes nothing any more" "no answer" "$(probe_web client $SERVER4 80)"

await 5 has_records 1 "$WORK/gateway-pflog0" 'rule 3\.web\.0/0\(match\): pass in on lan0'
tcpdump -n -e -r "$WORK/gateway-pflog0" >"$WORK/tcpdump" 2>/dev/null
cat "$WORK/tcpdump"
holds "anchor rule, anchor and rule in the log" \
	grep -Eq "rule 3\.web\.0/0\(match\): pass in on lan0: 192.168.100.2.[0-9]+ > $SERVER4.80: Flags \[S\]" "$WORK/tcpdump"
verdict
