# The peer of tests/real-boot: the other end of the machine's links.
#
#   peer.py FOLDER SEED
#
# FOLDER/frames0 and frames1 are the two links: sockets of raw Ethernet frames, whose other ends are
# machine0 and machine1. The peer probes both links from the first moment on, at a bounded rate: TCP
# and UDP to 1,000 ports, echo requests, frames with up to eight VLAN tags, and fragments. The rate
# excludes the time for which qemu waits for a processor. Otherwise the machine on a busy host would
# have time for probes only. FOLDER/console, control and monitor are listening sockets, to which
# qemu connects: the machine's first and second serial line, and qemu's own monitor.
#
# The machine gives orders on its console:
#
#   @phase NAME     count answers as answers of this phase from now on
#   @rounds N LINK  write a line to the control line after all ports were probed N times more
#   @answered N     write a line once port N has answered
#
# At the end FOLDER/answers has a line for each kind of IP packet from the machine: number, link,
# phase, probe, packet. FOLDER/said is the console's output.
import collections, json, os, random, select, socket, struct, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../netns"))
from packets import ICMP, ICMP6, TCP, UDP, datagram, packet, segment, summed

ARP, IP, IP6, TPIDS = 0x0806, 0x0800, 0x86dd, (0x8100, 0x88a8)
VLAN = 5
OPEN = (22, 443, 8080)   # ports that a rule set passes
LISTENING = (23, 80)
BURST, PAUSE = 10, 0.02  # ports in a burst, seconds of the machine's time between bursts
MACHINE = [bytes.fromhex("52540000000%d" % link) for link in (1, 2)]
PEER = bytes.fromhex("525400000099")
# addresses of the machine on its links and on its VLAN device; the peer's end in 2 instead of 1
HOSTS = [("192.0.2.1", "2001:db8::1"), ("198.51.100.1", "2001:db8:1::1")]
TAGGED = "198.18.5.1"

def other(address):
    return address[:-1] + "2"

def kinds():
    names = ["tcp", "udp", "tcp6", "udp6", "echo", "echo6", "fragments", "fragments6", "vlan"]
    return names + ["tags-%d" % count for count in range(1, 9)]

KINDS = kinds()
FIRST_PORT = 20000       # the source port, or the echo identifier, names the kind of a probe

def syn(kind, target, port):
    return segment(other(target), FIRST_PORT + KINDS.index(kind), target, port, 2,
                   1000, 0)  # as a retransmitted SYN, for its state

def echo(kind, target):
    six = ":" in target
    message = struct.pack("!BBHHH", 128 if six else 8, 0, 0, FIRST_PORT + KINDS.index(kind), 1)
    return packet(other(target), target, ICMP6 if six else ICMP, message + b"x" * 24, 2)

def udp(kind, target, port):
    return datagram(other(target), FIRST_PORT + KINDS.index(kind), target, port, b"probe" * 4)

def fragments(whole):
    """Cuts a packet in two, behind the first 16 bytes that it carries."""
    kind, data = whole
    identifier = random.getrandbits(16)
    if kind == IP6:
        header, carried = data[:40], data[40:]
        for offset, more, part in ((0, 1, carried[:16]), (16, 0, carried[16:])):
            extension = struct.pack("!BBHI", header[6], 0, offset | more, identifier)
            yield kind, (header[:4] + struct.pack("!HB", 8 + len(part), 44) + header[7:] +
                         extension + part)
        return
    header, carried = data[:20], data[20:]
    for offset, more, part in ((0, 0x2000, carried[:16]), (2, 0, carried[16:])):
        ip = (header[:2] + struct.pack("!HHH", 20 + len(part), identifier, more | offset) +
              header[8:10] + b"\0\0" + header[12:])
        yield kind, ip[:10] + struct.pack("!H", summed(ip)) + ip[12:] + part

def tag(whole, tags):
    """Puts (TPID, VLAN identifier) in front of a packet, the outermost first."""
    kind, data = whole
    for tpid, vlan in reversed(tags):
        kind, data = tpid, struct.pack("!HH", vlan, kind) + data
    return kind, data

def probes(four, six, ports):
    """A burst: these ports, and one of each kind besides."""
    for port in ports:
        yield syn("tcp", four, port)
        yield udp("udp", four, port)
    for port in OPEN:
        yield syn("tcp", four, port)
    port = random.choice(ports)
    yield syn("tcp6", six, port)
    yield udp("udp6", six, port)
    yield echo("echo", four)
    yield echo("echo6", six)
    yield from fragments(udp("fragments", four, port))
    yield from fragments(echo("fragments6", six))
    yield tag(syn("vlan", TAGGED, port), [(0x8100, VLAN)])
    count = random.randint(1, 8)
    yield tag(syn("tags-%d" % count, four, port),
              [(random.choice(TPIDS), 0) for _ in range(count)])

class Link:
    def __init__(self, folder, number, record):
        self.number, self.record = number, record
        self.there = "%s/machine%d" % (folder, number)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("%s/frames%d" % (folder, number))
        self.socket.setblocking(False)
        self.rounds = 0
        self.waiting = collections.deque()
        self.frames = self.endless()

    def endless(self):
        ports = random.sample(range(1, 65536), 1000 - len(LISTENING))
        ports = [port for port in ports if port not in OPEN + LISTENING] + list(LISTENING)
        while True:
            random.shuffle(ports)
            for first in range(0, len(ports), BURST):
                yield list(probes(*HOSTS[self.number], ports[first:first + BURST]))
            self.rounds += 1

    def probe(self):
        """Sends a burst. What the machine does not take yet stays for the next."""
        if not self.waiting:
            self.waiting.extend(next(self.frames))
        while self.waiting and self.send(*self.waiting[0]):
            self.waiting.popleft()

    def send(self, kind, data):
        try:
            self.socket.sendto(MACHINE[self.number] + PEER + struct.pack("!H", kind) + data,
                               self.there)
        except (BlockingIOError, FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:  # the queue is full
            return False
        return True

    def receive(self):
        while True:
            try:
                frame = self.socket.recv(65536)
            except BlockingIOError:
                return
            tags, at = [], 12
            while (kind := struct.unpack_from("!H", frame, at)[0]) in TPIDS:
                tags.append((kind, struct.unpack_from("!H", frame, at + 2)[0]))
                at += 4
            self.take(kind, frame[at + 2:], tags)

    def take(self, kind, data, tags):
        if kind == ARP:
            if data[6:8] == b"\0\1" and data[24:28] != data[14:18]:
                reply = (data[:6] + b"\0\2" + PEER + data[24:28] + data[8:18])
                self.send(*tag((ARP, reply), tags))
            return
        if kind not in (IP, IP6):
            return
        probe, text = self.describe(kind, data)
        self.record(self.number, probe, text)

    def describe(self, kind, data):
        """The probe that a packet of the machine answers, and the packet in words."""
        length, protocol = (40, data[6]) if kind == IP6 else ((data[0] & 15) * 4, data[9])
        carried = data[length:]
        if protocol == 0 and kind == IP6:  # hop-by-hop options of multicast listener reports
            protocol, carried = carried[0], carried[8 + carried[1] * 8:]
        if protocol in (TCP, UDP):
            source, destination = struct.unpack_from("!HH", carried)
            name = "tcp" if protocol == TCP else "udp"
            if protocol == TCP and carried[13] & 0x12 == 0x12:
                self.reset(data, carried)
            return self.named(destination), "%s from %s" % (
                name, source if source in OPEN else "a blocked port")
        if protocol not in (ICMP, ICMP6):
            return "-", "protocol %d" % protocol
        type_ = carried[0]
        if protocol == ICMP6 and 133 <= type_ <= 136:
            if type_ == 135 and data[8:24] != bytes(16):
                self.advertise(data, carried)
            return "-", "neighbour discovery"
        if type_ in (0, 129):
            return self.named(struct.unpack_from("!H", carried, 4)[0]), "echo reply"
        name = "icmp type %d" if protocol == ICMP else "icmp6 type %d"
        inner = carried[8:]
        if protocol == ICMP and type_ == 3 or protocol == ICMP6 and type_ < 5:
            inner = inner[40:] if protocol == ICMP6 else inner[20:]
            return self.named(struct.unpack_from("!H", inner + b"\0\0")[0]), name % type_
        return "-", name % type_

    def named(self, port):
        index = port - FIRST_PORT
        return KINDS[index] if 0 <= index < len(KINDS) else "-"

    def reset(self, data, carried):
        """Closes a connection that the machine has accepted."""
        if data[0] >> 4 != 4:
            return
        source, destination, _, ack = struct.unpack_from("!HHII", carried)
        self.send(*segment(socket.inet_ntoa(data[16:20]), destination,
                           socket.inet_ntoa(data[12:16]), source, 4, ack, 0))

    def advertise(self, data, carried):
        target = carried[8:24]
        message = struct.pack("!BBHI", 136, 0, 0, 0x60000000) + target + b"\2\1" + PEER
        kind, reply = packet(socket.inet_ntop(socket.AF_INET6, target),
                             socket.inet_ntop(socket.AF_INET6, data[8:24]), ICMP6, message, 2)
        self.send(kind, reply[:7] + b"\xff" + reply[8:])

class Clock:
    """Seconds in which the machine ran, or had nothing to do."""

    def __init__(self, qemu):
        self.tasks = "/proc/%d/task" % qemu

    def now(self):
        return time.monotonic() - self.waited()

    def waited(self):
        """Seconds that the thread of the machine's processor has waited for one of the host's."""
        try:
            waits = [int(open("%s/%s/schedstat" % (self.tasks, task)).read().split()[1])
                     for task in os.listdir(self.tasks)]
        except OSError:  # qemu has ended, or this kernel has no such counter
            return 0
        return max(waits, default=0) / 1e9

class Peer:
    def __init__(self, folder):
        self.folder = folder
        self.lines = {name: self.listen(name) for name in ("console", "control", "monitor")}
        self.links = [Link(folder, number, self.answer) for number in (0, 1)]
        self.answers, self.phase = collections.Counter(), "start"
        self.said, self.unread = open(folder + "/said", "wb"), b""
        self.wanted = lambda: False
        self.open = set()

    def listen(self, name):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("%s/%s" % (self.folder, name))
        listener.listen()
        return listener

    def run(self):
        print("listening", flush=True)
        for name, listener in self.lines.items():
            self.lines[name] = listener.accept()[0]
        self.command("qmp_capabilities")
        qemu = self.lines["monitor"].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        clock, due = Clock(struct.unpack("3i", qemu)[0]), 0
        while True:
            if clock.now() >= due:
                due = clock.now() + PAUSE
                for link in self.links:
                    link.probe()
            ready = select.select([self.lines["console"], self.links[0].socket,
                                   self.links[1].socket], [], [], PAUSE)[0]
            # If a frame and an order are both there, the order came first.
            if ready and not self.hear():
                return
            for link in self.links:
                link.receive()
            if self.wanted():
                self.wanted = lambda: False
                self.lines["control"].sendall(b"done\n")

    def hear(self):
        """Reads the console. Returns false if the machine is gone."""
        while select.select([self.lines["console"]], [], [], 0)[0]:
            data = self.lines["console"].recv(65536)
            if not data:
                return False
            self.said.write(data)
            self.said.flush()
            *lines, self.unread = (self.unread + data).split(b"\n")
            for line in lines:
                self.order(line.decode(errors="replace").split())
        return True

    def order(self, words):
        if words[:1] == ["@phase"]:
            self.phase = words[1]
        elif words[:1] == ["@rounds"]:
            link = self.links[int(words[2])]
            goal = link.rounds + int(words[1])
            self.wanted = lambda: link.rounds >= goal
        elif words[:1] == ["@answered"]:
            text = "tcp from %s" % words[1]
            self.wanted = lambda: (self.phase, text) in self.open
        elif words[:1] == ["@device"]:
            self.command("device_add", driver="virtio-net-pci", netdev="n1", id="late",
                         mac=MACHINE[1].hex(":"), ctrl_vlan=False, romfile="")

    def command(self, name, **arguments):
        self.lines["monitor"].sendall(
            json.dumps({"execute": name, "arguments": arguments}).encode())

    def answer(self, link, probe, text):
        self.answers["link%d" % link, self.phase, probe, text] += 1
        self.open.add((self.phase, text))

    def write(self):
        with open(self.folder + "/answers", "w") as file:
            for key, count in sorted(self.answers.items()):
                print(count, *key, file=file)
            for link in self.links:
                print("# link%d was probed %d times" % (link.number, link.rounds), file=file)

random.seed(int(sys.argv[2]))
peer = Peer(sys.argv[1])
try:
    peer.run()
finally:
    peer.write()
