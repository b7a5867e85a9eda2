# Fragmented datagrams that the client sends to a host behind the gateway and to the gateway, and
# their answers (test-fragment-games.sh).
#
#   play LAB LINK-ADDRESS NUMBER   plays all cases between LAB's hosts; identifications begin at
#                                  NUMBER. Prints each case with an unexpected end, then the number
#                                  of cases
#   counted                        prints the number of their fragments that count as `fragment`
#   late LAB LINK-ADDRESS NUMBER SECONDS
#                                  sends a datagram to each target, with a pause before its last
#                                  fragment; prints the number of answers
#
# A fragment is written as the number of its first block of eight bytes, a letter for each block,
# and a + if more fragments follow: "0aab+" has the blocks 0, 1 and 2, of which the last differs.
# "a*60" is 60 times a, and "-3" removes three bytes from the end. Block 0 is the header of the echo
# request or of the datagram. A case succeeds if the answer has the letters of the case, or if a
# case without letters gets no answer. Blocks of z do not change the checksum.
import random, re, select, socket, struct, sys, time
from packets import ICMP, ICMP6, UDP, echo, ip4, ip6, message
from wires import Wire, inside, roomy

CLIENT = {4: "192.168.100.2", 6: "2001:db8:100::2"}
FRIEND = {4: "192.168.100.3", 6: "2001:db8:100::3"}  # may have options
TARGETS = {4: ("192.168.10.2", "192.168.100.1"), 6: ("2001:db8:10::2", "2001:db8:100::1")}
HOP_BY_HOP, FRAGMENT, DESTINATION = 0, 44, 60
PADDING6 = bytes.fromhex("010400000000")
NO_OPERATION = bytes.fromhex("01010101")

def options(following, data=PADDING6):
    return bytes([following, (2 + len(data)) // 8 - 1]) + data

class Piece:
    def __init__(self, text, padding=0, ahead=(), ahead4=b"", proto=None, ident=0, friend=False,
                 flags=0, behind=b""):
        """`ahead` are the IPv6 headers in front, `ahead4` the IPv4 options, `proto` another protocol
        than the datagram's, `ident` is added to the identification, `friend` is another source,
        `behind` a header between the fragment header and the data."""
        first, letters, cut, more = re.fullmatch(r"(\d+)([a-z*0-9]*?)(?:-(\d))?(\+?)", text).groups()
        self.first, self.more = int(first), bool(more)
        self.letters = re.sub(r"([a-z])\*(\d+)", lambda m: m[1] * int(m[2]), letters)
        self.cut = int(cut or 0)
        self.padding, self.ahead, self.ahead4, self.proto = padding, ahead, ahead4, proto
        self.ident, self.friend, self.flags, self.behind = ident, friend, flags, behind

def pieces(*parts):
    return [part if isinstance(part, Piece) else Piece(part) for part in parts]

class Case:
    def __init__(self, name, parts, answer="", counted=0, port=None, friend=False, times=1,
                 leading=b""):
        """`answer` are the letters of the answer, `counted` the fragments that count as `fragment`,
        `leading` an IPv6 header of options in front of the echo request, within the fragments."""
        self.name, self.pieces = name, pieces(*parts)
        self.counted, self.port, self.friend = counted, port, friend
        self.times = times if answer else 0
        self.leading = leading
        self.answer = re.sub(r"([a-z])\*(\d+)", lambda m: m[1] * int(m[2]), answer.split("-")[0])
        self.cut = int(answer.partition("-")[2] or 0)
        if not answer:
            self.answer, self.cut = self.agreed()

    def agreed(self):
        """Any way to put these fragments together makes a datagram that would be answered."""
        letters = {}
        for piece in self.pieces:
            for at, letter in enumerate(piece.letters, piece.first):
                assert letters.setdefault(at, letter) == letter, self.name
        cut = next((piece.cut for piece in self.pieces if not piece.more), 0)
        if max(letters) > 8000:
            letters = {at: letter for at, letter in letters.items() if at < 8000}
        return "".join(letters.get(at, "z") for at in range(max(letters) + 1)), cut

def permutations(text):
    for order in ("012", "021", "102", "120", "201", "210"):
        yield Case("order " + order, [text.split()[int(at)] for at in order], "aabbc")

def shuffled(parts, seed=7):
    random.Random(seed).shuffle(parts)
    return parts

def cut_up(blocks, size, cut=0):
    """A datagram of that many blocks, in fragments of `size` blocks each."""
    return ["%da*%d%s" % (at, min(size, blocks - at),
                          "+" if at + size < blocks else "-%d" % cut if cut else "")
            for at in range(0, blocks, size)]

BOTH = [
    *permutations("0aa+ 2bb+ 4c"),
    Case("two datagrams, interleaved", ["0aa+", Piece("0aa+", ident=1), "2c", Piece("2c", ident=1)],
         "aac", times=2),
    Case("another identification", ["0aa+", Piece("2c", ident=1)]),
    Case("another sender", ["0aa+", Piece("2c", friend=True)]),
    Case("split behind the UDP header", ["0a+", "1bc"], "abc", port=7),
    Case("split in the data of UDP", ["0ab+", "2c"], "abc", port=7),
    Case("split in the data of UDP, to a port that is blocked", ["0ab+", "2c"], port=8),
    Case("split behind the UDP header, the end first, to a port that is blocked", ["1bc", "0a+"],
         port=8),
    Case("an empty second, more to follow", ["0aa+", "2+", "2c"], "aac", 1),
    Case("an empty second, the last", ["0aa+", "2", "2c"], "aac", 1),
    Case("no whole number of blocks, but more to follow", ["0aa+", "2b-1+", "2b+", "3c"], "aabc", 1),
    Case("one that ends behind the longest packet", ["0aa+", "8191c", "2c"], "aac", 1),
    Case("the same with more to follow", ["0aa+", "8191c+", "2c"], "aac", 1),
    Case("padding of the frame is no data",
         [Piece("0aa+", padding=8), Piece("2bb+", padding=1), Piece("4c-3", padding=20)], "aabbc-3"),
    Case("64 fragments in 4096 bytes", cut_up(64, 1), "a*64"),
    Case("65 fragments in 4096 bytes", cut_up(65, 1), "", 1),
    Case("64 in each 4096 bytes, in any order", shuffled(cut_up(512 + 64, 8)), "a*576"),
    Case("a long answer is fragmented", cut_up(300, 8), "a*300"),
]

# fragments of 64 bytes with the first 4096 bytes but 64
BEFORE = cut_up(504, 8)[:-1] + ["496a*8+"]
# 64 fragments of the next 4096
BEHIND = cut_up(640, 2)[256:]

FOUR = [
    Case("an empty first", ["0+", "0aa+", "2c"], "aac", 1),
    Case("the head of the new is cut", ["0aa+", "1xb+", "3c"], "aabc"),
    Case("the head of the new, the last, is cut", ["0aa+", "1xc"], "aac"),
    Case("the head of the old is cut", ["1xb+", "0aa+", "3c"], "aabc"),
    Case("the head of the old, the last, is cut", ["2xc", "0aaa+"], "aaac"),
    Case("a new one that is there already is dropped", ["0aaa+", "1x+", "3c"], "aaac"),
    Case("a duplicate of the first", ["0aa+", "0ax+", "2c"], "aac"),
    Case("a duplicate of the last", ["2c", "2x", "0aa+"], "aac"),
    Case("an old one that is covered is replaced", ["1x+", "0aaa+", "3c"], "aaac"),
    Case("two old ones that are covered are replaced", ["1x+", "2x+", "3c", "0aaa+"], "aaac"),
    Case("the new loses its head and cuts another's", ["0aa+", "3xc", "1xbb+"], "aabbc"),
    Case("the new lies over the tail of one and another whole", ["0aa+", "2x+", "4c", "1xbb+"],
         "aabbc"),
    Case("the same start, and longer", ["0aa+", "2b+", "2xb+", "4c"], "aabbc"),
    Case("the same start, and shorter", ["0aa+", "2bb+", "2x+", "4c"], "aabbc"),
    Case("a last one behind the end", ["2c", "2xx", "0aa+"], "aac", 1),
    Case("a last one in the middle", ["3c", "1x", "0aaa+"], "aaac", 1),
    Case("a last one before the end", ["3c", "1xx", "0aaa+"], "aaac", 1),
    Case("a last one before what is there", ["0aa+", "3c+", "2x", "2b+", "4d"], "aabcd", 1),
    Case("one with more to follow up to the end", ["2c", "1xx+", "0aa+"], "aac", 1),
    Case("one with more to follow behind the end", ["2c", "3x+", "0aa+"], "aac", 1),
    Case("what is cut goes on behind 4096 bytes",
         BEFORE + ["511xbc", "504a*8+"], "a*512bc"),
    Case("what is cut finds 63 fragments behind 4096 bytes",
         BEFORE + BEHIND[1:] + ["511xaa+", "504a*8+"], "a*640"),
    Case("what is cut finds 64 fragments behind 4096 bytes",
         BEFORE + BEHIND + ["511aa+", "504a*8+"], "", 1),
    Case("options of the first", [Piece("0aa+", ahead4=NO_OPERATION), "2c"]),
    Case("options of the first, where they may be",
         [Piece("0aa+", ahead4=NO_OPERATION), "2c"], "aac", friend=True),
    Case("options of the second", ["0aa+", Piece("2c", ahead4=NO_OPERATION)], "aac"),
    Case("fragments that ask not to be", [Piece("0aa+", flags=0x4000), Piece("2c", flags=0x4000)],
         "", 2),
    Case("another protocol", ["0aa+", Piece("2c", proto=UDP)]),
    Case("the longest datagram, in any order", shuffled(cut_up(8190, 160, 5)), "a*8190-5"),
]

def six(header, following=ICMP6):
    """A header of options in front of the fragment header."""
    return dict(ahead=((header, options(FRAGMENT)),), proto=following)

LONG = options(DESTINATION, bytes([1, 28]) + bytes(28))
SHORT = options(ICMP6)
TWO_BLOCKS = options(ICMP6, bytes([0x1e, 12]) + bytes(12))
SIX = [
    Case("an empty first of another protocol", [Piece("0+", proto=59), "0aa+", "2c"], "aac", 1),
    Case("over the head of the old", ["1aa+", "0aa+", "3a"], "", 1),
    Case("over the head of the old, the last", ["1aa", "0aa+"], "", 1),
    Case("over the tail of the old", ["0aa+", "1aa+", "3a"], "", 1),
    Case("over the tail of the old, the last", ["0aa+", "1aa"], "", 1),
    Case("within the old", ["0aaa+", "1a+", "3a"], "", 1),
    Case("around the old", ["1a+", "0aaa+", "3a"], "", 1),
    Case("over two old ones", ["0aa+", "3aa", "1aaa+"], "", 1),
    Case("a duplicate of the first", ["0aa+", "0aa+", "2a"], "", 1),
    Case("a duplicate of the last", ["2a", "2a", "0aa+"], "", 1),
    Case("an overlap, and then all fragments", ["0aa+", "1xx", "0a+", "1a+", "2c"], "aac", 1),
    Case("a last one behind the end", ["2a", "2az", "0aa+"], "", 1),
    Case("a last one in the middle", ["3z", "1a", "0aaa+"], "", 1),
    Case("a last one before the end", ["3z", "1aa", "0aaa+"], "", 1),
    Case("a last one before what is there", ["0aa+", "3a+", "2a", "4z"], "", 1),
    Case("one with more to follow up to the end", ["2a", "1aa+", "0aa+"], "", 1),
    Case("a whole packet in one fragment", ["0abc"], "abc"),
    Case("a whole packet in one fragment, twice", ["0abc", "0abc"], "abc", times=2),
    Case("a whole packet in one fragment, beside another", ["1xx", "0abc"], "abc"),
    Case("a whole packet that is no echo, between fragments", ["0aa+", "0a", "2c"], "aac"),
    Case("UDP in one fragment", ["0ab"], "ab", port=7),
    Case("UDP in one fragment, to a port that is blocked", ["0ab"], port=8),
    Case("a whole packet that ends in its options, between fragments",
         ["0aa+", "0a", "2bc+", "4d"], "abcd", leading=options(ICMP6), friend=True),
    Case("destination options in front", [Piece("0aa+", **six(DESTINATION)),
                                          Piece("2c", **six(DESTINATION))]),
    Case("destination options in front, where they may be",
         [Piece("0aa+", **six(DESTINATION)), Piece("2c", **six(DESTINATION))], "aac", friend=True),
    Case("hop-by-hop options in front", [Piece("0aa+", **six(HOP_BY_HOP)),
                                         Piece("2c", **six(HOP_BY_HOP))]),
    Case("hop-by-hop options in front, where they may be",
         [Piece("0aa+", **six(HOP_BY_HOP)), Piece("2c", **six(HOP_BY_HOP))], "aac", friend=True),
    Case("headers of the second do not matter",
         ["0aa+", Piece("2c", ahead=((HOP_BY_HOP, LONG), (DESTINATION, options(FRAGMENT))))], "aac"),
    Case("hop-by-hop options behind the fragment header",
         [Piece("0aa+", proto=HOP_BY_HOP), Piece("2bb", proto=HOP_BY_HOP)], leading=SHORT,
         friend=True),
    Case("destination options in two fragments", ["0a+", "1aab"], "ab", friend=True,
         leading=TWO_BLOCKS),
    Case("the same where there may be none", ["0a+", "1aab"],
         leading=TWO_BLOCKS),
    Case("two fragment headers", [Piece("0aa+", proto=FRAGMENT,
                                        behind=bytes([ICMP6, 0, 0, 1, 0, 0, 0, 9])),
                                  Piece("2c", proto=FRAGMENT,
                                        behind=bytes([ICMP6, 0, 0, 16, 0, 0, 0, 9]))], "", 1),
    Case("the longest datagram, in any order", shuffled(cut_up(8192, 160, 1)), "a*8192-1"),
]

FENCE = Case("fence", cut_up(300, 150), "a*300")
FENCE_UDP = Case("fence", cut_up(300, 150), "a*300", port=8, friend=True)

class Player:
    def __init__(self, lab, link_address, number):
        self.client = lab + "-client"
        with inside(self.client):
            self.wire = Wire("eth0", link_address)
            # the client reassembles fragments, so the cases get whole answers
            self.sockets = [roomy(socket.socket(family, socket.SOCK_RAW, protocol))
                            for family, protocol in ((socket.AF_INET, ICMP),
                                                     (socket.AF_INET6, ICMP6))]
        self.number = number

    @staticmethod
    def block(letter, family):
        if letter == "z":  # eight more bytes, which an IPv6 checksum covers, too
            return bytes.fromhex("fff7000000000000") if family == 6 else bytes(8)
        return letter.encode() * 8

    def datagram(self, case, family, source, target, udp):
        """Returns what a case is to make, behind the IP header, and the data that answers bear."""
        data = b"".join(self.block(letter, family) for letter in case.answer[1:])
        data = data[:len(data) - case.cut]
        if udp:
            ports = struct.pack("!HHHH", udp.getsockname()[1], case.port, 8 + len(data), 0)
            whole = message(source, target, UDP, ports + data, 6)
        else:
            whole = echo(source, target, self.number & 0xffff, self.number & 0xffff, data)
        return case.leading + whole, data

    def payload(self, piece, whole, case, family):
        """The bytes of a fragment: those of the datagram but where its letters are others."""
        start, end = piece.first * 8, (piece.first + len(piece.letters)) * 8 - piece.cut
        offset = len(case.leading) // 8
        data = b""
        for at, letter in enumerate(piece.letters, piece.first):
            block = whole[at * 8:at * 8 + 8]
            if at > offset and case.answer[at - offset:at - offset + 1] != letter:
                block = b""
            data += block.ljust(8, b"\0") if block else self.block(letter, family)
        return data[:end - start]

    def packets(self, case, family, target):
        """Returns the fragments of a case, its UDP socket and the data that answers bear."""
        self.number += 4  # a case may use a second identification
        sources = FRIEND if case.friend else CLIENT
        udp = None
        if case.port:
            with inside(self.client):
                udp = socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6,
                                    socket.SOCK_DGRAM)
            udp.bind((sources[family], 0))
        whole, data = self.datagram(case, family, sources[family], target, udp)
        own = UDP if udp else ICMP if family == 4 else DESTINATION if case.leading else ICMP6
        made = []
        for piece in case.pieces:
            source = (FRIEND if piece.friend else sources)[family]
            payload = self.payload(piece, whole, case, family)
            proto = own if piece.proto is None else piece.proto
            ident = self.number + piece.ident & 0xffff
            if family == 4:
                field = piece.flags | piece.more << 13 | piece.first
                ip = ip4(source, target, proto, payload, ident, field, options=piece.ahead4)
            else:
                header = struct.pack("!BBHI", proto, 0, piece.first << 3 | piece.more, ident)
                ahead = b"".join(header for _, header in piece.ahead)
                first = piece.ahead[0][0] if piece.ahead else FRAGMENT
                ip = ip6(source, target, first, ahead + header + piece.behind + payload)
            made.append((ip, bytes(piece.padding)))
        return made, udp, data

    def send(self, made):
        for ip, padding in made:
            self.wire.send(ip, padding)

    def heard(self, seconds):
        """Yields (identifier, data) of each echo reply."""
        ready, _, _ = select.select(self.sockets, [], [], seconds)
        for opened in ready:
            reply = opened.recv(70000)
            if opened.family == socket.AF_INET:
                reply = reply[(reply[0] & 15) * 4:]
            if reply[0] == (0 if opened.family == socket.AF_INET else 129):
                yield struct.unpack("!H", reply[4:6])[0], reply[8:]

    def fence(self, family, numbers):
        """Returns the echo replies with these numbers that came before the answer to a last one: no
        answer comes behind that of a later datagram, which is in fragments as well."""
        made, _, _ = self.packets(FENCE, family, TARGETS[family][0])
        last = self.number & 0xffff
        self.send(made)
        replies = []
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            for ident, data in self.heard(0.2):
                if ident in numbers:
                    replies.append(data)
                if ident == last:
                    return replies
        sys.exit("no answer to the fence")

    def play(self, case, family, target):
        """Returns what came of a case, if it is not what should come of it."""
        made, udp, data = self.packets(case, family, target)
        number = self.number & 0xffff
        self.send(made)
        replies = []
        deadline = time.monotonic() + 3
        while not udp and len(replies) < case.times and time.monotonic() < deadline:
            replies += [heard for ident, heard in self.heard(0.2) if ident == number]
        if udp and case.times and select.select([udp], [], [], 3)[0]:
            replies.append(udp.recv(70000))
        if udp and not case.times:
            # the same server answers a last datagram after this one
            made, last, _ = self.packets(FENCE_UDP, family, target)
            self.send(made)
            if not select.select([last], [], [], 5)[0]:
                sys.exit("no answer to the fence over UDP")
            if select.select([udp], [], [], 0)[0]:
                replies.append(udp.recv(70000))
        elif not case.times:
            replies += self.fence(family, [number])
        if replies == [data] * case.times:
            return None
        told = ["as asked for" if reply == data else reply[:80] for reply in replies]
        return "%d answers instead of %d: %s" % (len(replies), case.times, told)

def cases():
    for family, own in ((4, FOUR), (6, SIX)):
        for target in TARGETS[family]:
            for case in BOTH + own:
                yield case, family, target

def play(lab, link_address, number):
    player = Player(lab, link_address, int(number))
    played = list(cases())
    for case, family, target in played:
        wrong = player.play(case, family, target)
        if wrong:
            print("%s, to %s: %s" % (case.name, target, wrong))
    print("%d cases" % len(played))

def counted():
    print(sum(case.counted for case, _, _ in cases()))

def late(lab, link_address, number, seconds):
    player = Player(lab, link_address, int(number))
    waiting = []
    for family, targets in TARGETS.items():
        for target in targets:
            made, _, _ = player.packets(Case("late", ["0aa+", "2c"], "aac"), family, target)
            player.send(made[:-1])
            waiting.append((player.number & 0xffff, made[-1:]))
    time.sleep(float(seconds))
    for _, made in waiting:
        player.send(made)
    numbers = [number for number, _ in waiting]
    print(sum(len(player.fence(family, numbers)) for family in TARGETS))

{"play": play, "counted": counted, "late": late}[sys.argv[1]](*sys.argv[2:])
