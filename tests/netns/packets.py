# Builds packets with correct lengths and checksums, for test programs. Each function with the name
# of a kind of packet returns the EtherType and the packet; `header` has keywords of `ip`.
import socket, struct

ICMP, IGMP, TCP, UDP, AH, ICMP6, SCTP = 1, 2, 6, 17, 51, 58, 132
DF = 0x4000

def summed(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def crc32c(data):
    """The checksum of SCTP, as it stands in the packet."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return struct.pack("<I", ~crc & 0xffffffff)

def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)

def pseudo(ends, protocol, length):
    """Returns the bytes that a transport checksum covers beside the transport; `ends` are both
    addresses."""
    if protocol in (ICMP, IGMP):
        return b""
    return ends + struct.pack("!II", length, protocol)

def ip4(source, destination, protocol, data, ident=1, fragment=0, ttl=64, options=b"", tos=0):
    """`fragment` is the field with the flags and the offset."""
    length = 20 + len(options)
    ip = struct.pack("!BBHHHBBH", 0x40 | length // 4, tos, length + len(data), ident, fragment, ttl,
                     protocol, 0)
    ip += packed(source) + packed(destination) + options
    return 0x0800, ip[:10] + struct.pack("!H", summed(ip)) + ip[12:] + data

def ip6(source, destination, following, data, ttl=64, tos=0):
    header = struct.pack("!IHBB", 6 << 28 | tos << 20, len(data), following, ttl)
    return 0x86dd, header + packed(source) + packed(destination) + data

def ip(source, destination, protocol, data, *, ttl=64, tos=0, ident=1, df=False, options=b"",
       before=b""):
    """`before` are headers in front of the data, of which `protocol` names the first; `options` are
    those of IPv4."""
    if ":" in source:
        return ip6(source, destination, protocol, before + data, ttl, tos)
    return ip4(source, destination, protocol, before + data, ident, DF * df, ttl, options, tos)

def message(source, destination, protocol, transport, sum_at):
    """Returns `transport` with its checksum at `sum_at`."""
    ends = packed(source) + packed(destination)
    checksum = struct.pack("!H", summed(pseudo(ends, protocol, len(transport)) + transport))
    return transport[:sum_at] + checksum + transport[sum_at + 2:]

def packet(source, destination, protocol, transport, sum_at, **header):
    transport = message(source, destination, protocol, transport, sum_at)
    return ip(source, destination, header.pop("first", protocol), transport, **header)

def segment(source, source_port, destination, destination_port, flags, seq, ack, window=65535,
            data=b"", options=b"", **header):
    offset = 0x50 + len(options) // 4 * 16
    tcp = struct.pack("!HHIIBBHHH", source_port, destination_port, seq, ack, offset, flags, window,
                      0, 0)
    return packet(source, destination, TCP, tcp + options + data, 16, **header)

def datagram(source, source_port, destination, destination_port, data, **header):
    udp = struct.pack("!HHHH", source_port, destination_port, 8 + len(data), 0)
    return packet(source, destination, UDP, udp + data, 6, **header)

def icmp(source, destination, kind, code, rest, data=b"", **header):
    """`rest` are the four bytes behind the checksum."""
    protocol = ICMP6 if ":" in source else ICMP
    return packet(source, destination, protocol, struct.pack("!BBH", kind, code, 0) + rest + data,
                  2, **header)

def echo(source, destination, ident, sequence, data, answer=False):
    """Returns an echo request, or the answer to one, without an IP header."""
    kind = (129 if answer else 128) if ":" in source else (0 if answer else 8)
    protocol = ICMP6 if ":" in source else ICMP
    header = struct.pack("!BBHHH", kind, 0, 0, ident, sequence)
    return message(source, destination, protocol, header + data, 2)

def chunk(source, source_port, destination, destination_port, tag, kind, **header):
    """SCTP with one chunk, which has no value."""
    sctp = struct.pack("!HHI", source_port, destination_port, tag)
    rest = struct.pack("!BBH", kind, 0, 4)
    sctp += crc32c(sctp + bytes(4) + rest) + rest
    return ip(source, destination, SCTP, sctp, **header)
