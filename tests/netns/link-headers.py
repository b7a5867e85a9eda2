# Sends datagrams behind unusual link headers, and reports the datagrams that arrive at a socket.
#
#   send IFACE LINK-ADDRESS FROM TO [VLAN]
#                                     sends a datagram from FROM to port 7777 of TO behind each link
#                                     header of the list below; with VLAN only behind headers whose
#                                     outermost tag is 8100, with this identifier; prints the number
#                                     of frames
#   listen                            prints "ready"; after SIGTERM, the names of the link headers
#                                     of the datagrams that arrived, and "end"
#   names                             prints the names of all link headers
#
# The name of a header is the list of its tags, outermost first ("8100-88a8"), or "plain", or the
# tags followed by "snap" for an 802.2 LLC/SNAP header. All other tags have VLAN identifier 0.
import errno, itertools, re, select, signal, socket, struct, sys
from packets import datagram

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

def frame(addresses, tags, snap, source, destination, vlan):
    data = ("@" + name(tags, snap)).encode()
    kind, payload = datagram(source, 1000, destination, 7777, data)
    if snap:
        payload = bytes.fromhex("aaaa03000000") + struct.pack("!H", kind) + payload
        kind = len(payload)
    for place, tag in reversed(list(enumerate(tags))):
        payload = struct.pack("!HH", 0 if place else vlan, kind) + payload
        kind = tag
    return addresses + struct.pack("!H", kind) + payload

def send(iface, destination, source, target, vlan=0):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind((iface, 0))
    addresses = bytes.fromhex(destination.replace(":", "")) + wire.getsockname()[4]
    sent = 0
    for tags, snap in headers():
        if vlan and tags[:1] != (0x8100,):
            continue
        try:
            wire.send(frame(addresses, tags, snap, source, target, int(vlan)))
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
    # no socket receives a packet behind an LLC/SNAP header, so the test looks for such frames
    # itself
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_802_2))
    print("ready", flush=True)
    while True:
        for ready in select.select([datagrams, frames], [], [])[0]:
            heard.update(re.findall("@([0-9a-z-]+)$", ready.recv(2000).decode("latin1")))

def names():
    print("\n".join(name(*header) for header in headers()))

{"send": send, "listen": listen, "names": names}[sys.argv[1]](*sys.argv[2:])
