# TCP segments of both ends of connections through the gateway, all sent by this program
# (test-tcp-games.sh). No kernel has the addresses of these ends.
#
#   LAB LAN-LINK-ADDRESS WAN-LINK-ADDRESS PORT   plays all cases, each from its own port, from PORT
#                                                on; prints the segments with an unexpected fate,
#                                                then a line for each connection with its port and
#                                                the states of both sides
#   counted                                      prints the number of segments that count as
#                                                state-mismatch and as normalize
#
# A step is "> FLAGS SEQ ACK LENGTH", a segment of the client, or "< ...", a segment of the server.
# The other end must receive every bit of it. Numbers are relative to the first of their side, but
# "@0" is 0. A step of a segment that must not pass ends in a word: `mismatch`, `normalize` or
# `blocked`. "= FLAGS SEQ ACK" is the gateway's answer to that segment, with the numbers of the
# other side.
import re, select, struct, sys, time
from packets import TCP, UDP, datagram, segment
from wires import in_order, wires_of_ends

ENDS = {4: ("192.168.100.9", "192.168.10.9"), 6: ("2001:db8:100::9", "2001:db8:10::9")}
WINDOWS = (1000, 2000)
# initial sequence numbers of both sides; in the second pair they wrap within the first bytes
STARTS = ((1000, 5000), (4294967200, 4294967290))
FLAGS = "FSRPAU"
OPEN = ("> S 0", "< SA 0 1", "> A 1 1")
LIVES = "> PA 1 1 10"
NEW = "> S 99999"  # begins a new connection only after the old one has closed

# name, steps, final states of client and server
CASES = [
    ("a connection from the beginning to the end",
     [*OPEN, "> PA 1 1 100", "< A 1 101", "< FA 1 101", "> A 101 2", "> FA 101 2", "< A 2 102"],
     "FIN_WAIT_2 FIN_WAIT_2"),
    ("no state, and no SYN", ["> A 1 1 blocked", "> SA 0 1 blocked", "> R 1 blocked"], None),
    ("a SYN into an established connection is dropped and gets an acknowledgment",
     [*OPEN, "> S 98999 blocked = A 1 0", LIVES], "ESTABLISHED ESTABLISHED"),
    ("each time, with any number",
     [*OPEN, "> S 0 blocked = A 1 0", "> S 1 blocked = A 1 0", LIVES, "> S 5 blocked = A 1 11"],
     "ESTABLISHED ESTABLISHED"),
    ("a SYN of the server", [*OPEN, "< S 98999 blocked = A 0 1", LIVES],
     "ESTABLISHED ESTABLISHED"),
    ("a RST within the window",
     [*OPEN, "< R 3 mismatch", "< R -1 mismatch", "> R 500 mismatch", "> R 2 mismatch", LIVES],
     "ESTABLISHED ESTABLISHED"),
    ("a RST with the number", [*OPEN, "> PA 1 1 10", "> R 11"], "TIME_WAIT TIME_WAIT"),
    ("a RST with the number, of the server", [*OPEN, "< R 1"], "TIME_WAIT TIME_WAIT"),
    ("a RST that is one off", [*OPEN, "> R -1", NEW], "SYN_SENT CLOSED"),
    ("a RST from before a gap",
     [*OPEN, "> PA 101 1 100", "> R 1 mismatch", "> RA 1 0 mismatch", "> RA 1 1", NEW],
     "SYN_SENT CLOSED"),
    ("a RST from before a gap, of the server",
     [*OPEN, "< PA 101 1 100", "< R 1 mismatch", "< RA 1 0", "> S 99999"], "SYN_SENT CLOSED"),
    ("a FIN below the last number", [*OPEN, "> PA 1 1 100", "> FA 51 1"], "CLOSING ESTABLISHED"),
    ("a FIN with an old acknowledgment",
     [*OPEN, "> FA 1 -67035 mismatch", "> FA 1 -67034"], "CLOSING ESTABLISHED"),
    ("a FIN with an acknowledgment of what is to come",
     [*OPEN, "> FA 1 67037 mismatch", "> FA 1 101"], "CLOSING ESTABLISHED"),
    ("FINs of both sides, and one again",
     [*OPEN, "> FA 1 1", "< FA 1 1", "> A 2 2", "< FA 1 1", "< A 2 2"], "FIN_WAIT_2 FIN_WAIT_2"),
    ("a closed connection makes way", [*OPEN, "> FA 1 1", "< FA 1 2", "> A 2 2", NEW],
     "SYN_SENT CLOSED"),
    ("data at the edge of the window",
     [*OPEN, "> A 1902 1 100 mismatch", "> A 1901 1 100", "> A 0 1 1 mismatch", "> A 1 1 1"],
     "ESTABLISHED ESTABLISHED"),
    ("acknowledgments at the edge",
     [*OPEN, "> A 1 67037 mismatch", "> A 1 67036", "< A 1 67037 mismatch", "< A 1 1"],
     "ESTABLISHED ESTABLISHED"),
    ("a keepalive", [*OPEN, "> A 0 1", "< A 1 1"], "ESTABLISHED ESTABLISHED"),
    ("a refused connection", ["> S 0", "< RA @0 98999 mismatch", "< RA @0 1"],
     "TIME_WAIT TIME_WAIT"),
    ("flags that no segment has",
     [*OPEN, "> SR 1 normalize", "> - 1 normalize", "> F 1 normalize", "> P 1 normalize", LIVES],
     "ESTABLISHED ESTABLISHED"),
    ("both sides begin", ["> S 0", "< S 0", "> SA 0 1", "< SA 0 1"], "ESTABLISHED ESTABLISHED"),
    ("both sides begin, and are out of step",
     ["> S 0", "< S 0", "< RA 895000 499000 mismatch", "> A 899000 595000 mismatch = R 595000"],
     "SYN_SENT SYN_SENT"),
]

def parsed(step):
    found = re.fullmatch(r"([<>]) ([-FSRPAU]+) (@?-?\d+)(?: (-?\d+))?(?: (\d+))?"
                         r"(?: (mismatch|normalize|blocked))?(?: = (\w+) (-?\d+)(?: (-?\d+))?)?", step)
    return found.groups()

def bits(names):
    return sum(1 << FLAGS.index(name) for name in names if name != "-")

class Player:
    def __init__(self, lab, lan, wan):
        self.wires = wires_of_ends(lab, lan, wan)

    def heard(self, seconds):
        """Yields (side, protocol, ports and what follows) of packets that came."""
        for opened in select.select([wire.socket for wire in self.wires], [], [], seconds)[0]:
            side = [wire.socket for wire in self.wires].index(opened)
            try:
                protocol, source, _, transport = self.wires[side].receive()
            except BlockingIOError:  # only non-IP packets are left
                continue
            if source in self.ends:
                yield side, protocol, transport

    def fence(self, side, got):
        """Sends a datagram and waits until it comes out; adds the segments that come before."""
        self.number += 1
        marker = struct.pack("!I", self.number)
        self.wires[side].send(datagram(self.ends[side], 9, self.ends[1 - side], 9, marker))
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            for at, protocol, transport in self.heard(0.2):
                if protocol == TCP:
                    got[at].append(self.read(transport))
                elif protocol == UDP and transport[8:12] == marker:
                    return
        sys.exit("a datagram is lost")

    @staticmethod
    def read(tcp):
        *_, seq, ack, offset, flags, _, _, _ = struct.unpack("!HHIIBBHHH", tcp[:20])
        length = len(tcp) - (offset >> 4) * 4
        return flags & 63, seq, ack if flags & 16 else 0, length

    def play(self, family, start, port, steps):
        """Returns the first step that ends otherwise than it should."""
        self.ends, self.number = ENDS[family], port << 8
        ports = (port, 80)
        for step in steps:
            way, flags, seq, ack, length, dropped, answer, answer_seq, answer_ack = parsed(step)
            side = "><".index(way)
            def absolute(number, of):
                return int(number[1:]) if number[0] == "@" else start[of] + int(number) & 0xffffffff
            sent = (bits(flags), absolute(seq, side), absolute(ack, 1 - side) if ack else 0,
                    int(length or 0))
            self.wires[side].send(segment(self.ends[side], ports[side], self.ends[1 - side],
                                          ports[1 - side], *sent[:3], WINDOWS[side], b"x" * sent[3]))
            wanted = [[], []]
            if not dropped:
                wanted[1 - side] = [sent]
            if answer:
                wanted[side] = [(bits(answer), absolute(answer_seq, 1 - side),
                                 absolute(answer_ack, side) if answer_ack else 0, 0)]
            got = [[], []]
            # sent twice, because XDP sends several packets at once; and in the other direction
            # after answers
            for at in (side, side, 1 - side):
                self.fence(at, got)
            if got != wanted:
                return "%s: the ends got %s instead of %s" % (step, got, wanted)
        return None

def connections():
    for family in ENDS:
        for start in STARTS:
            yield from ((family, start, case) for case in CASES)

def play(lab, lan, wan, port):
    in_order()
    player = Player(lab, lan, wan)
    states = []
    for port, (family, start, (name, steps, state)) in enumerate(connections(), int(port)):
        wrong = player.play(family, start, port, steps)
        if wrong:
            print("IPv%d, %s, %s: %s" % (family, start, name, wrong))
        if state:
            states.append("%d %s" % (port, state))
    print("\n".join(states))

def counted():
    steps = [parsed(step)[5] for _, _, case in connections() for step in case[1]]
    print(steps.count("mismatch"), steps.count("normalize"))

if sys.argv[1] == "counted":
    counted()
else:
    play(*sys.argv[1:])
