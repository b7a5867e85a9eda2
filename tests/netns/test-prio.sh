# Priorities of packets: rules set them, rules on the outbound interface compare them, and a VLAN
# device writes them into its frames.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers

priorities() {
	# outbound rules compare the priorities that inbound rules have set
	rules <<-END
		pass in on lan0
		pass in on lan0 proto udp to port 50 set prio 6
		pass in on lan0 proto { udp, tcp } to port 51 set prio (2, 5)
		block out on wan0
		pass out on wan0 inet proto udp prio 3 no state label "three"
		pass out on wan0 prio 2 no state label "two"
		pass out on wan0 prio 5 no state label "five"
		pass out on wan0 prio 6 no state label "six"
		pass out on wan0 proto udp to port 8
	END
	converse <<-END
		# a flow that no rule gives a priority, or asks for one
		client sends 12 times c4 s4 udp 1000 8
		server hears 12 times c4 s4 udp 1000 8
		# priorities on the way out
		client sends 5 times c4 s4 udp 1000 7
		server hears 5 times c4 s4 udp 1000 7
		client sends 5 times c4 s4 udp 1000 50
		server hears 5 times c4 s4 udp 1000 50
		client sends 5 times c6 s6 udp 1000 50
		server hears 5 times c6 s6 udp 1000 50
		client sends 7 times c4 s4 udp 1000 51
		server hears 7 times c4 s4 udp 1000 51
		client sends 2 times c4 s4 tos 0x10 udp 1000 51
		server hears 2 times c4 s4 tos 0x10 udp 1000 51
		client sends c4 s4 tcp 1000 51 S 1000 0
		server hears c4 s4 tcp 1000 51 S 1000 0
		client sends 4 times c4 s4 tcp 1000 51 A 1001 1
		server hears 4 times c4 s4 tcp 1000 51 A 1001 1
	END
	same "$MODE: packets of each priority" "three 5 two 8 five 6 six 10" \
		"$(pf gateway -sl | awk '$2 { print $1, $3 }' | xargs)"
}
in_every_mode priorities

# Real hosts in a VLAN: the device writes the priority into the frame according to egress-qos-map.
on gateway ip link add link wan0 name vlan5 type vlan id 5 \
	egress-qos-map 1:1 2:2 3:3 4:4 5:5 6:6 7:7 2>/dev/null || {
	echo "left out: frames of VLANs, for this kernel has no VLAN devices"
	verdict
}
on server ip link add link eth0 name vlan5 type vlan id 5
address gateway vlan5 192.168.50.1/24 2001:db8:50::1/64
address server vlan5 192.168.50.2/24 2001:db8:50::2/64
on server ip route add 192.168.100.0/24 via 192.168.50.1
on server ip -6 route add 2001:db8:100::/64 via 2001:db8:50::1
# written PRIORITIES - prints the priorities of the frames with echo requests to the server
written() {
	start ear server tcpdump --immediate-mode -n -l -e -i eth0 -Q in \
		'vlan 5 and (icmp[icmptype] == icmp-echo or icmp6[0] == 128)'
	await 5 grep -q "listening on" "$WORK/ear.log" || die "the server does not listen"
	on client ping -n -q -c 5 -i 0.2 192.168.50.2 >/dev/null
	on client ping -n -q -c 5 -i 0.2 2001:db8:50::2 >/dev/null
	await 5 eval '[ "$(grep -c "vlan 5" "$WORK/ear.log")" = 10 ]'
	stop ear
	sed -n 's/.* vlan 5, p \([0-7]\),.*/\1/p' "$WORK/ear.log" | sort | uniq -c | xargs
}
for forward in no yes; do
	filter gateway <<-END
		set fast-forward $forward
		pass
		pass out on vlan5 proto { icmp, icmp6 } set prio 4
	END
	same "fast-forward $forward: ten frames of priority 4" "10 4" "$(written)"
	filter gateway <<-END
		set fast-forward $forward
		pass
		match in on lan0 proto { icmp, icmp6 } set prio 7
	END
	pf gateway -q -F states
	same "fast-forward $forward: of priority 7, set where they came in" "10 7" "$(written)"
done
verdict
