"""Real iptables and skipstep, with rules imported from it, on the same random packets.

Runs in the namespace `world`, which has both ends of the wires to `gateway` and no address. It puts
frames on the wires and sees what comes back; a child in the gateway's namespace sends the gateway's own
packets and says which ones arrive there. The IP identification tells packets apart.

    import_iptables.py GATEWAY PFCTL SEED SETS PACKETS [--states]
"""

import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

WIRES = {"lan": ("lan1", "lan0", "10.0.1."), "wan": ("wan1", "wan0", "10.0.2.")}
OWN = ["10.0.1.1", "10.0.2.1"]
PORTS = [22, 53, 80, 443, 1024, 5000]
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 47: "47"}
FLAGS = {"S": 2, "SA": 18, "A": 16, "PA": 24, "FA": 17, "R": 4, "RA": 20}
FIRST_SEQUENCE = 0x10000000
EMPTY = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n"


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(number, protocol, source, destination, payload, tos=0):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(payload), number, 0, 64, protocol, 0,
                       socket.inet_aton(source), socket.inet_aton(destination))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def with_pseudo_header(packet, at):
    source, destination, protocol, payload = packet[12:16], packet[16:20], packet[9], packet[20:]
    total = checksum(source + destination + struct.pack("!BBH", 0, protocol, len(payload)) + payload)
    return packet[:20 + at] + struct.pack("!H", total or 0xFFFF) + packet[22 + at:]


def tcp(number, source, destination, ports, flags, sequence=None, acknowledge=None, data=b""):
    sequence = FIRST_SEQUENCE + (number << 8) if sequence is None else sequence
    acknowledge = sequence if acknowledge is None else acknowledge
    if not flags & 16:
        acknowledge = 0
    segment = struct.pack("!HHIIBBHHH", *ports, sequence, acknowledge, 0x50, flags, 65535, 0, 0)
    return with_pseudo_header(ip(number, 6, source, destination, segment + data), 16)


def udp(number, source, destination, ports, tos=0):
    datagram = struct.pack("!HHHH", *ports, 12, 0) + b"data"
    return with_pseudo_header(ip(number, 17, source, destination, datagram, tos), 6)


def icmp(number, source, destination, kind, code, body):
    message = struct.pack("!BBH", kind, code, 0) + body
    message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    return ip(number, 1, source, destination, message)


def random_packet(rng, number, source, destination):
    """A packet without a connection."""
    protocol = rng.choice([6, 6, 6, 17, 17, 1, 1, 47])
    ports = rng.choice(PORTS), rng.choice(PORTS)
    if protocol == 6:
        return tcp(number, source, destination, ports, FLAGS[rng.choice(list(FLAGS))])
    if protocol == 17:
        return udp(number, source, destination, ports, rng.choice([0, 0, 0xB8]))
    if protocol == 47:
        return ip(number, 47, source, destination, b"\0\0\x08\0" + b"payload!")
    kind = rng.choice([8, 8, 0, 13, 3])
    if kind == 3:
        quoted = udp(1, destination, source, ports)[:28]
        return icmp(number, source, destination, 3, rng.choice([1, 3]), b"\0\0\0\0" + quoted)
    body = struct.pack("!HH", number, 1) + (b"\0" * 12 if kind == 13 else b"ping")
    return icmp(number, source, destination, kind, 0, body)


def strangers(rng, count):
    """(wire or None for the gateway's own, packet) for packets without connections."""
    packets = []
    for number in range(1, count + 1):
        wire = rng.choice(["lan", "wan", None])
        there = rng.choice(list(WIRES))
        host = WIRES[there][2] + str(rng.choice([5, 6, 7]))
        if wire is None:
            source, destination = WIRES[there][2] + "1", host
        else:
            other = "wan" if wire == "lan" else "lan"
            source = WIRES[wire][2] + str(rng.choice([5, 6, 7]))
            destination = rng.choice(OWN + [WIRES[other][2] + str(rng.choice([5, 6, 7]))] * 2)
        packets.append((wire, random_packet(rng, number, source, destination)))
    return packets


def connections(rng, count):
    """Packets of forwarded connections, in the order of their lives, many connections at once."""
    flows = []
    number = 0
    while number < count:
        wire, other = rng.choice([("lan", "wan"), ("wan", "lan")])
        a, b = WIRES[wire][2] + str(rng.choice([5, 6, 7])), WIRES[other][2] + str(rng.choice([5, 6, 7]))
        ports = rng.randrange(20000, 60000), rng.choice(PORTS)
        back = ports[::-1]
        n = number + 1
        kind = rng.choice(["tcp", "tcp", "udp", "ping", "stray"])
        if kind == "tcp":
            x, y = rng.randrange(1 << 30), rng.randrange(1 << 30)
            flow = [
                (wire, tcp(n, a, b, ports, 2, x, 0)),
                (other, tcp(n + 1, b, a, back, 18, y, x + 1)),
                (wire, tcp(n + 2, a, b, ports, 16, x + 1, y + 1)),
                (wire, tcp(n + 3, a, b, ports, 24, x + 1, y + 1, b"question")),
                (other, tcp(n + 4, b, a, back, 24, y + 1, x + 9, b"answer")),
            ]
        elif kind == "udp":
            flow = [(wire, udp(n, a, b, ports)), (other, udp(n + 1, b, a, back)), (wire, udp(n + 2, a, b, ports))]
        elif kind == "ping":
            body = struct.pack("!HH", ports[0], 1) + b"ping"
            flow = [(wire, icmp(n, a, b, 8, 0, body)), (other, icmp(n + 1, b, a, 0, 0, body))]
        else:
            flow = [(wire, rng.choice([
                tcp(n, a, b, ports, 18), tcp(n, a, b, ports, 4), udp(n, a, b, ports),
                icmp(n, a, b, 0, 0, struct.pack("!HH", ports[0], 1) + b"ping")]))]
        number += len(flow)
        flows.append(flow)
    packets = []
    while flows:
        flow = rng.choice(flows[:8])
        packets.append(flow.pop(0))
        flows = [flow for flow in flows if flow]
    return packets


class Rules:
    """A random rule set, as iptables-save prints one."""

    def __init__(self, rng, states):
        self.rng = rng
        self.states = states
        self.rejects = not states and rng.random() < 0.5
        self.chains = ["alpha", "beta", "gamma"]
        self.protocol = None

    def text(self):
        hooks = ["INPUT", "FORWARD", "OUTPUT"]
        if self.states:
            hooks = ["FORWARD"]
        elif self.rejects:  # iptables sends its own answers through OUTPUT, pf does not
            hooks.remove("OUTPUT")
        lines = ["*filter"]
        for hook in ["INPUT", "FORWARD", "OUTPUT"]:
            policy = self.rng.choice(["ACCEPT", "DROP"]) if hook in hooks else "ACCEPT"
            lines.append(f":{hook} {policy} [0:0]")
        lines += [f":{chain} - [0:0]" for chain in self.chains]
        for hook in hooks:
            if self.states:
                lines.append(f"-A {hook} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT")
                if self.rng.random() < 0.5:
                    lines.append(f"-A {hook} -m conntrack --ctstate INVALID -j DROP")
            for _ in range(self.rng.randrange(2, 7)):
                lines.append(f"-A {hook}{self.criteria(hook)}{self.target(hook, self.chains)}")
        for level, chain in enumerate(self.chains):
            for _ in range(self.rng.randrange(1, 5)):
                criteria = self.criteria(chain)
                lines.append(f"-A {chain}{criteria}{self.target(chain, self.chains[level + 1:])}")
        return "\n".join(lines + ["COMMIT", ""])

    def criteria(self, hook):
        rng, text = self.rng, ""
        no = lambda: rng.choice(["", "", "! "])
        hosts = [f"10.0.{net}.{host}" for net in (1, 2) for host in (5, 6, 7)]
        nets = ["10.0.1.0/24", "10.0.2.0/24", "10.0.1.4/31", "10.0.2.1/32"]
        for option in "-s", "-d":
            if rng.random() < 0.3:
                text += f" {no()}{option} {rng.choice(hosts + nets)}"
        if rng.random() < 0.15:
            text += f" -m iprange {no()}--src-range 10.0.1.6-10.0.2.5"
        if hook in ("INPUT", "FORWARD", "alpha") and rng.random() < 0.3:
            text += f" {no()}-i {rng.choice(['lan0', 'wan0'])}"
        if hook in ("OUTPUT", "FORWARD", "beta") and rng.random() < 0.3:
            text += f" {no()}-o {rng.choice(['lan0', 'wan0'])}"
        if rng.random() < 0.1:
            text += " -m dscp --dscp 0x2e"
        protocol = rng.choice([None, "icmp", "tcp", "tcp", "udp", "47"])
        if protocol:
            text += f" -p {protocol}"
        port = lambda: rng.choice(["22", "53:80", "443", ":1024", "1024:"])
        if protocol in ("tcp", "udp"):
            shape = rng.random()
            if shape < 0.3:
                text += f" -m {protocol} {no()}--dport {port()}"
            elif shape < 0.45:
                text += f" -m {protocol} {no()}--sport {port()}"
            elif shape < 0.7:
                option = rng.choice(["--dports", "--sports", "--ports"])
                text += f" -m multiport {no()}{option} {rng.choice(['22,80', '53,443:5000'])}"
            if protocol == "tcp" and rng.random() < 0.3:
                flags = rng.choice(["FIN,SYN,RST,ACK SYN", "SYN,ACK SYN,ACK", "RST RST", "ALL ACK"])
                text += f" -m tcp {no()}--tcp-flags {flags}"
        if protocol == "icmp" and rng.random() < 0.6:
            text += f" -m icmp --icmp-type {rng.choice(['8', '0', '3/3', '3', '13'])}"
        self.protocol = protocol
        if self.states and protocol and rng.random() < 0.4:
            text += " -m conntrack --ctstate NEW"
        return text

    def target(self, hook, chains):
        rng = self.rng
        reject = ["REJECT --reject-with icmp-host-prohibited", "REJECT --reject-with icmp-port-unreachable"]
        if self.protocol == "tcp":
            reject.append("REJECT --reject-with tcp-reset")
        targets = ["ACCEPT", "ACCEPT", "DROP"] + ([rng.choice(reject)] if self.rejects else [])
        if hook in self.chains:
            targets += ["RETURN", "RETURN"]
        if chains:
            chain = rng.choice(chains)
            return rng.choice([f" -j {target}" for target in targets] + [f" -j {chain}"] * 3 + [f" -g {chain}"])
        return " -j " + rng.choice(targets)


class Lab:
    """The wires, and the child in the gateway."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.wires = {}
        for name, (end, _, _) in WIRES.items():
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            wire.bind((end, 0))
            self.wires[name] = wire
        self.child = subprocess.Popen(
            ["nsenter", f"--net={gateway}", sys.executable, os.path.abspath(__file__), "--inside"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.child.stdout.readline() == b"ready\n"
        self.addresses = {}
        for name, (_, interface, _) in WIRES.items():
            output = self.inside("cat", f"/sys/class/net/{interface}/address")
            self.addresses[name] = bytes.fromhex(output.strip().replace(":", ""))

    def inside(self, *command, stdin=None):
        if command[0] == "cat":  # /sys shows the namespace in which it was mounted
            command = ["ip", "-o", "link", "show", command[1].split("/")[4]]
            text = subprocess.run(["nsenter", f"--net={self.gateway}", *command], check=True, text=True,
                                  capture_output=True).stdout
            return text.split("link/ether ")[1].split()[0]
        done = subprocess.run(["nsenter", f"--net={self.gateway}", *command], input=stdin, text=True,
                              capture_output=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}\n{stdin or ''}")
        return done.stdout

    def fates(self, packets):
        """What becomes of each packet: a set of words."""
        fates = {number(packet): set() for _, packet in packets}
        for wire, packet in packets:
            if wire is None:
                self.child.stdin.write(packet.hex().encode() + b"\n")
            else:
                frame = self.addresses[wire] + b"\x02\0\0\0\0\1" + b"\x08\0" + packet
                self.wires[wire].send(frame)
            time.sleep(0.0005)
        self.collect(fates, {number(packet): packet for _, packet in packets})
        return {key: " ".join(sorted(fate)) or "dropped" for key, fate in fates.items()}

    def collect(self, fates, packets):
        sources = {wire: name for name, wire in self.wires.items()}
        told = b""
        while True:
            ready, _, _ = select.select([*sources, self.child.stdout], [], [], 0.3)
            if not ready:
                break
            for source in ready:
                if source is self.child.stdout:
                    *numbers, told = (told + os.read(source.fileno(), 65536)).split(b"\n")
                    for arrived in numbers:
                        fates.get(int(arrived), set()).add("arrived")
                    continue
                frame, (_, _, kind, *_) = source.recvfrom(2048)
                if kind != 4 and frame[12:14] == b"\x08\0":  # skip frames that this host sent
                    self.seen(frame[14:], sources[source], fates, packets)
        for fate in fates.values():
            if "arrived" in fate:  # the gateway's programs may answer or not
                fate.intersection_update({"arrived"})

    def seen(self, packet, wire, fates, packets):
        sent = packets.get(number(packet))
        if sent and sent[12:20] == packet[12:20] and sent[9] == packet[9]:
            fates[number(packet)].add(f"left by {wire}")
        elif packet[9] == 1 and packet[20] == 3 and number(packet[28:]) in fates:
            fates[number(packet[28:])].add(f"answered with ICMP 3/{packet[21]}")
        elif packet[9] == 6 and packet[33] & 4:
            sequence, acknowledge = struct.unpack("!II", packet[24:32])
            about = ((sequence or acknowledge) - FIRST_SEQUENCE) >> 8
            if about in fates:
                fates[about].add("answered with RST")


def number(packet):
    return struct.unpack("!H", packet[4:6])[0]


def inside():
    """The child: sends what it is told, and tells the numbers of what it receives."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    receivers = [socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol) for protocol in PROTOCOLS]
    for receiver in receivers:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    print("ready", flush=True)
    told = b""
    while True:
        ready, _, _ = select.select([0, *receivers], [], [])
        for source in ready:
            if source != 0:
                print(number(source.recv(2048)), flush=True)
                continue
            chunk = os.read(0, 65536)
            if not chunk:
                return
            *lines, told = (told + chunk).split(b"\n")
            for line in lines:
                packet = bytes.fromhex(line.decode())
                try:
                    sender.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
                except OSError:  # a filter that drops may report an error
                    pass


def main():
    gateway, pfctl, seed, sets, count = sys.argv[1:6]
    states = "--states" in sys.argv
    lab = Lab(gateway)
    compared, differences = 0, 0
    tally = {}
    for seed in range(int(seed), int(seed) + int(sets)):
        rng = random.Random(seed)
        rules = Rules(rng, states).text()
        packets = (connections if states else strangers)(rng, int(count))
        lab.inside("iptables-legacy-restore", stdin=rules)
        theirs = lab.fates(packets)
        lab.inside("iptables-legacy-restore", stdin=EMPTY)
        conf = lab.inside(pfctl, "import", "iptables", "-", stdin=rules)
        lab.inside(pfctl, "-q", "-f", "-", stdin=conf)
        lab.inside(pfctl, "-q", "-e")
        ours = lab.fates(packets)
        lab.inside(pfctl, "-q", "-d")
        lab.inside(pfctl, "-q", "-F", "states")
        wrong = [key for key in theirs if theirs[key] != ours[key]]
        for fate in theirs.values():
            tally[fate] = tally.get(fate, 0) + 1
        compared += len(theirs)
        differences += len(wrong)
        if wrong:
            print(f"seed {seed}: {len(wrong)} of {len(theirs)} packets fare differently\n{rules}\n{conf}")
            for key in wrong[:10]:
                wire, packet = next(pair for pair in packets if number(pair[1]) == key)
                print(f"  {wire or 'own'} {packet.hex()}\n    iptables: {theirs[key]}\n    skipstep: {ours[key]}")
            break
    for fate, times in sorted(tally.items()):
        print(f"  {times:6} {fate}")
    print(f"{compared} packets compared, {differences} differences")
    lab.child.stdin.close()
    lab.child.wait()
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    inside() if sys.argv[1] == "--inside" else main()
