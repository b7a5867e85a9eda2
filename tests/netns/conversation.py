# Plays conversations across a gateway: hosts send packets, and every host must receive exactly the
# packets that the conversation names. Reads a conversation on standard input and prints a line for
# each step: name, expected packets, seen packets, separated by tabs.
#
#   conversation.py LAB HOST=IFACE/LINK-ADDRESS... NAME=ADDRESS...
#
# A HOST sends frames on its interface IFACE to the LINK-ADDRESS, and hears the frames that arrive
# on that interface.
#
#   # TEXT                     names the steps that follow
#   HOST sends [N times] PACKET
#   HOST hears [N times] PACKET            of the packets that the step before sent
#
# A step with `sends` ends when all of its packets were heard and a last datagram, which the sender
# sends after them, has crossed the gateway. The rules must pass UDP between ports 9. A PACKET is
# written in this order:
#
#   FROM TO [ttl N] [id N] [tos 0xN] [df] [options HEX] [ah N] [hop-by-hop HEX]
#       udp PORT PORT [len N]
#       tcp PORT PORT FLAGS SEQUENCE ACKNOWLEDGMENT [nop] [mss N] [len N]
#       icmp TYPE CODE ID SEQUENCE [len N]           of either family
#       icmp TYPE CODE [mtu N] about PACKET          an error
#       sctp PORT PORT TAG CHUNK
#       igmp TYPE GROUP
#
# The ttl and id of heard packets are compared only if the conversation names them. A quoted packet
# is compared only in its addresses, protocol, ports, type and id. `any` matches any word. $NAME
# matches any word the first time, and the same word from then on. !WORD and !$NAME match any other
# word. NAME stands for the ADDRESS.
import select, socket, struct, sys, time
import packets
from packets import AH, ICMP, ICMP6, IGMP, SCTP, TCP, UDP
from wires import Wire, in_order, inside

FLAGS = "FSRPAUEW"
ERRORS = {4: (3, 4, 5, 11, 12), 6: (1, 2, 3, 4)}
HOP_BY_HOP = 0
# neighbour discovery, routers and groups, which hosts send at any time
NOISE = range(130, 138), (143,)

class Line:
    """The words of a packet."""
    def __init__(self, words):
        self.words = list(words)

    def next(self):
        return self.words.pop(0)

    def number(self):
        return int(self.next(), 0)

    def option(self, name):
        """True, and the word is taken, if it is the next one."""
        return self.words[:1] == [name] and bool(self.next())

    def value(self, name, default):
        return self.number() if self.option(name) else default

def build(words):
    """Returns the EtherType and the packet."""
    line = Line(words)
    ends = line.next(), line.next()
    six = ":" in ends[0]
    header = {"ttl": line.value("ttl", 64), "ident": line.value("id", 1),
              "tos": line.value("tos", 0), "df": line.option("df")}
    if line.option("options"):
        header["options"] = bytes.fromhex(line.next())
    count = line.value("ah", 0)
    hops = bytes.fromhex(line.next()) if line.option("hop-by-hop") else b""
    protocol = line.next()
    number = {"udp": UDP, "tcp": TCP, "icmp": ICMP6 if six else ICMP, "sctp": SCTP,
              "igmp": IGMP}[protocol]
    if count:
        nexts = [AH] * (count - 1) + [number]
        header["before"] = b"".join(struct.pack("!BBHII", following, 1, 0, 0, 0)
                                    for following in nexts)
        header["first"] = AH
    if hops:
        header["before"] = bytes([number, (2 + len(hops)) // 8 - 1]) + hops
        header["first"] = HOP_BY_HOP
    if protocol == "udp":
        ports = line.number(), line.number()
        return packets.datagram(ends[0], ports[0], ends[1], ports[1],
                                bytes(line.value("len", 0)), **header)
    if protocol == "tcp":
        ports = line.number(), line.number()
        flags = sum(1 << FLAGS.index(name) for name in line.next()) if line.words else 16
        numbers = (line.number(), line.number()) if line.words else (0, 0)
        nop = line.option("nop")
        mss = line.value("mss", 0)
        options = b"\1" * nop + (struct.pack("!BBH", 2, 4, mss) if mss else b"")
        return packets.segment(ends[0], ports[0], ends[1], ports[1], flags, *numbers,
                               options=options + b"\1" * (-len(options) % 4),
                               data=bytes(line.value("len", 0)), **header)
    if protocol == "icmp":
        kind, code = line.number(), line.number()
        if kind in ERRORS[6 if six else 4]:
            mtu = struct.pack("!I", line.value("mtu", 0))
            line.next()
            return packets.icmp(*ends, kind, code, mtu, build(line.words)[1], **header)
        rest = struct.pack("!HH", line.number(), line.number() if line.words else 0)
        return packets.icmp(*ends, kind, code, rest, bytes(line.value("len", 0)), **header)
    if protocol == "sctp":
        ports = line.number(), line.number()
        tag, kind = (line.number(), line.number()) if line.words else (0, 1)
        return packets.chunk(ends[0], ports[0], ends[1], ports[1], tag, kind, **header)
    kind = line.number()
    message = struct.pack("!BBH", kind, 0, 0) + packets.packed(line.next())
    return packets.packet(*ends, IGMP, message, 2, **header)

def option(count):
    return ["len", str(count)] if count > 0 else []

def tcp(data, quoted):
    source, destination = struct.unpack("!HH", data[:4])
    words = ["tcp", str(source), str(destination)]
    if quoted:
        return words
    sequence, acknowledgment, offset, flags = struct.unpack("!IIBB", data[4:14])
    words.append("".join(name for bit, name in enumerate(FLAGS) if flags >> bit & 1))
    words += [str(sequence), str(acknowledgment)]
    options, length = data[20:(offset >> 4) * 4], (offset >> 4) * 4
    if options[:1] == b"\1":
        words.append("nop")
        options = options[1:]
    if options[:2] == b"\2\4":
        words += ["mss", str(struct.unpack("!H", options[2:4])[0])]
    return words + option(len(data) - length)

def icmp(data, six, quoted):
    kind, code = data[:2]
    words = ["icmp", str(kind), str(code)]
    if kind in ERRORS[6 if six else 4]:
        mtu, = struct.unpack("!I", data[4:8])
        if mtu:
            words += ["mtu", str(mtu)]
        return words if quoted else words + ["about"] + describe(data[8:], (), True)
    numbers = struct.unpack("!HH", data[4:8])
    return words + [str(numbers[0])] + \
        ([] if quoted else [str(numbers[1])] + option(len(data) - 8))

def transport(protocol, data, six, quoted):
    if protocol == UDP:
        source, destination, length = struct.unpack("!HHH", data[:6])
        return ["udp", str(source), str(destination)] + ([] if quoted else option(length - 8))
    if protocol == TCP:
        return tcp(data, quoted)
    if protocol == (ICMP6 if six else ICMP):
        return icmp(data, six, quoted)
    if protocol == SCTP:
        words = ["sctp"] + [str(port) for port in struct.unpack("!HH", data[:4])]
        return words if quoted else \
            words + [str(struct.unpack("!I", data[4:8])[0]), str(data[12])]
    if protocol == IGMP and len(data) == 8:
        return ["igmp", str(data[0]), socket.inet_ntoa(data[4:8])]
    return ["proto", str(protocol)]

def whole(protocol, ends, data):
    """True if the checksum is right."""
    if protocol == SCTP:
        return packets.crc32c(data[:8] + bytes(4) + data[12:]) == data[8:12]
    if protocol not in (UDP, TCP, ICMP, ICMP6, IGMP):
        return True
    return packets.summed(packets.pseudo(ends, protocol, len(data)) + data) == 0

def describe(ip, named, quoted=False):
    """Returns the words of a packet; of ttl and id those that are named."""
    six = ip[0] >> 4 == 6
    bad = False
    if six:
        first, length = struct.unpack("!IH", ip[:6])
        protocol, ttl, tos, ends = ip[6], ip[7], first >> 20 & 255, ip[8:40]
        data, ident, df, options = ip[40:40 + length], 0, False, b""
    else:
        header = (ip[0] & 15) * 4
        length, ident, fragment = struct.unpack("!HHH", ip[2:8])
        protocol, ttl, tos, ends, data = ip[9], ip[8], ip[1], ip[12:20], ip[header:length]
        df, options = bool(fragment & 0x4000), ip[20:header]
        bad = packets.summed(ip[:header]) != 0
    family = socket.AF_INET6 if six else socket.AF_INET
    half = len(ends) // 2
    words = [socket.inet_ntop(family, ends[:half]), socket.inet_ntop(family, ends[half:])]
    if "ttl" in named:
        words += ["ttl", str(ttl)]
    if "id" in named:
        words += ["id", str(ident)]
    if not quoted and tos:
        words += ["tos", "0x%02x" % tos]
    if not quoted and df:
        words.append("df")
    if options:
        words += ["options", options.hex()]
    count = 0
    while protocol == AH and len(data) >= 12:
        protocol, data, count = data[0], data[(data[1] + 2) * 4:], count + 1
    if count:
        words += ["ah", str(count)]
    if six and protocol == HOP_BY_HOP:
        length = (data[1] + 1) * 8
        words += ["hop-by-hop", data[2:length].hex()]
        protocol, data = data[0], data[length:]
    if not quoted and not whole(protocol, ends, data):
        bad = True
    return words + transport(protocol, data, six, quoted) + ["bad checksum"] * (bad and not quoted)

class Host:
    def __init__(self, lab, name, iface, link_address):
        self.name = name
        with inside("%s-%s" % (lab, name)):
            self.wire = Wire(iface, link_address)
        self.wire.socket.setblocking(False)

    def send(self, words):
        self.wire.send(build(words))

    def receive(self):
        """Returns the next IP packet that came in, or None."""
        try:
            return self.wire.packet()
        except BlockingIOError:
            return None

class Conversation:
    def __init__(self, lab, definitions):
        self.hosts, self.names, self.bound = {}, {}, {}
        self.marks = 0
        for definition in definitions:
            name, value = definition.split("=")
            if "/" in value:
                self.hosts[name] = Host(lab, name, *value.split("/"))
            else:
                self.names[name] = value

    def address(self, word):
        return self.names.get(word, word)

    def mark(self, sender):
        """The last datagram of a step: between the first two hosts, of IPv4."""
        self.marks += 1
        ends = ["c4", "s4"] if sender == "client" else ["s4", "c4"]
        return [self.address(end) for end in ends] + ["udp", "9", "9", "len", str(self.marks)]

    def matches(self, expected, seen):
        if len(expected) != len(seen):
            return False
        bound = dict(self.bound)
        for want, have in zip(expected, seen):
            if want.startswith("$"):
                if bound.setdefault(want, have) != have:
                    return False
            elif want.startswith("!"):
                if bound.get(want[1:], want[1:]) == have:
                    return False
            elif want not in (have, "any"):
                return False
        self.bound = bound
        return True

    def step(self, sender, sent, expected):
        """Sends the packets; returns what was expected and what was seen."""
        host = self.hosts[sender]
        for words in sent:
            words = [self.bound.get(word, word) for word in words]
            unknown = [word for word in words if word.startswith("$")]
            if unknown:
                return self.text(expected), "no packet that has said %s" % unknown[0]
            host.send(words)
        mark = self.mark(sender)
        host.send(mark)
        named = {"ttl", "id"} & {word for _, words in expected for word in words}
        left, seen, marked = list(expected), [], False
        deadline = time.monotonic() + 5
        while (left or not marked) and time.monotonic() < deadline:
            ears = {host.wire.socket: host for host in self.hosts.values()}
            for opened in select.select(ears, [], [], 0.05)[0]:
                ear = ears[opened]
                ip = ear.receive()
                if ip is None or self.is_noise(ip):
                    continue
                words = describe(ip, named)
                if words[-5:] == mark[-5:]:
                    marked = True
                    continue
                entry = next((e for e in left if e[0] == ear.name and self.matches(e[1], words)),
                             None)
                if entry:
                    left.remove(entry)
                    words = entry[1]
                seen.append((ear.name, words))
        if not marked:
            seen.append((sender, ["no", "mark"]))
        return self.text(expected), self.text(seen)

    @staticmethod
    def is_noise(ip):
        if ip[0] >> 4 == 4:
            return False
        data = ip[40:]
        protocol = ip[6]
        if protocol == HOP_BY_HOP:
            protocol, data = data[0], data[(data[1] + 1) * 8:]
        return protocol == ICMP6 and any(data[0] in kinds for kinds in NOISE)

    def text(self, heard):
        counts = {}
        for name, words in heard:
            back = {address: short for short, address in self.names.items()}
            line = "%s hears %%s%s" % (name, " ".join(back.get(word, word) for word in words))
            counts[line] = counts.get(line, 0) + 1
        lines = [line % ("%d times " % count if count > 1 else "")
                 for line, count in sorted(counts.items())]
        return "; ".join(lines) or "nothing"

    def play(self, lines):
        title, step = "", None
        def finish():
            if step:
                print("\t".join((title,) + self.step(*step)), flush=True)
        for line in lines:
            words = line.split()
            if not words:
                continue
            if words[0] == "#":
                finish()
                step, title = None, line[1:].strip()
                continue
            times = int(words[2]) if words[3:4] == ["times"] else 1
            packet = [self.address(word) for word in words[4 if words[3:4] == ["times"] else 2:]]
            if words[1] == "sends":
                finish()
                step = (words[0], [packet] * times, [])
            else:
                step[2].extend([(words[0], packet)] * times)
        finish()

in_order()
Conversation(sys.argv[1], sys.argv[2:]).play(sys.stdin)
