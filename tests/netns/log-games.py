# For the log (test-log-kinds.sh):
#
#   send IFACE LINK-ADDRESS   sends packets that no ordinary program sends: damaged ones, one with
#                             impossible flags, and ones of a host without an address
#   read LOG FIRST            from record FIRST on, prints rule, user and translated addresses of
#                             each record that has a user or a translation
import socket, struct, sys
from packets import UDP, datagram, ip4, segment
from wires import Wire

CLIENT, SERVER = "192.168.100.2", "203.0.113.4"

def packets():
    kind, packet = datagram(CLIENT, 9, SERVER, 53, b"cut off")
    yield kind, packet[:24]
    yield ip4(CLIENT, SERVER, UDP, packet[20:], options=b"\x83\1\0\0")
    yield segment(CLIENT, 9, SERVER, 53, 6, 1, 0)
    yield datagram("0.0.0.0", 68, "255.255.255.255", 67, b"discover")
    yield datagram("::", 546, "ff02::1:2", 547, b"solicit")

def send(iface, link_address):
    wire = Wire(iface, link_address)
    for sent in packets():
        wire.send(sent)

def records(data):
    """Yields the headers of a pflog file's records (struct pfloghdr of OpenBSD)."""
    at = 24
    while at < len(data):
        length = struct.unpack_from("I", data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length

def read(log, first):
    with open(log, "rb") as file:
        headers = list(records(file.read()))[int(first) - 1:]
    for header in headers:
        rule, _, user, *_ = struct.unpack_from(">iiI", header, 36)
        rewritten, family = header[61], socket.AF_INET if header[62] == 2 else socket.AF_INET6
        length = 4 if family == socket.AF_INET else 16
        ends = [socket.inet_ntop(family, header[place:place + length]) for place in (64, 80)]
        if user != 0xffffffff or rewritten:
            print(rule, "nobody" if user == 0xffffffff else user,
                  *["%s > %s" % tuple(ends)] * rewritten)

{"send": send, "read": read}[sys.argv[1]](*sys.argv[2:])
