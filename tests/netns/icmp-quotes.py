# ICMP errors about packets through the gateway, from routers on both sides of it, and forged errors
# (test-icmp-quotes.sh). No kernel has the addresses of the ends.
#
#   LAB LAN-LINK-ADDRESS WAN-LINK-ADDRESS PORT
#               plays all cases, from PORT on; prints the cases with an unexpected end, then the
#               number of cases and the number of errors that must not pass
import select, struct, sys, time
from packets import ICMP, ICMP6, TCP, UDP, datagram, echo, ip4, ip6, message, segment
from wires import in_order, parts, wires_of_ends

NETS = {4: ("192.168.100.", "192.168.10."), 6: ("2001:db8:100::", "2001:db8:10::")}
CLIENT, ROUTER, STRANGER = "9", "77", "78"
# the address that the client sends to, for each kind of rule
ASKED = {"as it is": "9", "nat-to": "11", "rdr-to": "12"}
# type, code, and the four bytes after the checksum
ERRORS = {4: [(3, 1, 0), (3, 4, 1300), (11, 0, 0), (3, 3, 0)],
          6: [(1, 0, 0), (2, 0, 1300), (3, 0, 0), (1, 4, 0)]}

def header_length(ip):
    return (ip[0] & 15) * 4 if ip[0] >> 4 == 4 else 40

def ends(ip):
    """Where the addresses stand in a packet, and what a translation may change behind its header:
    ports, or the identifier of an echo."""
    length = header_length(ip)
    protocol = ip[9] if length < 40 else ip[6]
    addresses = (12, 20) if length < 40 else (8, 40)
    identifier, ports = (length + 4, length + 6), (length, length + 4)
    return addresses, identifier if protocol in (ICMP, ICMP6) else ports

def quoted(quote, seen):
    """A quote of a packet with the addresses and ports that the packet has where it was seen. All
    else, checksums too, stays; but that of UDP is cleared if the packet is translated."""
    changed = bytearray(quote)
    for start, end in ends(seen):
        changed[start:end] = seen[start:end]
    protocol, length = parts(seen)[0], header_length(seen)
    if protocol == UDP and changed != quote:
        changed[length + 6:length + 8] = b"\0\0"
    return bytes(changed)

def error(source, target, kind, code, number, quote):
    six = ":" in source
    content = message(source, target, ICMP6 if six else ICMP,
                      struct.pack("!BBHI", kind, code, 0, number) + quote, 2)
    return (ip6 if six else ip4)(source, target, ICMP6 if six else ICMP, content)

class Player:
    def __init__(self, lab, lan, wan):
        self.wires = wires_of_ends(lab, lan, wan)
        self.number = 0

    def through(self, side, packet, family):
        """Sends a packet on one side, and returns those that come out on the other before datagrams
        that are sent behind it: two, as XDP sends several packets at once."""
        self.wires[side].send(packet)
        came = []
        own, other = (NETS[family][at] + CLIENT for at in (side, 1 - side))
        for _ in range(2):
            self.number += 1
            marker = struct.pack("!I", self.number)
            self.wires[side].send(datagram(own, 9, other, 9, marker))
            deadline = time.monotonic() + 5
            while True:
                if time.monotonic() > deadline:
                    sys.exit("a datagram is lost")
                select.select([self.wires[1 - side].socket], [], [], 0.2)
                try:
                    ip = self.wires[1 - side].packet()
                except BlockingIOError:
                    continue
                protocol, source, _, transport = parts(ip)
                if protocol == UDP and transport[:4] == b"\0\x09\0\x09":
                    if transport[8:12] == marker:
                        break
                elif source.startswith(NETS[family][0]) or source.startswith(NETS[family][1]):
                    if protocol != ICMP6 or transport[0] not in range(133, 138):
                        came.append(ip)
        return came

    def error(self, side, family, source, target, kind, code, number, quote):
        """Returns the errors that come out, each as its source, its target and what it says."""
        packet = error(source, target, kind, code, number, quote)
        told = []
        for ip in self.through(side, packet, family):
            protocol, source, target, content = parts(ip)
            right = content == message(source, target, protocol, content[:2] + b"\0\0" + content[4:],
                                       2)
            told.append((source, target, right, *struct.unpack("!BBxxI", content[:8]), content[8:]))
        return told

def packet(protocol, source, port, target, answer=False):
    """One of the client's, or the answer to it."""
    if protocol == UDP:
        return datagram(source, port, target, 53, b"question") if not answer else \
            datagram(source, 53, target, port, b"the answer")
    if protocol == TCP:
        return segment(source, port, target, 80, 2, 1000, 0) if not answer else \
            segment(source, 80, target, port, 18, 5000, 1001)
    six = ":" in source
    return (ip6 if six else ip4)(source, target, ICMP6 if six else ICMP,
                                 echo(source, target, port, 1, b"echo data", answer))

def play(player, family, protocol, how, port):
    """Yields (what, expected, seen) of each error about one conversation."""
    inner, outer = NETS[family]
    client, asked = inner + CLIENT, outer + ASKED[how]
    _, sent = packet(protocol, client, port, asked)
    came = player.through(0, (0x0800 if family == 4 else 0x86dd, sent), family)
    if len(came) != 1:
        yield "the packet", 1, len(came)
        return
    [came] = came
    _, source, target, transport = parts(came)
    router = outer + ROUTER
    length = header_length(came) + 8 if family == 4 else len(came)
    # an error from a redirected host comes from the address that the client sent to
    told = asked if how == "rdr-to" else router
    for kind, code, number in ERRORS[family]:
        yield f"error {kind} {code} from outside", \
            [(told, client, True, kind, code, number, quoted(came[:length], sent))], \
            player.error(1, family, router, source, kind, code, number, came[:length])
    kind, code, number = ERRORS[family][0]
    # an error to another host, about another packet, about an error, about a later fragment
    other = bytearray(came)
    other[ends(came)[1][0] + 1] ^= 1
    yield "about another packet", [], \
        player.error(1, family, router, source, kind, code, number, bytes(other)[:length])
    yield "to somebody else", [], \
        player.error(1, family, router, outer + STRANGER, kind, code, number, came[:length])
    _, about = error(source, router, kind, code, number, came[:length])
    yield "about an error", [], \
        player.error(1, family, router, source, kind, code, number, about)
    if family == 4:
        later = came[:6] + b"\0\1" + came[8:length]
        yield "about a later fragment", [], \
            player.error(1, family, router, source, kind, code, number, later)
    if protocol == TCP:
        yield "about a segment that was never sent", [], \
            player.error(1, family, router, source, kind, code, number,
                         came[:header_length(came) + 4] + b"\xff" + came[header_length(came) + 5:])
    # the answer, and an error from inside about the answer
    port, = struct.unpack("!H", came[slice(*ends(came)[1])][:2])
    _, answer = packet(protocol, target, port, source, True)
    seen = player.through(1, (0x0800 if family == 4 else 0x86dd, answer), family)
    if len(seen) != 1:
        yield "the answer", 1, len(seen)
        return
    [seen] = seen
    router = inner + ROUTER
    told = source if how == "nat-to" else router
    length = header_length(seen) + 8 if family == 4 else len(seen)
    yield "error from inside", \
        [(told, target, True, kind, code, number, quoted(seen[:length], answer))], \
        player.error(0, family, router, parts(seen)[1], kind, code, number, seen[:length])

def main(lab, lan, wan, port):
    in_order()
    player = Player(lab, lan, wan)
    played = silent = 0
    for family in NETS:
        for protocol in (UDP, TCP, ICMP):
            for how in ASKED:
                port = int(port) + 1
                for what, expected, seen in play(player, family, protocol, how, port):
                    played += 1
                    silent += not expected
                    if expected != seen:
                        print(f"IPv{family}, protocol {protocol}, {how}, {what}: {seen} instead of "
                              f"{expected}")
    print("%d cases, %d to drop" % (played, silent))

main(*sys.argv[1:])
