# Two customers with the same addresses on one gateway, each in its own VRF, which is a routing
# domain of pf. Their states are separate, and each rule applies to one of them.
#
#   red    10.0.1.2 ---- red0 10.0.1.1 [gateway, VRF red, table 10] red1 10.0.2.1 ---- 10.0.2.2 redsrv
#   blue   10.0.1.2 ---- blue0 10.0.1.1 [gateway, VRF blue, table 20] blue1 10.0.2.1 ---- 10.0.2.2 bluesrv
. "$(dirname "$0")/lab.sh"
router gateway
on gateway ip link add red type vrf table 10 2>/dev/null || unable "this kernel has no VRF devices"
on gateway ip link add blue type vrf table 20
for vrf in red blue; do
	host $vrf ${vrf}srv
	wire $vrf eth0 gateway ${vrf}0
	wire ${vrf}srv eth0 gateway ${vrf}1
	on gateway ip link set ${vrf}0 master $vrf
	on gateway ip link set ${vrf}1 master $vrf
	on gateway ip link set $vrf up
	address gateway ${vrf}0 10.0.1.1/24 2001:db8:1::1/64
	address gateway ${vrf}1 10.0.2.1/24 2001:db8:2::1/64
	address $vrf eth0 10.0.1.2/24 2001:db8:1::2/64
	address ${vrf}srv eth0 10.0.2.2/24 2001:db8:2::2/64
	on $vrf ip route add default via 10.0.1.1
	on $vrf ip -6 route add default via 2001:db8:1::1
	on ${vrf}srv ip route add default via 10.0.2.1
	on ${vrf}srv ip -6 route add default via 2001:db8:2::1
	await 5 on $vrf ping -n -q -c 1 -W 1 10.0.2.2 || die "no way to ${vrf}srv over IPv4"
	await 5 on $vrf ping -n -q -c 1 -W 1 2001:db8:2::2 || die "no way to ${vrf}srv over IPv6"
	echo_server ${vrf}srv 7
done
for address in 10.0.2.2 2001:db8:2::2; do
	same "red reaches its server at $address without a filter" passed \
		"$(probe_udp red $address 7)"
done

filter gateway <<'END'
block return
pass inet6 proto icmp6
pass on rdomain 10
END
for address in 10.0.2.2 2001:db8:2::2; do
	same "red, UDP to $address" passed "$(probe_udp red $address 7)"
	same "red, ping to $address" passed "$(probe_ping red $address)"
	same "blue, UDP to $address: a rule for red is none for blue" refused \
		"$(probe_udp blue $address 7)"
done
# the gateway itself, by its addresses in the VRF and from there
for address in 10.0.1.1 2001:db8:1::1; do
	same "red, ping to the gateway's $address" passed "$(probe_ping red $address)"
done
same "the gateway's own packets in VRF red" passed \
	"$(on gateway ping -n -q -c 1 -W 1 -I red 10.0.2.2 >/dev/null && echo passed)"
same "the gateway's own packets in VRF blue" "" \
	"$(on gateway ping -n -q -c 1 -W 1 -I blue 10.0.2.2 >/dev/null && echo passed)"

# the same flow in both at once, with the same ports
filter gateway <<'END'
pass
END
flow() {
	echo x | on "$1" timeout 10 nc -u -p 1234 -W 1 10.0.2.2 7
}
same "a flow in red" x "$(flow red)"
same "the same in blue" x "$(flow blue)"
pf gateway -ss | grep ':1234'
same "its states" 4 "$(pf gateway -ss | grep -c ':1234')"
holds "one that came in in domain 10" eval \
	'pf gateway -ss | grep -F "all udp (10) 10.0.2.2:7 <- (10) 10.0.1.2:1234       SINGLE:MULTIPLE"'
holds "and one in domain 20" eval \
	'pf gateway -ss | grep -F "all udp (20) 10.0.2.2:7 <- (20) 10.0.1.2:1234       SINGLE:MULTIPLE"'
pf gateway -q -V 10 -k 10.0.1.2 -k 10.0.2.2
same "those of domain 10 are killed" 0 "$(pf gateway -ss | grep ':1234' | grep -c '(10)')"
same "those of domain 20 are left" 2 "$(pf gateway -ss | grep ':1234' | grep -c '(20)')"

# each VRF has its own routes for reverse-path checks
on gateway ip route add 203.0.113.0/24 via 10.0.2.2 table 10
filter gateway <<'END'
pass
block in from urpf-failed
block in quick on red0 to 203.0.113.0/25
block return in quick on blue0 proto udp to no-route
END
same "red's server, the way back is the interface it came by" passed "$(probe_udp red 10.0.2.2 7)"
same "blue's server" passed "$(probe_udp blue 10.0.2.2 7)"
same "blue has no route there" refused "$(probe_udp blue 203.0.113.200 7)"
same "red has" "no answer" "$(probe_udp red 203.0.113.200 7)"
on red ip address add 10.0.2.77/32 dev eth0
same "red with a source that belongs elsewhere" "no answer" \
	"$(on red ping -n -q -c 1 -W 1 -I 10.0.2.77 10.0.2.2 >/dev/null && echo passed ||
	echo "no answer")"

# fragments of both at once
daemon gateway
filter gateway <<'END'
pass
END
for vrf in red blue; do
	same "$vrf, a ping in fragments" passed \
		"$(on $vrf ping -n -q -c 1 -W 1 -s 4000 10.0.2.2 >/dev/null && echo passed)"
	same "$vrf, a ping in fragments over IPv6" passed \
		"$(on $vrf ping -n -q -c 1 -W 1 -s 4000 2001:db8:2::2 >/dev/null && echo passed)"
done
verdict
