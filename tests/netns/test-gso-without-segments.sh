# Packets of virtual machines have the length of their segments, but not their number
# (SKB_GSO_DODGY). pf counts the segments, and uses the length of a segment.
#
#   tap0 (a virtual machine) ------- gateway ------- server
#   192.168.50.2             192.168.50.1    wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
on gateway ip tuntap add dev tap0 mode tap vnet_hdr || unable "there are no tap devices here"
address gateway tap0 192.168.50.1/24
on gateway ip link set tap0 up
on server ip route add 192.168.50.0/24 via 192.168.10.81 2>/dev/null

# machine BYTES SIZE - sends a TCP packet with BYTES bytes of data from the machine to the server,
# in segments of SIZE bytes
machine() {
	on gateway python3 - "$(link_address gateway tap0)" "$SERVER4" "$@" <<'END_OF_PROGRAM'
import fcntl, os, socket, struct, sys
gateway = bytes(int(byte, 16) for byte in sys.argv[1].split(":"))
to, payload, size = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
device = os.open("/dev/net/tun", os.O_RDWR)
# IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"tap0", 0x5002))
fcntl.ioctl(device, 0x400454D0, 7)  # TUNSETOFFLOAD: TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6

def total(data):
    result = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while result >> 16:
        result = (result & 0xffff) + (result >> 16)
    return result

source, destination = socket.inet_aton("192.168.50.2"), socket.inet_aton(to)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + payload, 7, 0x4000, 64, 6, 0, source, destination)
ip = ip[:10] + struct.pack("!H", ~total(ip) & 0xffff) + ip[12:]
pseudo = total(source + destination + struct.pack("!HH", 6, 20 + payload))
tcp = struct.pack("!HHIIBBHHH", 4000, 9, 1, 1, 0x50, 0x10, 1000, pseudo, 0)
ethernet = gateway + bytes([2, 0, 0, 0, 0, 9]) + b"\x08\x00"
# VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4
front = struct.pack("<BBHHHH", 1, 1, 54, size, 34, 16)
os.write(device, front + ethernet + ip + tcp + bytes(payload))
END_OF_PROGRAM
}

# counted LABEL - prints packets and bytes of a rule
counted() {
	pf gateway -sl | awk -v l="$1" '$1 == l { print $3, $4 }'
}

# on_wire BYTES SIZE - prints the number of segments of such a packet at the server
on_wire() {
	start ear server tcpdump --immediate-mode -n -l -i eth0 -Q in 'tcp and src 192.168.50.2'
	await 3 grep -q "listening on" "$WORK/ear.log"
	machine "$@"
	await 1 grep -q " IP .*length" "$WORK/ear.log"
	sleep 0.1
	stop ear
	sed -n 's/.* IP .*length \([0-9]*\).*/\1/p' "$WORK/ear.log" |
		awk -v size="$2" '{ n += int(($1 + size - 1) / size) } END { print n + 0 }'
}

for fast in yes no; do
	filter gateway <<-END
		set fast-forward $fast
		block
		pass in on tap0 proto tcp flags any no state label "in"
		pass out on wan0 proto tcp flags any no state label "out"
	END
	for size in 1000 1448; do
		segments=$(((5000 + size - 1) / size))
		pf gateway -q -z
		same "segments of $size bytes at the server" $segments "$(on_wire 5000 $size)"
		for label in in out; do
			same "$label, segments of $size bytes, fast-forward $fast" \
				"$segments $((5000 + 40 * segments))" "$(counted $label)"
		done
	done
done

# rules and links use the length of a segment
filter gateway <<'END'
pass in on tap0 proto tcp flags any max-pkt-size 1040
pass out on wan0
END
same "max-pkt-size, as long as a segment" 5 "$(on_wire 5000 1000)"
same "max-pkt-size, less than a segment" 0 "$(on_wire 5000 1001)"
filter gateway <<'END'
pass in on tap0 proto tcp flags any route-to 192.168.10.2
pass out on wan0
END
same "route-to" 5 "$(on_wire 5000 1000)"
filter gateway <<'END'
pass in on tap0
pass out on wan0 proto tcp flags any route-to 192.168.10.2
END
same "route-to where it leaves" 5 "$(on_wire 5000 1000)"
verdict
