# `pfctl -d` and `pfctl --remove` leave the machine as it was.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
# long: 23 s of a processor, 71 s beside five others
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

# picture - prints every setting of the gateway that a filter might have changed
picture() {
	on gateway ip -details address | sed 's/valid_lft.*//'
	on gateway ip route
	on gateway ip -6 route
	on gateway ip rule
	on gateway sh -c 'grep -r . /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf 2>/dev/null' |
		grep -v stable_secret
	if command -v nft >/dev/null; then on gateway nft list ruleset; fi
	if command -v tc >/dev/null; then
		on gateway tc qdisc show
		on gateway tc filter show dev lan0 ingress 2>/dev/null
	fi
	if command -v bpftool >/dev/null; then on gateway bpftool net; fi
}

picture >"$WORK/before"
filter gateway <<<"block all"
same "filtered" "no answer" "$(probe_web client $SERVER4 80)"
pf gateway -q -d
same "no longer filtered" passed "$(probe_web client $SERVER4 80)"
pf gateway -q -e
same "filtered again, with the rules there were" "no answer" "$(probe_web client $SERVER4 80)"
pf gateway -q -d
picture >"$WORK/after"
holds "the gateway is as before" diff "$WORK/before" "$WORK/after"
diff "$WORK/before" "$WORK/after"

pins=${PINS[gateway]}
holds "maps are pinned" test -d "$pins"
pf gateway --remove
holds "no pins are left" test ! -e "$pins"
holds "nothing is left in /run" test ! -e "/run/skipstep/$(basename "$pins")"
same "and packets pass" passed "$(probe_web client $SERVER4 80)"

# rules with a next hop make loopback forward; afterwards loopback has its previous setting
loopback() {
	on gateway cat /proc/sys/net/ipv4/conf/lo/forwarding /proc/sys/net/ipv6/conf/lo/forwarding |
		paste -sd ' '
}
let_forward() {
	on gateway sh \
		-c "echo $1 >/proc/sys/net/ipv4/conf/$2/forwarding; echo $1 >/proc/sys/net/ipv6/conf/$2/forwarding"
}
# route INTERFACE VALUE... - changes the forwarding of interfaces while rules have a next hop
route() {
	filter gateway <<<"pass in on lan0 route-to 10.2.0.1"
	same "loopback, while rules route" "1 1" "$(loopback)"
	while [ $# -gt 0 ]; do
		let_forward "$2" "$1"
		shift 2
	done
	pf gateway --remove
}
let_forward 0 lo
route
same "loopback alone did not forward" "0 0" "$(loopback)"
let_forward 0 all
route all 1
same "loopback, like all interfaces from then on" "1 1" "$(loopback)"
let_forward 0 all
let_forward 1 lo
route
same "loopback alone forwarded" "1 1" "$(loopback)"
verdict
