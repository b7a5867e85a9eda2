# TCP packets between hosts of one machine have up to 64 kB (GSO), or more (BIG TCP). pf counts the
# segments that they would be on a wire.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
start iperf3 server iperf3 --server --port 5001
await 3 listening server tcp 5001 || die "no iperf3 server"

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp to port 5001 label "in"
pass out on wan0 proto tcp to port 5001 label "out"
END
for address in $SERVER4 $SERVER6; do
	pf gateway -q -z
	on client iperf3 --client "$address" --port 5001 --bytes 100M --connect-timeout 1000 \
		>/dev/null || die "iperf3 failed"
	# label evaluations packets bytes packets-in bytes-in packets-out bytes-out states
	for label in in out; do
		read -r packets bytes \
			< <(pf gateway -sl | awk -v l=$label '$1 == l { print $3, $4 }')
		at_least 104857600 "bytes to and from $address, $label" "$bytes"
		at_least $((bytes / 1500)) "packets to and from $address, $label" "$packets"
	done
done

# BIG TCP: packets over 64 kB. Their length is in no IP header (IPv4), or in a hop-by-hop header
# that does not exist on the wire (IPv6).
# allow_big HOST IFACE - allows packets of up to 200,000 bytes, which not every `ip` can do
allow_big() {
	on "$1" python3 - "$2" <<'END_OF_PROGRAM'
import socket, struct, sys
# IFLA_GSO_MAX_SIZE, IFLA_GRO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE, IFLA_GRO_IPV4_MAX_SIZE
attributes = b"".join(struct.pack("=HHI", 8, kind, 200000) for kind in (41, 58, 63, 64))
link = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(sys.argv[1]), 0, 0)
# RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK
length = 16 + len(link) + len(attributes)
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
s.send(struct.pack("=IHHII", length, 16, 5, 1, 0) + link + attributes)
sys.exit(struct.unpack_from("=i", s.recv(4096), 16)[0] and 1)
END_OF_PROGRAM
}
for pair in client:eth0 gateway:lan0 gateway:wan0 server:eth0; do
	allow_big "${pair%:*}" "${pair#*:}" || unable "this kernel has no BIG TCP"
done
# Linux counts the hop-by-hop header when it compares segments with the MTU of the outbound link
on gateway ip link set lan0 mtu 1600
on gateway ip link set wan0 mtu 1600

# A neighbour advertisement counts as short, and passes, as on OpenBSD. Static neighbours avoid
# advertisements during the test.
for neighbour in "client eth0 2001:db8:100::1 gateway lan0" "gateway lan0 $CLIENT6 client eth0" \
	"gateway wan0 $SERVER6 server eth0" "server eth0 2001:db8:10::81 gateway wan0"; do
	read -r asks interface address host other <<<"$neighbour"
	on "$asks" ip -6 neigh flush dev "$interface" # otherwise earlier entries are probed again
	on "$asks" ip neigh replace "$address" dev "$interface" lladdr "$(link_address "$host" "$other")" \
		nud permanent
done

# big ADDRESS RULE... - checks that a transfer of such packets passes, and counts as its segments
big() {
	local address=$1 label packets bytes before
	filter gateway
	start ear client tcpdump --immediate-mode -n -l -c 1 -i eth0 'tcp dst port 5001 and greater 65600'
	await 3 grep -q "listening on" "$WORK/ear.log"
	before=$(reason gateway short)
	pf gateway -q -z
	on client timeout 10 iperf3 --client "$address" --port 5001 --bytes 400M \
		--connect-timeout 1000 >/dev/null || die "no transfer to $address"
	stop ear
	at_least 1 "packets over 64 kB to $address" "$(grep -c length "$WORK/ear.log")"
	same "packets counted as short, $address" "${before:-0}" "$(reason gateway short)"
	for label in in out; do
		read -r packets bytes \
			< <(pf gateway -sl | awk -v l=$label '$1 == l { print $3, $4 }')
		at_least 419430400 "bytes to and from $address, $label" "$bytes"
		at_least $((bytes / 1500)) "packets to and from $address, $label" "$packets"
		at_most 450000000 "bytes to and from $address, $label" "$bytes"
	done
}
for address in $SERVER4 $SERVER6; do
	for fast in yes no; do
		big "$address" <<-END
			set fast-forward $fast
			block all
			pass inet6 proto icmp6
			pass in log (all) on lan0 proto tcp to port 5001 label "in"
			pass out on wan0 proto tcp to port 5001 label "out"
		END
	done
done
big $SERVER6 <<END
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp to port 5001 label "in"
pass out on wan0 inet6 proto tcp to port 5001 nat-to 2001:db8:10::81 label "out"
END
verdict
