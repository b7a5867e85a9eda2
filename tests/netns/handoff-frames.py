"""Frames on skipstepd's devices, as a program with CAP_NET_RAW may hear and send them.

overhear DEVICE         prints the frames that leave by the device, each as a line of hex digits
send DEVICE HOW FRAME   sends a frame, by the queue of the device (HOW is `queued`) or past that and
                        past the programs of tc (`direct`)
forge KIND IFINDEX MAC  prints a frame with the constant that skipstepd believed before it had a
                        nonce: a packet to 10.9.1.2 by an interface
raw OFFSET              sends a fragment of an IPv4 datagram to 10.9.1.1
"""

import errno
import socket
import struct
import sys

SOL_PACKET, PACKET_QDISC_BYPASS, PACKET_OUTGOING, EVERYTHING = 263, 20, 4, 3
FRAGMENT, HOLD, OUT = 1, 1, 2
MORE_FRAGMENTS = 0x2000


def packet(text, flags=0):
    """A datagram of the host's to the client, or its first fragment."""
    source, destination = socket.inet_aton("10.9.1.1"), socket.inet_aton("10.9.1.2")
    udp = struct.pack("!HHHH", 4444, 4444, 8 + len(text), 0) + text
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 7, flags, 64, 17, 0, source,
                         destination)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:] + udp


def trailer(ifindex):
    """The end of a frame with a fragment: magic, interface, where it came in, mark, priority,
    longest, order, direction, reason, link header, delay, rdomain, balance, pad."""
    return struct.pack("=IIIIIHBBBBHIHH", 0x70666672, ifindex, 0, 0, 0, 1400, FRAGMENT, OUT, 0, 14,
                       0, 0, 0, 0)


def forge(kind, ifindex, mac):
    """The frame that the data plane's would be."""
    link = bytes.fromhex(mac.replace(":", "")) + bytes(6) + b"\x08\x00"
    if kind == "pffrag0":
        return link + packet(b"forged ..", MORE_FRAGMENTS) + trailer(ifindex)
    if kind == "pfdivert0":
        label = struct.pack("=III", 0x70666469, ifindex, 0) + struct.pack("!H", 700)
        return label + struct.pack("=BBHH", OUT, 14, 0, 0) + link + packet(b"forged constant")
    label = struct.pack("=IIQIIHHBBH", 0x7066646C, ifindex, 1, 0, 0, 0, 0, HOLD, 14, 0)
    return label + link + packet(b"forged constant")


def packet_socket(device):
    socket_ = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    socket_.bind((device, EVERYTHING))
    return socket_


def overhear(device):
    listener = packet_socket(device)
    print("ready", flush=True)
    while True:
        frame, (_, _, kind, *_) = listener.recvfrom(70_000)
        if kind == PACKET_OUTGOING:
            print(frame.hex(), flush=True)


def send(device, how, frame):
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if how == "direct":
        sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    try:
        sender.sendto(bytes.fromhex(frame), (device, 0))
    except OSError as error:
        if error.errno != errno.ENOBUFS:  # the filter on tc drops the frame
            raise


def raw(offset):
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    source, destination = socket.inet_aton("10.9.1.2"), socket.inet_aton("10.9.1.1")
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 99, offset // 8 | 0x2000, 64, 17, 0, source,
                         destination)
    sender.sendto(header + b"genuine.", ("10.9.1.1", 0))


match sys.argv[1:]:
    case ["overhear", device]:
        overhear(device)
    case ["send", device, how, frame]:
        send(device, how, frame)
    case ["forge", kind, ifindex, mac]:
        print(forge(kind, int(ifindex), mac).hex())
    case ["raw", offset]:
        raw(int(offset))
