# Sends and counts frames that no ordinary program sends, for tests:
#   send IFACE DESTINATION TYPE COUNT [SOURCE]       sends frames of that type
#   tagged IFACE DESTINATION VLAN FROM TO [pieces]   sends a datagram in a VLAN, with `pieces` in
#   two
#                                                    fragments
#   count IFACE TYPE [TO]                            prints "ready" and, when it is ended, the
#   number
#                                                    of frames that arrived, for an IPv4 address
import signal, socket, struct, sys

def link_address(text):
    return bytes(int(part, 16) for part in text.split(":"))

def wire(iface):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((iface, 0))
    return s, s.getsockname()[4]

def send(iface, destination, kind, count, source=None):
    s, own = wire(iface)
    header = link_address(destination) + (link_address(source) if source else own)
    for _ in range(int(count)):
        s.send(header + int(kind, 16).to_bytes(2, "big") + bytes(50))

def packet(source, destination, offset, data):
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), 7, offset, 64, 17, 0)
    header += socket.inet_aton(source) + socket.inet_aton(destination)
    total = sum(struct.unpack("!10H", header))
    checksum = 0xffff - (total + (total >> 16)) % 0x10000
    return header[:10] + struct.pack("!H", checksum) + header[12:] + data

def tagged(iface, destination, vlan, source, target, pieces=None):
    s, own = wire(iface)
    datagram = struct.pack("!HHHH", 1000, 7777, 2200 if pieces else 88, 0) + bytes(2192 if pieces else 80)
    parts = [(0x2000, datagram[:1400]), (175, datagram[1400:])] if pieces else [(0, datagram)]
    for offset, data in parts:
        header = link_address(destination) + own + struct.pack("!HHH", 0x8100, int(vlan), 0x0800)
        s.send(header + packet(source, target, offset, data))

def count(iface, kind, target=None):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(int(kind, 16)))
    s.bind((iface, int(kind, 16)))
    seen = 0
    def end(*_):
        print(seen, flush=True)
        sys.exit()
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while True:
        frame, (_, _, way, *_) = s.recvfrom(2000)
        meant = not target or frame[30:34] == socket.inet_aton(target)
        seen += way != socket.PACKET_OUTGOING and meant

{"send": send, "tagged": tagged, "count": count}[sys.argv[1]](*sys.argv[2:])
