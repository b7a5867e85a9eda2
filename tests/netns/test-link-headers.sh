# No link header hides an IP packet. Frames with 0 to 8 VLAN tags in all mixes, and 802.2 LLC/SNAP
# headers, are judged or dropped on the inbound and on the outbound device.
#
#   peer                                     host
#   eth0 ---------------------------------- lan0 (and mac0, a macvlan on lan0)
#   10.9.1.2, 2001:db8:1::2        10.9.1.1, 2001:db8:1::1
# long: 14 s
. "$(dirname "$0")/lab.sh"

host peer host far
wire peer eth0 host lan0
address peer eth0 10.9.1.2/24 2001:db8:1::2/64
address host lan0 10.9.1.1/24 2001:db8:1::1/64
program=$HERE/link-headers.py

# heard SENDER IFACE LINK-ADDRESS FROM TO LISTENER [VLAN] - sends a datagram behind each link
# header; prints the headers whose datagram arrives at the listener
heard() {
	local listener=listener-$6 log=$WORK/listener-$6.log
	start "$listener" "$6" python3 "$program" listen
	await 5 grep -q ready "$log" || die "the listener does not start"
	on "$1" python3 "$program" send "$2" "$3" "$4" "$5" ${7:+"$7"} >/dev/null || die "no frame was sent"
	sleep 0.2 # a frame that is dropped is no event to wait for
	last_words "$listener"
}
lan0=$(link_address host lan0)
eth0=$(link_address peer eth0)
in4() { heard peer eth0 "$lan0" 10.9.1.2 10.9.1.1 host; }
in6() { heard peer eth0 "$lan0" 2001:db8:1::2 2001:db8:1::1 host; }
out4() { heard host lan0 "$eth0" 10.9.1.1 10.9.1.2 peer; }
is_filtered() { # IFACE
	pf host -s Interfaces -vv -i "$1" | grep -q "Hook: .*tc"
}
count() { wc -w <<<"$1"; }

# Without a filter the kernel removes any number of tags of the two known kinds.
every=$(in4)
holds "the probe finds holes: eight tags" grep -qw 8100-8100-8100-8100-8100-8100-8100-8100 <<<"$every"
holds "the probe finds holes: two kinds of tags" grep -qw 88a8-8100-88a8 <<<"$every"
at_least 25 "link headers that the kernel takes off" "$(count "$every")"
same "of IPv6 too" "$every" "$(in6)"
same "and at the other end" "$every" "$(out4)"

filter host <<<"block in on lan0 proto udp
pass out"
for way in tcx XDP; do
	same "nothing comes in, IPv4, $way" "" "$(in4)"
	same "nothing comes in, IPv6, $way" "" "$(in6)"
	filter host <<<"set xdp on lan0
	block in on lan0 proto udp
	pass out"
done
at_least 100 "frames that hide their packet are counted" "$(reason host link-header)"
filter host <<<"block out on lan0 proto udp"
same "nothing leaves" "" "$(out4)"

# A pass rule judges frames with up to three tags; frames with more tags are dropped.
filter host <<<"block
pass in on lan0 proto udp to port 7777 no state
pass out"
wanted=$(tr ' ' '\n' <<<"$every" | grep -v snap | awk -F- 'NF <= 3' | sort | xargs)
same "up to three tags are taken off and judged" "$wanted" "$(in4)"

# Dropped frames are logged.
daemon host
in4 >/dev/null
sleep 0.5 # until skipstepd has written the records
at_least 30 "log records" "$(tcpdump -n -e -r "$WORK/host-pflog0" 2>/dev/null | grep -c 'in on lan0')"

# A device on top of the inbound device.
on host ip link add mac0 link lan0 type macvlan mode bridge
address host mac0 10.9.2.1/24
on peer ip address add 10.9.2.2/24 dev eth0
by_macvlan() { heard peer eth0 "$(link_address host mac0)" 10.9.2.2 10.9.2.1 host; }
filter host <<<"pass no state"
await 5 is_filtered mac0
same "up to three tags are taken off in front of a macvlan" "$wanted" "$(by_macvlan)"
filter host <<<"pass no state
block in on mac0 proto udp"
same "nothing comes in by a macvlan" "" "$(by_macvlan)"
on host ip link delete mac0

# VLAN devices, which remove a tag and pass the packet to the stack themselves.
if on host ip link add vlan5 link lan0 type vlan id 5 2>/dev/null; then
	on peer ip link add vlan5 link eth0 type vlan id 5
	address host vlan5 10.9.5.1/24
	address peer vlan5 10.9.5.2/24
	pf host -d -q
	in_vlan() { heard peer eth0 "$lan0" 10.9.5.2 10.9.5.1 host 5; }
	out_vlan() { heard host "$1" "$eth0" 10.9.5.1 10.9.5.2 peer "$2"; }
	all_of_vlan=$(in_vlan)
	at_least 10 "a VLAN device takes off more tags than its own" "$(count "$all_of_vlan")"
	at_least 10 "link headers that leave by a VLAN device" "$(count "$(out_vlan vlan5 0)")"
	filter host <<<"pass no state"
	await 5 is_filtered vlan5
	same "up to three tags come in by a VLAN device" \
		"$(tr ' ' '\n' <<<"$all_of_vlan" | grep -v snap | awk -F- 'NF <= 3' | sort | xargs)" "$(in_vlan)"
	for device in lan0 vlan5; do
		filter host <<<"pass no state
		block in on $device proto udp"
		same "nothing comes in by a VLAN device, blocked on $device" "" "$(in_vlan)"
		filter host <<<"pass no state
		block out on $device proto udp"
		same "nothing leaves by a VLAN device, blocked on $device" "" "$(out_vlan vlan5 0)"
	done
	same "nothing leaves with the VLAN's tag, blocked on lan0" "" "$(filter host <<<"pass no state
		block out on lan0 proto udp"; out_vlan lan0 5)"
	on host ip link delete vlan5
	on peer ip link delete vlan5
else
	echo "left out: VLAN devices, which this kernel does not have; tests/older-kernel tries them"
fi

# Across the kernel's bridge, and across one of skipstep's own.
wire far eth0 host lan1
address far eth0 10.9.1.3/24
on host ip address flush dev lan0
on host ip link set lan1 up
across() { heard peer eth0 "$(link_address far eth0)" 10.9.1.2 10.9.1.3 far; }
kernel_bridge() {
	on host ip link add br0 type bridge
	on host ip link set br0 up
	on host ip link set lan0 master br0
	on host ip link set lan1 master br0
	await 5 on peer ping -n -q -c 1 -W 1 10.9.1.3 || die "the bridge carries nothing"
}
own_bridge() {
	on host ip link delete br0
	pf host bridge add lan0 lan1 || die "no bridge"
	await 5 on peer ping -n -q -c 1 -W 1 10.9.1.3 || die "the bridge carries nothing"
}
for bridge in kernel_bridge own_bridge; do
	$bridge
	filter host <<<"pass no state"
	all=$(across)
	at_least 3 "frames cross with up to three tags, $bridge" "$(count "$all")"
	same "802.2 frames with an IP packet do not, $bridge" "" "$(tr ' ' '\n' <<<"$all" | grep snap)"
	filter host <<<"pass no state
	block in on lan0 proto udp"
	same "nothing crosses where it comes in, $bridge" "" "$(across)"
	filter host <<<"pass no state
	block out on lan1 proto udp"
	same "nothing crosses where it leaves, $bridge" "" "$(across)"
done
verdict
