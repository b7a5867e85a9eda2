# The output of `pfctl -s Sources` about tracked sources and sticky addresses; -v, --json and -K.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
on gateway ip address add 192.168.10.8/32 dev wan0
on gateway ip address add 192.168.10.9/32 dev wan0

filter gateway <<'END'
set timeout src.track 60
block all
pass inet6 proto icmp6
pass in on lan0 inet proto tcp to port 80 keep state (source-track rule, max-src-conn-rate 50/60)
pass out on wan0 inet proto tcp to port 80 nat-to { 192.168.10.8, 192.168.10.9 } round-robin sticky-address
END
same "before the first connection" "" "$(pf gateway -sS)"
for _ in 1 2 3; do
	same "a connection" passed "$(probe_web client $SERVER4 80)"
done
pf gateway -sS >"$WORK/sources"
cat "$WORK/sources"
same "sources" 2 "$(wc -l <"$WORK/sources")"
holds "the one that is tracked" grep \
	-Eq "^$CLIENT4 \( states [0-3], connections [0-3], rate [1-3]\.[0-9]/60s \)$" \
	"$WORK/sources"
holds "the one with an address" grep \
	-Eq "^$CLIENT4 nat-to 192.168.10.[89] \( states [0-3], connections 0, rate 0.0/0s \)$" \
	"$WORK/sources"
chosen=$(grep -o 'nat-to [0-9.]*' "$WORK/sources")
same "a fourth connection" passed "$(probe_web client $SERVER4 80)"
same "its address" "$chosen" "$(pf gateway -sS | grep -o 'nat-to [0-9.]*')"
holds "-v" eval \
	'pf gateway -v -sS | grep -Eq "^   age 00:00:[0-9]+(, expires in 00:0[01]:[0-9]+)?, [0-9]+ pkts, [0-9]+ bytes, rule [23]$"'
same "--json" 2 "$(pf gateway --json -sS | grep -c "\"source\": \"$CLIENT4\"")"

holds "-K" pf gateway -K $CLIENT4
same "afterwards" "" "$(pf gateway -sS)"
verdict
