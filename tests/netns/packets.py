# Packets with right lengths and checksums, for programs of the tests. Each function but `summed`
# and `message` returns the EtherType and the packet.
import socket, struct

TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58

def summed(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)

def ip4(source, destination, protocol, data, ident=1, fragment=0, ttl=64, options=b""):
    """`fragment` is the field with the flags and the offset."""
    length = 20 + len(options)
    ip = struct.pack("!BBHHHBBH", 0x40 | length // 4, 0, length + len(data), ident, fragment, ttl,
                     protocol, 0)
    ip += packed(source) + packed(destination) + options
    return 0x0800, ip[:10] + struct.pack("!H", summed(ip)) + ip[12:] + data

def ip6(source, destination, following, data, ttl=64):
    header = struct.pack("!IHBB", 6 << 28, len(data), following, ttl)
    return 0x86dd, header + packed(source) + packed(destination) + data

def message(source, destination, protocol, transport, sum_at):
    """Returns `transport` with its checksum at `sum_at`."""
    pseudo = b""
    if protocol != ICMP:
        pseudo = packed(source) + packed(destination) + struct.pack("!II", len(transport), protocol)
    checksum = struct.pack("!H", summed(pseudo + transport))
    return transport[:sum_at] + checksum + transport[sum_at + 2:]

def packet(source, destination, protocol, transport, sum_at):
    ip = ip6 if ":" in source else ip4
    return ip(source, destination, protocol,
              message(source, destination, protocol, transport, sum_at))

def segment(source, source_port, destination, destination_port, flags, seq, ack, window=65535,
            data=b""):
    header = struct.pack("!HHIIBBHHH", source_port, destination_port, seq, ack, 0x50, flags, window,
                         0, 0)
    return packet(source, destination, TCP, header + data, 16)

def datagram(source, source_port, destination, destination_port, data):
    header = struct.pack("!HHHH", source_port, destination_port, 8 + len(data), 0)
    return packet(source, destination, UDP, header + data, 6)

def echo(source, destination, ident, sequence, data, answer=False):
    """Returns an echo request, or the answer to one, without an IP header."""
    kind = (129 if answer else 128) if ":" in source else (0 if answer else 8)
    protocol = ICMP6 if ":" in source else ICMP
    header = struct.pack("!BBHHH", kind, 0, 0, ident, sequence)
    return message(source, destination, protocol, header + data, 2)
