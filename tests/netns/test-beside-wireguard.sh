# A WireGuard tunnel, as docs/howto/wireguard.md describes it: rules see the encrypted packets on
# one interface and the packets inside on another, and wg-quick's marks and routes have an effect on
# rules. Uses the kernel's WireGuard, or wireguard-go where the kernel has none.
# long: 27 s
#
#   lan                laptop               provider              server
#   eth0 --------- lan0     eth0 ------- left0    right0 ------- eth0
#   10.1.0.2   10.1.0.1     192.0.2.1                            203.0.113.1
#                  wg0      10.9.0.2  fd09::2                    10.9.0.1  fd09::1  wg0
. "$(dirname "$0")/beside.sh"
host lan server
router laptop provider
wire lan eth0 laptop lan0
wire laptop eth0 provider left0
wire provider right0 server eth0
address lan eth0 10.1.0.2/24
address laptop lan0 10.1.0.1/24
address laptop eth0 192.0.2.1/24
address provider left0 192.0.2.2/24
address provider right0 203.0.113.2/24
address server eth0 203.0.113.1/24
on lan ip route add default via 10.1.0.1
on laptop ip route add default via 192.0.2.2
on server ip route add default via 203.0.113.2
if ! { command -v wg-quick && on server ip link add wg0 type wireguard; } >/dev/null 2>&1; then
	for name in laptop server; do
		furnish $name wireguard-tools wireguard-go
	done
fi
on server ip link delete wg0 2>/dev/null

# keys HOST - makes the host's keys
keys() {
	mkdir "$WORK/$1"
	(umask 077 && inside "$1" wg genkey >"$WORK/$1/key")
	inside "$1" wg pubkey <"$WORK/$1/key" >"$WORK/$1/public"
}
# settings HOST - writes the host's wg0.conf from standard input and its private key
settings() {
	(umask 077 && {
		echo "[Interface]"
		echo "PrivateKey = $(cat "$WORK/$1/key")"
		cat
	} >"$WORK/$1/wg0.conf")
}
# tunnel HOST up|down
tunnel() {
	inside "$1" wg-quick "$2" "$WORK/$1/wg0.conf" >"$WORK/wg-quick" 2>&1 ||
		die "wg-quick: $(cat "$WORK/wg-quick")"
}
keys laptop
keys server
settings server <<END
Address = 10.9.0.1/24, fd09::1/64
ListenPort = 51820
[Peer]
PublicKey = $(cat "$WORK/laptop/public")
AllowedIPs = 10.9.0.2/32, fd09::2/128, 10.1.0.0/24
END
settings laptop <<END
Address = 10.9.0.2/24, fd09::2/64
[Peer]
PublicKey = $(cat "$WORK/server/public")
Endpoint = 203.0.113.1:51820
AllowedIPs = 0.0.0.0/0, ::/0
END
witness server 80 8080
witness provider 80
load() { # HOST LINE...
	printf '%s\n' "${@:2}" | filter "$1"
	pf "$1" -q -F states
}

# The side that listens: rules first, then the tunnel
page_rules wireguard 1 | filter server
tunnel server up
tunnel laptop up
same "a tunnel that came after the rules, without skipstepd" "no answer" \
	"$(seen_from laptop 10.9.0.1 80)"
at_least 1 "packets counted as unattached" "$(reason server unattached)"
tunnel laptop down
tunnel server down
daemon server
tunnel server up
tunnel laptop up
pf server -q -F states
same "inside" "10.9.0.2 fd09::2" \
	"$(seen_from laptop 10.9.0.1 80) $(seen_from laptop fd09::1 80)"
same "inside, a closed port" "no answer" "$(seen_from laptop 10.9.0.1 8080)"
same "outside" "no answer" "$(seen_from provider 203.0.113.1 80)"
same "states of the tunnel" 1 \
	"$(state_count server 'all udp 203.0.113.1:51820 <- 192.0.2.1:[0-9]*  *MULTIPLE:MULTIPLE')"
at_least 1 "states inside" "$(state_count server 'all tcp 10.9.0.1:80 <- 10.9.0.2:')"
page_rules wireguard 1 | sed '/port 51820/d' | filter server
pf server -q -F states
same "without the rule for eth0" "no answer" "$(seen_from laptop 10.9.0.1 80)"
page_rules wireguard 1 | filter server
same "with it" 10.9.0.2 "$(seen_from laptop 10.9.0.1 80)"
page_rules wireguard 1 | sed '/on wg0/d' | filter server
pf server -q -F states
same "without the rule for wg0" "no answer" "$(seen_from laptop 10.9.0.1 80)"
load server pass

# The side that connects
page_rules wireguard 2 | filter laptop
pf laptop -q -F states
same "through the tunnel" "10.9.0.2 fd09::2" \
	"$(seen_from laptop 10.9.0.1 80) $(seen_from laptop fd09::1 80)"
tunnel laptop down
same "past the tunnel" "no answer" "$(seen_from laptop 192.0.2.2 80)"
load laptop pass
same "past the tunnel, with other rules" 192.0.2.1 "$(seen_from laptop 192.0.2.2 80)"
tunnel laptop up
load laptop pass
same "the tunnel, with other rules" 10.9.0.2 "$(seen_from laptop 10.9.0.1 80)"

load laptop "block in quick from urpf-failed" "pass no state"
same "urpf-failed" "no answer" "$(seen_from laptop 10.9.0.1 80)"
load laptop "block in quick from urpf-failed" "pass"
same "urpf-failed, and a state" 10.9.0.2 "$(seen_from laptop 10.9.0.1 80)"
load laptop "pass in quick on eth0 proto udp from 203.0.113.1 port 51820" \
	"block in quick from urpf-failed" "pass no state"
same "urpf-failed, and an earlier rule" 10.9.0.2 "$(seen_from laptop 10.9.0.1 80)"

# Marks: UDP loses its tag, and TCP keeps it; all keep the interface where they came in
answers() {
	on lan python3 "$HERE/one-by-one.py" ask 10.9.0.1 3 | cut -d' ' -f1
}
one_by_one_server server 10.9.0.1
load laptop pass
same "UDP, and TCP" "3 10.1.0.2" "$(answers) $(seen_from lan 10.9.0.1 80)"
load laptop "pass in on lan0 tag LAN" "block out on wg0" "pass out on wg0 tagged LAN"
same "UDP, and TCP, of tagged" "0 10.1.0.2" "$(answers) $(seen_from lan 10.9.0.1 80)"
load laptop "pass in on lan0" "block out on wg0" "pass out on wg0 received-on lan0"
same "UDP, and TCP, of received-on" "3 10.1.0.2" "$(answers) $(seen_from lan 10.9.0.1 80)"
same "packets on the fast path" 0 \
	"$(pf laptop -si -v | awk '/^Fast Forward/ { here = 1 } here && $1 == "tc" { print $2 }')"
same "wg-quick's mark" 0xca6c "$(inside laptop wg show wg0 fwmark)"
load laptop "pass out on eth0 tag encrypted set prio 5"
same "the tunnel, with a tag for its packets" 10.9.0.2 "$(seen_from laptop 10.9.0.1 80)"
verdict
