# firewalld beside skipstep, as docs/howto/firewalld.md describes it: a packet passes only if both
# pass it. firewalld is Debian's; it runs with a message bus of its own.
# long: 17 s
#
#   visitor                         host                         inner
#   eth0 -------------------------- eth0  eth1 ----------------- eth0
#   192.0.2.1  2001:db8::1    192.0.2.2  198.51.100.1    198.51.100.2
. "$(dirname "$0")/beside.sh"
visitor_and_host
host inner
wire host eth1 inner eth0
address host eth1 198.51.100.1/24
address inner eth0 198.51.100.2/24
on visitor ip route add default via 192.0.2.2
on inner ip route add default via 198.51.100.1
furnish host firewalld python3-firewall python3-nftables libnm0 gir1.2-nm-1.0
system_bus host
start_inside firewalld host /usr/bin/python3 /usr/sbin/firewalld --nofork
await 20 inside host firewall-cmd --state ||
	unable "no firewalld here: $(tail -n 1 "$WORK/firewalld.log")"
firewall() {
	inside host firewall-cmd --quiet "$@" || die "firewall-cmd $*"
}
web host 80 8080 8081
web visitor 80
echo_server inner 7

try() { # PORT... - how a visitor fares at these ports
	local port
	for port; do probe_web visitor 192.0.2.2 "$port"; done | xargs
}
load() { # LINE...
	printf '%s\n' "$@" | filter host
	pf host -q -F states
}
# rejects - prints how many packets firewalld has rejected at its own port 8081
rejects() {
	on host nft list chain inet firewalld filter_IN_public_pre | grep -o 'packets [0-9]*' |
		cut -d' ' -f2
}

same "closed in firewalld" refused "$(try 8080)"
firewall --add-port=80/tcp
firewall --add-port=8080/tcp
firewall --add-rich-rule='rule priority=-1 port port=8081 protocol=tcp reject'
same "open in firewalld" "passed passed" "$(try 80 8080)"
load "block in on eth0 proto tcp to port 8080"
same "open in firewalld, blocked by pf" "passed no answer" "$(try 80 8080)"
firewall --remove-port=80/tcp
load "pass in on eth0 proto tcp to port 80"
same "closed in firewalld, passed by pf" refused "$(try 80)"
same "the state of this connection" 1 \
	"$(state_count host 'tcp 192.0.2.2:80 <- 192.0.2.1:.*CLOSED:SYN_SENT')"
firewall --add-port=80/tcp

on host nft insert rule inet firewalld filter_IN_public_pre tcp dport 8081 counter
load "block in on eth0 proto tcp to port 8081"
same "a port that both block" "no answer" "$(try 8081)"
same "packets that firewalld saw" 0 "$(rejects)"
load "block return in on eth0 proto tcp to port 8081"
same "block return" refused "$(try 8081)"
same "packets that firewalld saw" 0 "$(rejects)"
load pass
same "passed by pf" refused "$(try 8081)"
at_least 1 "packets that firewalld saw" "$(rejects)"

for line in "pass in proto tcp synproxy state" "pass proto tcp modulate state" \
	"pass in proto tcp tag visited set prio 7"; do
	load "$line"
	same "$line" "passed passed" "$(try 80 8080)"
	same "$line, IPv6" passed "$(probe_web visitor 2001:db8::2 80)"
	same "$line, out" passed "$(probe_web host 192.0.2.1 80)"
done
load "set syncookies always" "pass"
same "syncookies" "passed passed" "$(try 80 8080)"
load "block return out on eth0"
same "block return out" "refused refused" \
	"$(probe_web host 192.0.2.1 80) $(probe_web host 2001:db8::1 80)"
same "block return out, UDP" refused "$(ask_udp host 192.0.2.1 53)"

page_rules firewalld 1 | filter host
pf host -q -F states
same "the page's rules" "refused passed refused" "$(try 80 8080 8081)"
same "the page's rules, out" passed "$(probe_web host 192.0.2.1 80)"
pf host -sr >"$WORK/rules"
start slow visitor nc 192.0.2.2 8080
await 3 eval '[ "$(state_count host "8080 <- 192.0.2.1:.*ESTABLISHED:ESTABLISHED")" = 1 ]'
firewall --reload
same "states after a reload of firewalld" 1 \
	"$(state_count host '8080 <- 192.0.2.1:.*ESTABLISHED:ESTABLISHED')"
pf host -sr >"$WORK/rules-after"
holds "rules after a reload of firewalld" cmp "$WORK/rules" "$WORK/rules-after"
on host nft list table inet firewalld >"$WORK/table"
pf host -q -F all
holds "firewalld sets no marks" eval '! grep -q "mark set" "$WORK/table"'
on host nft list table inet firewalld >"$WORK/table-after"
holds "firewalld's rules after pfctl -F all" cmp "$WORK/table" "$WORK/table-after"

# The zone trusted, and no firewalld
counted() { # PATTERN - prints a counter of the fast path
	pf host -si -v | sed -n "s/^  $1  *\([0-9]*\) .*/\1/p" | grep . || echo 0
}
firewall --set-default-zone=trusted
load "block in on eth0" "pass in on eth0 proto tcp to port 80" \
	"pass in on eth0 proto udp to port 7" "pass out"
same "zone trusted" "passed no answer" "$(try 80 8080)"
before=$(counted tc)
same "forwarded, zone trusted" passed "$(probe_udp visitor 198.51.100.2 7)"
at_least 1 "packets left to netfilter" "$(counted 'left to netfilter')"
same "packets on the fast path" "$before" "$(counted tc)"
inside host sh -c 'kill "$(cat /run/firewalld.pid)"'
await 10 eval '! on host nft list table inet firewalld' || die "firewalld does not stop"
for _ in 1 2 3 4; do probe_udp visitor 198.51.100.2 7 >/dev/null; done
at_least $((before + 1)) "packets on the fast path without firewalld" "$(counted tc)"
verdict
