# Sockets on the wires of several hosts in one program, so that a test sends as one host, receives
# as another, and knows the order of events.
import contextlib, ctypes, os, socket, struct

ETH_P_ALL = 3
CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33

@contextlib.contextmanager
def inside(host):
    """Sockets that are opened in this block are those of the network namespace `host`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own, open("/run/netns/" + host) as other:
        if libc.setns(other.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), host)
        try:
            yield
        finally:
            libc.setns(own.fileno(), CLONE_NEWNET)

def in_order():
    """Packets of this program arrive in the order in which it sends them: they go by one CPU."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

def roomy(opened):
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)
    return opened

class Wire:
    """An interface of the host that the program runs on, or is inside of."""

    def __init__(self, iface, link_address=None):
        self.socket = roomy(socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                          socket.htons(ETH_P_ALL)))
        self.socket.bind((iface, ETH_P_ALL))
        own = self.socket.getsockname()[4]
        self.addresses = link_address and bytes.fromhex(link_address.replace(":", "")) + own

    def send(self, kind_and_packet, padding=b""):
        kind, payload = kind_and_packet
        self.socket.send(self.addresses + struct.pack("!H", kind) + payload + padding)

    def packet(self):
        """Returns the next IP packet to come in, and raises what the socket raises if none does."""
        while True:
            frame, (_, _, way, *_) = self.socket.recvfrom(70000)
            kind, = struct.unpack("!H", frame[12:14])
            if way != socket.PACKET_OUTGOING and kind in (0x0800, 0x86dd):
                return frame[14:]

    def receive(self):
        """Returns (protocol, source, destination, transport bytes) of the next packet to come in."""
        return parts(self.packet())

def wires_of_ends(lab, client_link, server_link):
    """Returns the wires of client and server, which do not block. The arguments are the link
    addresses that they send to."""
    wires = []
    for host, link_address in (("client", client_link), ("server", server_link)):
        with inside(f"{lab}-{host}"):
            wires.append(Wire("eth0", link_address))
        wires[-1].socket.setblocking(False)
    return wires

def parts(ip):
    """Returns (protocol, source, destination, transport bytes) of a packet."""
    if ip[0] >> 4 == 4:
        ends = [socket.inet_ntop(socket.AF_INET, ip[at:at + 4]) for at in (12, 16)]
        return ip[9], *ends, ip[(ip[0] & 15) * 4:]
    ends = [socket.inet_ntop(socket.AF_INET6, ip[at:at + 16]) for at in (8, 24)]
    return ip[6], *ends, ip[40:]
