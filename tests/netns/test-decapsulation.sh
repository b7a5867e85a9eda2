# Linux decapsulates packets on the interface on which they arrive, or passes them to a tunnel's
# interface. In each case the filter judges the inner packet before it reaches the host.
#
#   peer                                     host
#   eth0 ---------------------------------- lan0
#   10.9.1.2, 2001:db8:1::2        10.9.1.1, 2001:db8:1::1
#
# Each encapsulation has a number; the host's inner addresses are 10.7.NUMBER.1 and
# 2001:db8:7:NUMBER::1, unless noted otherwise. The peer sends an encapsulated echo request, and the
# answer comes as an ordinary packet, or in the same encapsulation.
. "$(dirname "$0")/lab.sh"

host peer far
router host
wire peer eth0 host lan0
wire far eth0 host lan1
address peer eth0 10.9.1.2/24 2001:db8:1::2/64
address host lan0 10.9.1.1/24 2001:db8:1::1/64
address far eth0 2001:db8:7:11::2/64
address host lan1 2001:db8:7:11::1/64
on far ip -6 route add default via 2001:db8:7:11::1
inner4() { # NUMBER - adds the host's inner address, and the peer's route to it
	on host ip address add "10.7.$1.1/32" dev lo
}
inner6() {
	on host ip address add "2001:db8:7:$1::1/128" dev lo nodad
}

# tunnel NAME ARGUMENTS... - makes an interface at both ends, with ENDS as local and remote address
tunnel() {
	local name=$1
	shift
	on host ip link add "$name" type "$@" local "$HOST" remote "$PEER" &&
		on peer ip link add "$name" type "$@" local "$PEER" remote "$HOST" &&
		on host ip link set "$name" up && on peer ip link set "$name" up
}
HOST=10.9.1.1 PEER=10.9.1.2

ipip() {
	tunnel ipip1 ipip && inner4 1 && on peer ip route add 10.7.1.1 dev ipip1
}
sit() {
	tunnel sit1 sit && inner6 2 && on peer ip route add 2001:db8:7:2::1 dev sit1
}
gre() {
	tunnel gre1 gre && inner4 3 && on peer ip route add 10.7.3.1 dev gre1
}
vxlan() {
	tunnel vxlan1 vxlan id 7 dstport 4789 && address host vxlan1 10.7.4.1/24 &&
		address peer vxlan1 10.7.4.2/24
}
# GRE with many peers: the interface has the outer header as its link header.
gre_to_many() {
	local name
	for name in host peer; do
		on $name ip tunnel add gre2 mode gre local "$([ $name = host ] && echo $HOST || echo $PEER)" key 7 \
			ttl 64 || return
		on $name ip link set gre2 up
	done
	on host ip address add 10.7.5.1/24 dev gre2
	on peer ip address add 10.7.5.2/24 dev gre2
	on host ip neighbour replace 10.7.5.2 lladdr $PEER dev gre2 nud permanent
	on peer ip neighbour replace 10.7.5.1 lladdr $HOST dev gre2 nud permanent
}

# security MODE FROM TO INNER-FROM INNER-TO SPI HOST... - configures IPsec for one direction
security() {
	local mode=$1 from=$2 to=$3 inner_from=$4 inner_to=$5 spi=$6 name way
	shift 6
	for name; do
		on "$name" ip xfrm state add src "$from" dst "$to" proto esp spi "$spi" reqid "$spi" \
			mode "$mode" auth 'hmac(sha256)' \
			0x0123456789abcdef0123456789abcdef enc 'cbc(aes)' \
			0x0123456789abcdef0123456789abcdef || return
	done
	on "${1}" ip xfrm policy add src "$inner_from" dst "$inner_to" dir out \
		tmpl src "$from" dst "$to" proto esp reqid "$spi" mode "$mode" || return
	for way in in fwd; do
		on "${2}" ip xfrm policy add src "$inner_from" dst "$inner_to" dir $way \
			tmpl src "$from" dst "$to" proto esp reqid "$spi" mode "$mode" || return
	done
}
ipsec_tunnel() {
	inner4 6 && on peer ip route add 10.7.6.1 via $HOST &&
		security tunnel $PEER $HOST $PEER 10.7.6.1 6 peer host
}
ipsec_tunnel6() {
	inner6 7 && on peer ip route add 2001:db8:7:7::1 via 2001:db8:1::1 &&
		security tunnel 2001:db8:1::2 2001:db8:1::1 \
			2001:db8:1::2 2001:db8:7:7::1 7 peer host
}
ipsec_transport() {
	on host ip address add 10.9.1.8/24 dev lan0 &&
		security transport $PEER 10.9.1.8 $PEER 10.9.1.8 8 peer host
}
ipsec_transport6() {
	on host ip address add 2001:db8:1::9/64 dev lan0 nodad &&
		security transport 2001:db8:1::2 2001:db8:1::9 \
			2001:db8:1::2 2001:db8:1::9 9 peer host
}

# segment NUMBER ACTION... - makes the segment fc00::NUMBER of the host, whose route decapsulates
segment() {
	local number=$1
	shift
	on host ip -6 route add "fc00::$number/128" encap seg6local action "$@" dev lan0 &&
		on peer ip -6 route add "fc00::$number/128" via 2001:db8:1::1
}
end_dt6() {
	segment 10 End.DT6 table 255 && inner6 10 &&
		on peer ip -6 route add 2001:db8:7:10::1 \
			encap seg6 mode encap.red segs fc00::10 dev eth0
}
end_dx6() {
	segment 11 End.DX6 nh6 2001:db8:7:11::2 &&
		on peer ip -6 route add 2001:db8:7:11::2 \
			encap seg6 mode encap.red segs fc00::11 dev eth0
}
end_dx4() {
	segment 12 End.DX4 nh4 0.0.0.0 && inner4 12 &&
		on peer ip route add 10.7.12.1 encap seg6 mode encap.red segs fc00::12 dev eth0
}
mpls() {
	[ -e /proc/sys/net/mpls ] || modprobe mpls_iptunnel 2>/dev/null
	on host sh -c 'echo 1000 >/proc/sys/net/mpls/platform_labels
		echo 1 >/proc/sys/net/mpls/conf/lan0/input' 2>/dev/null && inner4 13 &&
		on host ip -f mpls route add 113 dev lo &&
		on peer ip route add 10.7.13.1 encap mpls 113 via inet 10.9.1.1 dev eth0
}

declare -A target=(
	[ipip]=10.7.1.1 [sit]=2001:db8:7:2::1 [gre]=10.7.3.1 [vxlan]=10.7.4.1 [gre_to_many]=10.7.5.1
	[ipsec_tunnel]=10.7.6.1 [ipsec_tunnel6]=2001:db8:7:7::1 [ipsec_transport]=10.9.1.8
	[ipsec_transport6]=2001:db8:1::9 [end_dt6]=2001:db8:7:10::1
	[end_dx6]=2001:db8:7:11::2 [end_dx4]=10.7.12.1 [mpls]=10.7.13.1)
judged=(ipip sit gre vxlan gre_to_many ipsec_tunnel ipsec_tunnel6)
refused=(ipsec_transport ipsec_transport6 end_dt6 end_dx6 end_dx4 mpls)

probe() { # WAY
	probe_ping peer "${target[$1]}"
}
probe_all() { # WAY... - prints the answered encapsulations in one line
	local way
	for way; do
		[ "$(probe "$way")" != passed ] || printf '%s ' "$way"
	done
}
# set_up WAY... - prints the encapsulations that this kernel supports, and reports the others
set_up() {
	local way
	for way; do
		if $way 2>"$WORK/lack"; then
			await 3 on peer ping -n -q -c 1 -W 1 "${target[$way]}" ||
				die "without a filter nothing comes by $way"
			printf '%s ' "$way"
		else
			echo "this kernel lacks $way: $(tail -n 1 "$WORK/lack")" >&2
		fi
	done
}
read -ra judged <<<"$(set_up "${judged[@]}")"
read -ra refused <<<"$(set_up "${refused[@]}")"
[ ${#judged[@]} != 0 ] && [ ${#refused[@]} != 0 ] || unable "this kernel has no tunnels of both kinds"

# The inner packet is judged on lan0 or on the tunnel's interface, or nobody receives it.
filter host <<<"set skip on lo
pass"
same "pass: inner packets that pf sees come in" "${judged[*]} " "$(probe_all "${judged[@]}")"
same "and no others" "" "$(probe_all "${refused[@]}")"
unattached=$(reason host unattached) labelled=$(reason host link-header)
at_least ${#refused[@]} "which are counted" $((${unattached:-0} + ${labelled:-0}))
filter host <<<"set skip on lo
pass
block in inet proto icmp icmp-type echoreq
block in inet6 proto icmp6 icmp6-type echoreq"
same "block: none comes in" "" "$(probe_all "${judged[@]}" "${refused[@]}")"

# `set unattached pass` passes packets that the filter cannot judge.
filter host <<<"set skip on lo
set unattached pass
pass"
same "set unattached pass: all come in" "${judged[*]} ${refused[*]} " \
	"$(probe_all "${judged[@]}" "${refused[@]}")"
verdict
