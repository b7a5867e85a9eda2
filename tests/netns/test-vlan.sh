# Frames with an 802.1Q tag are judged like other frames.
#
#   client ---- tagged frames ----> lan0 gateway
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server

filter gateway <<'END'
pass all
block in on lan0 proto udp to port 7777 label "tagged"
END
mac=$(on gateway ip -brief link show lan0 | awk '{ print $3 }')
# One frame for each family.
on client python3 - "$mac" <<'END'
import socket, struct, sys
target = bytes.fromhex(sys.argv[1].replace(":", ""))
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
udp = struct.pack("!HHHH", 1000, 7777, 12, 0) + b"ping"
def summed(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff
source, destination = socket.inet_aton("192.168.100.2"), socket.inet_aton("192.168.10.2")
header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + source + destination
v4 = header[:10] + struct.pack("!H", summed(header)) + header[12:] + udp
source, destination = (socket.inet_pton(socket.AF_INET6, a) for a in ("2001:db8:100::2", "2001:db8:10::2"))
checksum = summed(source + destination + struct.pack("!II", len(udp), 17) + udp)
v6 = struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + source + destination
v6 += udp[:6] + struct.pack("!H", checksum) + udp[8:]
for kind, packet in ((0x0800, v4), (0x86dd, v6)):
    wire.send(target + target[:5] + b"\x77" + struct.pack("!HHH", 0x8100, 5, kind) + packet)
END
same "tagged packets the rule blocked" 2 "$(pf gateway -sl | awk '$1 == "tagged" { print $3 }')"
verdict
