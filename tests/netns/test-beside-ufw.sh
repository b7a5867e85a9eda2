# ufw beside skipstep, as docs/howto/ufw.md describes it: a packet passes only if both pass it, and
# skipstep closes ports that ufw does not see. ufw is Debian's.
# long: 28 s
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
furnish host ufw
# as its package does when it is installed
inside host sh -c 'cp /usr/share/ufw/ufw.conf /usr/share/ufw/iptables/*.rules /etc/ufw &&
	chmod 640 /etc/ufw/*' || die "no files of ufw"
firewall() {
	inside host ufw "$@" >"$WORK/ufw" 2>&1 || die "ufw $*: $(cat "$WORK/ufw")"
}
firewall --force enable || unable "no ufw here: $(cat "$WORK/ufw")"
web host 22 25 80 8080
web visitor 80 81
web inner 80
echo_server inner 7

try() { # PORT... - how a visitor fares at these ports
	local port
	for port; do probe_web visitor 192.0.2.2 "$port"; done | xargs
}
load() { # LINE...
	printf '%s\n' "$@" | filter host
	pf host -q -F states
}
# seen CHAIN PORT - prints how many packets a rule of ufw has seen
seen() {
	inside host iptables -vnxL "$1" | awk -v port=":$2" '$0 ~ port"( |$)" { print $1; exit }'
}

same "denied by ufw" "no answer" "$(try 80)"
firewall allow 80/tcp
firewall allow 8080/tcp
same "allowed by ufw" "passed passed" "$(try 80 8080)"
before=$(seen ufw-user-input 8080)
load "block in on eth0 proto tcp to port 8080"
same "allowed by ufw, blocked by pf" "passed no answer" "$(try 80 8080)"
load "block return in on eth0 proto tcp to port 8080"
same "block return" refused "$(try 8080)"
same "packets that ufw saw of these" "$before" "$(seen ufw-user-input 8080)"
firewall delete allow 8080/tcp
load pass
same "denied by ufw, passed by pf" "passed no answer" "$(try 80 8080)"

firewall deny out to any port 81 proto tcp
load pass
same "denied by ufw on the way out" "passed no answer" \
	"$(probe_web host 192.0.2.1 80) $(probe_web host 192.0.2.1 81)"
same "states of these" "1 0" "$(state_count host '192.0.2.1:80 ') $(state_count host '192.0.2.1:81 ')"

for line in "pass in proto tcp synproxy state" "pass proto tcp modulate state" \
	"pass in proto tcp tag visited set prio 7"; do
	load "$line"
	same "$line" "passed passed" "$(try 80) $(probe_web visitor 2001:db8::2 80)"
	same "$line, out" passed "$(probe_web host 192.0.2.1 80)"
done
load "set syncookies always" pass
same "syncookies" passed "$(try 80)"
load "block return out on eth0"
same "block return out" "refused refused" \
	"$(probe_web host 192.0.2.1 80) $(probe_web host 2001:db8::1 80)"

# A port that another program publishes, as Docker does
inside host iptables-restore --noflush <<-'END'
	*nat
	-A PREROUTING -m addrtype --dst-type LOCAL -p tcp --dport 8443 -j DNAT --to 198.51.100.2:80
	COMMIT
	*filter
	-I FORWARD -d 198.51.100.2 -p tcp --dport 80 -j ACCEPT
	-I FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
	COMMIT
END
firewall deny 8443/tcp
load pass
holds "ufw reports the port as denied" inside host sh -c "ufw status | grep -q '8443/tcp *DENY'"
same "the port, although ufw denies it" passed "$(try 8443)"
load "block in on eth0 proto tcp to port 8443"
same "the port, blocked by pf" "no answer" "$(try 8443)"

load pass
start slow visitor nc 192.0.2.2 80
await 3 eval '[ "$(state_count host ":80 <- 192.0.2.1:.*ESTABLISHED:ESTABLISHED")" = 1 ]'
pf host -sr >"$WORK/rules"
firewall reload
same "states after a reload of ufw" 1 \
	"$(state_count host ':80 <- 192.0.2.1:.*ESTABLISHED:ESTABLISHED')"
pf host -sr >"$WORK/rules-after"
holds "rules after a reload of ufw" cmp "$WORK/rules" "$WORK/rules-after"
inside host iptables-save | grep -v '^[#:]' >"$WORK/saved"
pf host -q -F all
holds "ufw sets no marks" eval '! grep -q "j \(CONN\)*MARK" "$WORK/saved"'
inside host iptables-save | grep -v '^[#:]' >"$WORK/saved-after"
holds "ufw's rules after pfctl -F all" cmp "$WORK/saved" "$WORK/saved-after"
pf host import iptables "$WORK/saved" >"$WORK/import" 2>&1
same "pfctl import of ufw's chains" 1 $?

firewall default allow incoming
firewall default allow routed
counted() { # PATTERN - prints a counter of the fast path
	pf host -si -v | sed -n "s/^  $1  *\([0-9]*\) .*/\1/p" | grep . || echo 0
}
load "block in on eth0" "pass in on eth0 proto tcp to port 8080" \
	"pass in on eth0 proto udp to port 7" "pass out"
same "ufw allows by default" "no answer passed" "$(try 80 8080)"
before=$(counted tc)
same "forwarded" passed "$(probe_udp visitor 198.51.100.2 7)"
same "packets on the fast path" "$before" "$(counted tc)"

# The page's rules stand for these of ufw.
firewall default deny incoming
firewall allow in on eth0 from 192.0.2.0/24 to any port 22 proto tcp
firewall reject 25/tcp
load pass
same "the rules of ufw" "passed refused passed no answer" "$(try 22 25 80 8080)"
same "the rules of ufw, out" passed "$(probe_web host 192.0.2.1 80)"
same "the rules of ufw, ping" passed "$(probe_ping visitor 192.0.2.2)"
firewall disable
page_rules ufw 1 | filter host
pf host -q -F states
same "the page's rules" "passed refused passed no answer" "$(try 22 25 80 8080)"
same "the page's rules, out" passed "$(probe_web host 192.0.2.1 80)"
same "the page's rules, ping" passed "$(probe_ping visitor 192.0.2.2)"
verdict
