# Datagrams behind unusual link headers, and a socket that reports the datagrams that arrive.
#
#   send IFACE LINK-ADDRESS FROM TO   sends a datagram from FROM to port 7777 of TO behind each link
#                                     header of the list below; prints how many frames were sent
#   listen                            prints "ready"; after SIGTERM, prints the names of the link
#                                     headers that datagrams arrived behind, and "end"
#   names                             prints the names of all link headers
#
# The name of a header is the list of its tags, outermost first ("8100-88a8"), or "plain", or the
# tags followed by "snap" for an 802.2 LLC/SNAP header. All tags have VLAN identifier 0.
import errno, itertools, re, select, signal, socket, struct, sys

ETH_P_802_2 = 4
TPIDS = (0x8100, 0x88a8, 0x9100)

def mixes():
    """Every mix of up to three tags, and mixes of four to eight tags."""
    for count in range(4):
        yield from itertools.product(TPIDS, repeat=count)
    for count in range(4, 9):
        for tpid in TPIDS:
            yield (tpid,) * count
        for first in range(3):
            yield tuple(TPIDS[(first + i) % 3] for i in range(count))
        yield (0x8100,) * (count - 1) + (0x88a8,)
        yield (0x88a8,) * (count - 1) + (0x8100,)

def headers():
    for tags in mixes():
        yield tags, False
    for tags in ((), (0x8100,), (0x88a8, 0x8100), (0x8100,) * 4):
        yield tags, True

def name(tags, snap):
    words = ["%04x" % tag for tag in tags] + ["snap"] * snap
    return "-".join(words) or "plain"

def summed(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def packet(source, destination, data):
    six = ":" in source
    ends = [socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, end)
            for end in (source, destination)]
    length = 8 + len(data)
    udp = struct.pack("!HHHH", 1000, 7777, length, 0) + data
    pseudo = ends[0] + ends[1] + struct.pack("!HH", 17, length)
    udp = udp[:6] + struct.pack("!H", summed(pseudo + udp)) + data
    if six:
        return 0x86dd, struct.pack("!IHBB", 6 << 28, length, 17, 64) + ends[0] + ends[1] + udp
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0, 64, 17, 0) + ends[0] + ends[1]
    return 0x0800, ip[:10] + struct.pack("!H", summed(ip)) + ip[12:] + udp

def frame(addresses, tags, snap, source, destination):
    kind, payload = packet(source, destination, ("@" + name(tags, snap)).encode())
    if snap:
        payload = bytes.fromhex("aaaa03000000") + struct.pack("!H", kind) + payload
        kind = len(payload)
    for tag in reversed(tags):
        payload = struct.pack("!HH", 0, kind) + payload
        kind = tag
    return addresses + struct.pack("!H", kind) + payload

def send(iface, destination, source, target):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind((iface, 0))
    addresses = bytes.fromhex(destination.replace(":", "")) + wire.getsockname()[4]
    sent = 0
    for tags, snap in headers():
        try:
            wire.send(frame(addresses, tags, snap, source, target))
        except OSError as error:
            if error.errno != errno.ENOBUFS: # so the sender hears that the filter drops the frame
                raise
        sent += 1
    print(sent)

def listen():
    heard = set()
    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(" ".join(sorted(heard)) + "\nend", flush=True)
        sys.exit()
    signal.signal(signal.SIGTERM, end)
    datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    datagrams.bind(("::", 7777))
    # no socket gets a packet behind an LLC/SNAP header: such frames are looked at themselves
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_802_2))
    print("ready", flush=True)
    while True:
        for ready in select.select([datagrams, frames], [], [])[0]:
            heard.update(re.findall("@([0-9a-z-]+)$", ready.recv(2000).decode("latin1")))

def names():
    print("\n".join(name(*header) for header in headers()))

{"send": send, "listen": listen, "names": names}[sys.argv[1]](*sys.argv[2:])
