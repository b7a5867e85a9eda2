# Packets that another part of the kernel must see bypass the fast path, on tcx and in XDP, as long
# as that part is active. `pfctl -s info -v` counts these packets by reason.
# long: 17 s
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
one_by_one_server server "$SERVER4" "$SERVER6"

left_to() { # WHOM
	pf gateway -si -v | sed -n "s/^  left to $1  *\([0-9]*\) .*/\1/p" | grep . || echo 0
}
past() {
	echo $(($(by tc) + $(by XDP)))
}
# goes_past WHAT - checks that 20 datagrams and their answers take the fast path, except some that
# keep the neighbour entry alive
goes_past() {
	local before
	before=$(past)
	same "$1: all come back" 20 "$(ask "$SERVER4" 20 0 | cut -d' ' -f1)"
	at_least 30 "$1: packets past the kernel" $(($(past) - before))
}
# goes_by_the_kernel WHAT WHOM - checks that all datagrams bypass the fast path, for reason WHOM
goes_by_the_kernel() {
	local before counted server
	for server in "$SERVER4" "$SERVER6"; do
		before=$(past) counted=$(left_to "$2")
		same "$1: all come back from $server" 20 "$(ask "$server" 20 | cut -d' ' -f1)"
		same "$1: packets past the kernel" 0 $(($(past) - before))
		at_least 38 "$1: packets left to $2" $(($(left_to "$2") - counted))
	done
}
# another_program NAME INTERFACE ingress|egress - runs a program on tcx until `stop NAME`
another_program() {
	start "$1" gateway python3 "$(dirname "$0")/another-program.py" "$2" "$3"
	await 10 grep -q ready "$WORK/$1.log" || die "no program on $2: $(cat "$WORK/$1.log")"
}

for interfaces in none any; do
	filter gateway <<-END_OF_RULES
		set xdp on $interfaces
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto udp to port 7
	END_OF_RULES
	goes_past "xdp on $interfaces, nobody else"

	another_program first lan0 ingress
	another_program second wan0 ingress
	goes_by_the_kernel "xdp on $interfaces, another program" "other programs"
	stop first
	stop second
	goes_past "xdp on $interfaces, and gone"

	for interface in lan0 wan0; do
		on gateway tc qdisc add dev $interface clsact
		on gateway tc filter add dev $interface ingress protocol all u32 match u32 0 0 \
			classid 1:7
	done
	goes_by_the_kernel "xdp on $interfaces, a filter of clsact" "other programs"
	on gateway tc qdisc delete dev lan0 clsact
	on gateway tc qdisc delete dev wan0 clsact
	goes_past "xdp on $interfaces, and gone"

	on gateway ip xfrm policy add dir out src 192.0.2.77 dst 192.0.2.78
	goes_by_the_kernel "xdp on $interfaces, a policy of IPsec" IPsec
	on gateway ip xfrm policy delete dir out src 192.0.2.77 dst 192.0.2.78
	goes_past "xdp on $interfaces, and gone"

	on gateway ip link add above0 link lan0 type macvlan
	on gateway ip link add above1 link wan0 type macvlan
	goes_by_the_kernel "xdp on $interfaces, a device on top" "upper devices"
	on gateway ip link delete above0
	on gateway ip link delete above1
	goes_past "xdp on $interfaces, and gone"

	on gateway nft \
		"table netdev t { chain c { type filter hook ingress devices = { lan0, wan0 } priority 0; }; }"
	goes_by_the_kernel "xdp on $interfaces, netfilter at the device" netfilter
	on gateway nft delete table netdev t
	on gateway nft "table inet t { chain c { type filter hook forward priority 0; }; }"
	goes_by_the_kernel "xdp on $interfaces, netfilter" netfilter
	pf gateway -q -f - <<-END_OF_RULES
		set xdp on $interfaces
		set fast-forward yes
		pass
	END_OF_RULES
	goes_past "xdp on $interfaces, past netfilter, as pf.conf says"
	on gateway nft delete table inet t
done

# XDP does not redirect to a device with a program on tcx egress; the tcx fast path sends the frames
# through that program.
another_program last wan0 egress
sleep 3
before=$(by XDP)
goes_past "a program where they leave"
at_least 16 "that the answers alone leave by XDP" $(($(by XDP) - before))
holds "not the datagrams" [ $(($(by XDP) - before)) -le 20 ]
verdict
