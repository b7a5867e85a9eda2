# Packets and fragments that exceed the MTU of the outbound link: IPv4 leaves in fragments of the
# link's MTU, and the sender of IPv6 gets "packet too big", also where a rule chooses the link.
#
#   client ------- gateway ------- isp1, isp2 ------- server
#             lan0        wan1, wan2
. "$(dirname "$0")/lab.sh"
gateway_with_two_ways_out
for way in 1 2; do
	on server ip route add 192.168.100.0/24 via "10.1$way.0.1" metric "$way"
	on server ip -6 route add 2001:db8:100::/64 via "2001:db8:1$way::1" metric "$way"
	on "isp$way" ip route add 192.168.100.0/24 via "10.$way.0.2"
	on "isp$way" ip -6 route add 2001:db8:100::/64 via "2001:db8:$way::2"
done
daemon gateway
await 5 on gateway ip link show pffrag0
echo_server server 7
SERVER4=192.0.2.80 SERVER6=2001:db8:80::80

# mtu INSIDE FIRST SECOND - sets the MTU of the link to the client, and of those to the providers
mtu() {
	on client ip link set eth0 mtu "$1"
	on gateway ip link set lan0 mtu "$1"
	on gateway ip link set wan1 mtu "$2"
	on isp1 ip link set gw0 mtu "$2"
	on gateway ip link set wan2 mtu "$3"
	on isp2 ip link set gw0 mtu "$3"
	on client ip route flush cache
	on client ip -6 route flush cache
}

# told ADDRESS BYTES [OPTION...] - prints the MTU in the answer to an echo request
told() {
	local address=$1 bytes=$2
	shift 2
	on client ping -n -c 1 -W 2 -s "$bytes" "$@" "$address" 2>&1 |
		sed -n 's/^From .* icmp_seq=1 .*mtu *= *\([0-9]*\).*/\1/p' | head -n 1
}

# large_ping ADDRESS BYTES - sends echo requests until an answer comes, because the server must
# learn the MTU, too
large_ping() {
	if on client ping -n -q -c 1 -w 3 -i 0.2 -M dont -s "$2" "$1" >/dev/null 2>&1; then echo passed; \
		else echo "no answer"; fi
}

# longest ISP ADDRESS BYTES - prints the length of the longest packet of a ping at a provider
longest() {
	start "ear-$1" "$1" tcpdump --immediate-mode -n -l -v -i gw0 -Q in "dst $2"
	await 3 grep -q "listening on" "$WORK/ear-$1.log"
	large_ping "$2" "$3" >/dev/null
	await 3 grep -q "length" "$WORK/ear-$1.log"
	stop "ear-$1"
	sed -n 's/.*proto [A-Z]* ([0-9]*), length \([0-9]*\).*/\1/p' "$WORK/ear-$1.log" |
		sort -n | tail -n 1
}

filter gateway <<<pass
for sizes in "1500 1400 5000" "9000 1500 20000" "1500 1300 5000"; do
	read -r inside outside bytes <<<"$sizes"
	mtu "$inside" "$outside" "$outside"
	same "IPv6 from $inside to $outside" "$outside" "$(told $SERVER6 "$bytes")"
	same "IPv6 from $inside to $outside, once told" passed "$(large_ping $SERVER6 "$bytes")"
	same "IPv4 from $inside to $outside" passed "$(large_ping $SERVER4 "$bytes")"
done

# a rule chooses the link
mtu 1500 1500 1400
for rule in "in on lan0" "out on wan1"; do
	filter gateway <<-END
		pass
		pass $rule inet to $SERVER4 route-to 10.2.0.1
		pass $rule inet6 to $SERVER6 route-to 2001:db8:2::1
	END
	same "longest fragment of IPv4, route-to $rule" 1396 "$(longest isp2 $SERVER4 5000)"
	same "IPv4, route-to $rule" passed "$(large_ping $SERVER4 5000)"
	same "UDP over IPv4, route-to $rule" "passed passed" \
		"$(probe_large_udp client $SERVER4 7 1450) $(probe_large_udp client $SERVER4 7 5000)"
	same "told of IPv4 with DF, route-to $rule" 1400 "$(told $SERVER4 1450 -M "do")"
	same "told of fragments of IPv6, route-to $rule" 1400 "$(told $SERVER6 5000)"
	same "fragments of IPv6 once told, route-to $rule" passed "$(large_ping $SERVER6 5000)"
	on client ip -6 route flush cache
	same "told of IPv6, route-to $rule" 1400 "$(told $SERVER6 1450)"
	mtu 1500 1500 1400
done

# the same with a source translated on the outbound interface: its original address gets the error
filter gateway <<END
pass
pass out on wan1 inet to $SERVER4 nat-to 10.2.0.2 route-to 10.2.0.1
pass out on wan1 inet6 to $SERVER6 nat-to 2001:db8:2::2 route-to 2001:db8:2::1
END
same "told of IPv4 with DF, nat-to" 1400 "$(told $SERVER4 1450 -M "do")"
same "told of IPv6, nat-to" 1400 "$(told $SERVER6 1450)"
mtu 1500 1500 1400
same "told of fragments of IPv6, nat-to" 1400 "$(told $SERVER6 5000)"
mtu 1500 1500 1400
same "longest fragment of IPv4, nat-to" 1396 "$(longest isp2 $SERVER4 5000)"
same "IPv4, nat-to" passed "$(large_ping $SERVER4 5000)"

# skipstepd, which makes the fragments, does not run: the datagram is counted, and reported
filter gateway <<END
pass
pass out on wan1 inet to $SERVER4 route-to 10.2.0.1
END
daemon_stop gateway
before=$(reason gateway fragment)
same "IPv4 without skipstepd, route-to out on wan1" "no answer" \
	"$(probe_large_udp client $SERVER4 7 1450)"
at_least $((before + 1)) "datagrams counted as fragment" "$(reason gateway fragment)"
start drops gateway "$BIN/pfctl" drops
reported() {
	probe_large_udp client $SERVER4 7 1450 >/dev/null
	grep -q "fragment block out on wan2.*$SERVER4" "$WORK/drops.log"
}
holds "and reported" await 5 reported
verdict
