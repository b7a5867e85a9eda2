# Packets with IP options and extension headers, from hosts whose packets may have options and from
# hosts whose packets may not (test-options.sh).
#
#   LAB LINK-ADDRESS    sends all packets from the client, to the server and to the gateway; prints
#                       the packets with an unexpected fate, then the number of packets and the
#                       number that the gateway must have dropped for their options
import select, socket, struct, sys, time
from packets import ICMP, ICMP6, UDP, datagram, echo, ip4, ip6, message, summed
from wires import Wire, in_order, inside, roomy

IGMP, AH = 2, 51
HOP_BY_HOP, ROUTING, DESTINATION = 0, 43, 60
# the last digit of a host's addresses, and its column in the tables below: the rules of the second
# and fourth have `allow-opts`, the rules of the last two keep no state
HOSTS = ((2, 1), (3, 0), (4, 1), (5, 0))
NET, NET6, LINK = "192.168.100.", "2001:db8:100::", "fe80::"
SERVER, SERVER6 = "192.168.10.2", "2001:db8:10::2"
GATEWAY, GATEWAY6 = "192.168.100.1", "2001:db8:100::1"
GROUPS, GROUPS6 = ("239.1.2.3",), ("ff02::2", "ff02::16")

# with `allow-opts`, without
EVERYBODY, WHO_MAY, NOBODY = (True, True), (True, False), (False, False)

def options(following, data):
    return bytes([following, (2 + len(data)) // 8 - 1]) + bytes(data)

def chain(*headers):
    """Extension headers: (type, data) each. Returns a function that puts them in front."""
    def ahead(following, data):
        for kind, content in reversed(headers):
            data = options(following, content) + data
            following = kind
        return following, data
    return ahead

def authentication(count):
    def ahead(following, data):
        for _ in range(count):
            data = bytes([following, 1]) + bytes(10) + data
            following = AH
        return following, data
    return ahead

def text(digits):
    return bytes.fromhex(digits)

ALERT, ALERT6 = text("94040000"), text("050200000100")
RECORD_ROUTE = text("072704") + bytes(37)

# name, IP options, hosts whose packets pass
FOUR = [
    ("no options", b"", EVERYBODY),
    ("record route", RECORD_ROUTE, WHO_MAY),
    ("padding alone", text("01010101"), WHO_MAY),
    ("end of list behind padding", text("01000000"), WHO_MAY),
    ("end of list alone", bytes(4), WHO_MAY),
    ("40 bytes of padding", b"\1" * 40, WHO_MAY),
    ("router alert", ALERT, WHO_MAY),
    ("an unknown option", text("03040000"), WHO_MAY),
    ("a length of 1", text("07010000"), NOBODY),
    ("a length of 0", text("03000000"), NOBODY),
    ("a length beyond the header", text("07050400"), NOBODY),
]
# name, extension headers, hosts whose packets pass
SIX = [
    ("no options", chain(), EVERYBODY),
    ("hop-by-hop padding", chain((HOP_BY_HOP, text("010400000000"))), WHO_MAY),
    ("hop-by-hop router alert", chain((HOP_BY_HOP, ALERT6)), WHO_MAY),
    ("an unknown hop-by-hop option", chain((HOP_BY_HOP, text("030001020000"))), WHO_MAY),
    ("264 bytes of hop-by-hop options", chain((HOP_BY_HOP, text("03fe") + bytes(254)
                                               + text("010400000000"))), WHO_MAY),
    ("destination padding", chain((DESTINATION, text("010400000000"))), WHO_MAY),
    ("an unknown destination option", chain((DESTINATION, text("030001020000"))), WHO_MAY),
    ("an option that is longer than its header", chain((HOP_BY_HOP, text("050a00000000"))), NOBODY),
    ("a jumbo payload", chain((HOP_BY_HOP, text("c20400010000"))), NOBODY),
    ("hop-by-hop options behind others", chain((DESTINATION, text("010400000000")),
                                               (HOP_BY_HOP, text("010400000000"))), NOBODY),
    ("a routing header", chain((ROUTING, text("020000000000"))), WHO_MAY),
    ("two routing headers", chain((ROUTING, text("020000000000")),
                                  (ROUTING, text("020000000000"))), NOBODY),
    ("a routing header of type 0", chain((ROUTING, text("000000000000"))), NOBODY),
]
QUERY, REPORT = text("1164000000000000"), text("16000000ef010203")
# name, destination, TTL, options, message, hosts whose packets pass
IGMP_GAMES = [
    ("a query with the router alert", "224.0.0.1", 1, ALERT, QUERY, EVERYBODY),
    ("a report with the router alert", "239.1.2.3", 1, ALERT, REPORT, EVERYBODY),
    ("a report without", "239.1.2.3", 1, b"", REPORT, EVERYBODY),
    ("a query from farther away", "224.0.0.1", 2, ALERT, QUERY, NOBODY),
    ("a query with another option", "224.0.0.1", 1, text("03040000"), QUERY, WHO_MAY),
    ("a query with the router alert and another option", "224.0.0.1", 1,
     ALERT + text("07030400"), QUERY, WHO_MAY),
]
ALERTED = chain((HOP_BY_HOP, ALERT6))
# name, source, destination, hop limit, headers, type, hosts whose packets pass
MLD_GAMES = [
    *((f"type {kind} with the router alert", None, to, 1, ALERTED, kind, EVERYBODY)
      for kind, to in ((130, "ff02::1"), (131, "ff02::1"), (132, "ff02::2"), (143, "ff02::16"))),
    ("a query with the alert behind padding", None, "ff02::1", 1,
     chain((HOP_BY_HOP, text("010005020000"))), 130, EVERYBODY),
    ("a query with another option", None, "ff02::1", 1,
     chain((HOP_BY_HOP, text("030001020000"))), 130, WHO_MAY),
    ("a query with the alert and another option", None, "ff02::1", 1,
     chain((HOP_BY_HOP, text("050200001e02") + text("0000010400000000"))), 130, WHO_MAY),
    ("a query from farther away", None, "ff02::1", 2, ALERTED, 130, NOBODY),
    ("a query from another network", NET6 + "3", "ff02::1", 1, ALERTED, 130, NOBODY),
    ("a report from nowhere", "::", "ff02::16", 1, ALERTED, 143, NOBODY),
]

def packets():
    """Yields (name, may pass, packet); a packet bears its number, which is its place in the list."""
    number = 0
    def next_marker():
        nonlocal number
        number += 1
        return b"game%04d" % (number - 1)
    for host, column in HOSTS:
        own, own6 = NET + str(host), NET6 + str(host)
        for name, header, passes in FOUR:
            for target in (SERVER, GATEWAY):
                request = echo(own, target, host, number, next_marker())
                yield f"{host}: {name}, echo to {target}", passes[column], \
                    ip4(own, target, ICMP, request, options=header)
        for name, header, passes in FOUR[1:]:
            _, plain = datagram(own, 4000, SERVER, 4000, next_marker())
            yield f"{host}: {name}, UDP", passes[column], ip4(own, SERVER, UDP, plain[20:], options=header)
        for name, headers, passes in SIX:
            for target in (SERVER6, GATEWAY6):
                request = echo(own6, target, host, number, next_marker())
                yield f"{host}: {name}, echo to {target}", passes[column], \
                    ip6(own6, target, *headers(ICMP6, request))
        for count, passes in ((19, EVERYBODY), (20, NOBODY)):
            for source, target, ip, protocol in ((own, SERVER, ip4, ICMP),
                                                 (own6, SERVER6, ip6, ICMP6)):
                request = echo(source, target, host, number, next_marker())
                yield f"{host}: {count} authentication headers to {target}", passes[column], \
                    ip(source, target, *authentication(count)(protocol, request))
        for name, target, ttl, header, content, passes in IGMP_GAMES:
            content += next_marker()
            content = content[:2] + struct.pack("!H", summed(content)) + content[4:]
            yield f"{host}: IGMP, {name}", passes[column], \
                ip4(own, target, IGMP, content, ttl=ttl, options=header)
        for name, source, target, ttl, headers, kind, passes in MLD_GAMES:
            source = source or LINK + str(host)
            content = message(source, target, ICMP6,
                              bytes([kind]) + bytes(23) + next_marker(), 2)
            yield f"{host}: MLD, {name}", passes[column], \
                ip6(source, target, *headers(ICMP6, content), ttl=ttl)

def listeners(lab):
    """Sockets that hear what reaches the gateway itself."""
    with inside(lab + "-gateway"):
        raw = [socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
               for protocol in (ICMP, IGMP)]
        raw6 = socket.socket(socket.AF_INET6, socket.SOCK_RAW, ICMP6)
        lan0 = socket.if_nametoindex("lan0")
    for group in GROUPS:
        membership = struct.pack("4s4si", socket.inet_aton(group), bytes(4), lan0)
        raw[1].setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    for group in GROUPS6:
        membership = socket.inet_pton(socket.AF_INET6, group) + struct.pack("i", lan0)
        raw6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
    return [roomy(opened) for opened in (*raw, raw6)]

def main(lab, link_address):
    in_order()
    with inside(lab + "-client"):
        wire = Wire("eth0", link_address)
    with inside(lab + "-server"):
        behind = Wire("eth0")
    sockets = [behind.socket, *listeners(lab)]
    sent = list(packets())
    for _, _, packet in sent:
        wire.send(packet)
    heard, fences = set(), 0
    deadline = time.monotonic() + 5
    # packets without options after all others; sent twice, because XDP sends several packets at
    # once
    for fence in (b"fence--1", b"fence--2"):
        for target in (SERVER, GATEWAY):
            wire.send(ip4(NET + "2", target, ICMP, echo(NET + "2", target, 9, 1, fence)))
        missing = {behind.socket, sockets[1]}
        while missing and time.monotonic() < deadline:
            for opened in select.select(sockets, [], [], 0.1)[0]:
                data = opened.recv(4000)
                at = data.find(b"game")
                if at >= 0 and data[at + 4:at + 8].isdigit():
                    heard.add(int(data[at + 4:at + 8]))
                if fence in data:
                    missing.discard(opened)
        if missing:
            sys.exit("no packet without options came through")
    for number, (name, passes, _) in enumerate(sent):
        if passes != (number in heard):
            print("%s: %s" % (name, "passed" if number in heard else "dropped"))
    print("%d packets, %d to drop" % (len(sent), sum(not passes for _, passes, _ in sent)))

main(*sys.argv[1:])
