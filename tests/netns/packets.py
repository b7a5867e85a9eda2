# Packets with right lengths and checksums, for programs of the tests. Each function returns the
# EtherType and the packet.
import socket, struct

TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58

def summed(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def packet(source, destination, protocol, transport, sum_at):
    six = ":" in source
    ends = [socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, end)
            for end in (source, destination)]
    pseudo = ends[0] + ends[1] + struct.pack("!HH", protocol, len(transport))
    checksum = struct.pack("!H", summed(pseudo + transport))
    transport = transport[:sum_at] + checksum + transport[sum_at + 2:]
    if six:
        header = struct.pack("!IHBB", 6 << 28, len(transport), protocol, 64) + ends[0] + ends[1]
        return 0x86dd, header + transport
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(transport), 1, 0, 64, protocol, 0)
    ip += ends[0] + ends[1]
    return 0x0800, ip[:10] + struct.pack("!H", summed(ip)) + ip[12:] + transport

def segment(source, source_port, destination, destination_port, flags, seq, ack):
    header = struct.pack("!HHIIBBHHH", source_port, destination_port, seq, ack, 0x50, flags, 65535,
                         0, 0)
    return packet(source, destination, TCP, header, 16)

def datagram(source, source_port, destination, destination_port, data):
    header = struct.pack("!HHHH", source_port, destination_port, 8 + len(data), 0)
    return packet(source, destination, UDP, header + data, 6)
