"""Conversations that must go on, and frames that nobody should send (test-hostile.sh).

talk ENDS GO ADDRESS...   opens TCP connections and UDP flows to the echo servers there, writes their ends
                          to the file ENDS, and says more when the file GO appears
throw ENDS IFACE MAC SIDE COUNT SEED [ADDRESS]
                          sends frames with these ends on the side of the client or of the server; ADDRESS is
                          who the client is on the server's side, if rules say so
"""

import os
import random
import socket
import struct
import sys
import time

PORTS = (22, 80, 443)
KINDS = {socket.SOCK_STREAM: 6, socket.SOCK_DGRAM: 17}


def say(connection, words):
    """Whether the echo comes back, whatever else does."""
    connection.settimeout(0.5)
    deadline = time.monotonic() + 20
    if connection.type == socket.SOCK_STREAM:
        connection.sendall(words)
        heard = b""
        while heard != words and time.monotonic() < deadline:
            try:
                heard += connection.recv(4096)
            except TimeoutError:
                pass
        return heard == words
    while time.monotonic() < deadline:
        try:
            connection.send(words)
            while connection.recv(4096) != words:
                pass
            return True
        except OSError:
            # the timeout is over, or a forged ICMP error arrived
            pass
    return False


def talk(ends, go, addresses):
    connections = []
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for port in PORTS:
            for kind in KINDS:
                if kind == socket.SOCK_DGRAM and port == 443:
                    continue
                connection = socket.socket(family, kind)
                connection.settimeout(5)
                connection.connect((address, port))
                if not say(connection, b"before"):
                    sys.exit(f"no echo from port {port} of {address}")
                connections.append(connection)
    with open(ends + ".part", "w", encoding="ascii") as file:
        for connection in connections:
            own, peer = connection.getsockname(), connection.getpeername()
            print(KINDS[connection.type], own[0], own[1], peer[0], peer[1], file=file)
    os.rename(ends + ".part", ends)
    while not os.path.exists(go):
        time.sleep(0.05)
    for connection in connections:
        if not say(connection, b"after all that"):
            sys.exit(f"{connection} is dead")
    print(f"{len(connections)} conversations go on")


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(source, destination, protocol, data, rng):
    if ":" in source:
        head = struct.pack("!IHBB", 6 << 28, len(data), protocol, rng.choice((64, 64, 255, 1)))
        addresses = [socket.inet_pton(socket.AF_INET6, one) for one in (source, destination)]
        return head + addresses[0] + addresses[1] + data
    fragment = rng.choice((0, 0, 0, 0, 0x2000, 0x2001, 0x0001, 0x1FFF, 0x4000, 0x8000))
    head = struct.pack("!BBHHHBB", 0x45, 0, 20 + len(data), rng.randrange(50), fragment, 64, protocol)
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    return head + struct.pack("!H", checksum(head + b"\0\0" + addresses)) + addresses + data


def transport(protocol, sport, dport, rng):
    data = rng.randbytes(rng.choice((0, 1, 8, 100)))
    if protocol == 17:
        return struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data
    numbers = rng.getrandbits(32), rng.getrandbits(32)
    rest = struct.pack("!BBHHH", rng.choice((5, 5, 5, 6, 15, 0)) << 4, rng.getrandbits(8), 1000, 0, 0)
    return struct.pack("!HHII", sport, dport, *numbers) + rest + data


def error(quote, source, destination, rng):
    for _ in range(rng.choice((1, 1, 2, 5))):
        six = ":" in source
        kind = rng.choice((1, 2, 3, 4, 137) if six else (3, 4, 5, 11, 12))
        head = struct.pack("!BBHI", kind, rng.randrange(6), 0, 0)
        message = head + quote[: rng.randrange(200)]
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        quote = ip(source, destination, 58 if six else 1, message, rng)
    return quote


def chain(packet, rng):
    """Extension headers in front of what follows an IPv6 header."""
    following = packet[6]
    headers = b""
    for _ in range(rng.choice((1, 2, 3, 8, 20))):
        headers = bytes([following, rng.choice((0, 0, 0, 1, 255))]) + rng.randbytes(6) + headers
        following = rng.choice((0, 43, 44, 51, 60, 60))
    data = headers + packet[40:]
    return packet[:4] + struct.pack("!HB", len(data), following) + packet[7:40] + data


def spoiled(packet, rng):
    packet = bytearray(packet)
    for _ in range(rng.randrange(4)):
        if rng.randrange(4) == 0:
            del packet[max(1, rng.randrange(len(packet))) :]
        elif rng.randrange(4) == 0 and packet[0] >> 4 == 6 and len(packet) > 40:
            packet = bytearray(chain(bytes(packet), rng))
        else:
            place = rng.randrange(min(len(packet), 60))
            packet[place] = packet[0] & 0xF0 | rng.getrandbits(4) if place == 0 else rng.getrandbits(8)
    return bytes(packet)


def throw(ends, interface, mac, side, count, seed, known=None):
    rng = random.Random(int(seed))
    with open(ends, encoding="ascii") as file:
        flows = [line.split() for line in file]
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind((interface, 0))
    link = bytes.fromhex(mac.replace(":", "")) + wire.getsockname()[4]
    for _ in range(int(count)):
        protocol, own, sport, peer, dport = rng.choice(flows)
        protocol, sport, dport = int(protocol), int(sport), int(dport)
        if side == "server":
            if known and ":" not in own:
                own, sport = known, rng.randrange(50001, 65536)
            own, sport, peer, dport = peer, dport, own, sport
        packet = ip(own, peer, protocol, transport(protocol, sport, dport, rng), rng)
        match rng.randrange(8):
            case 0:
                about = ip(peer, own, protocol, transport(protocol, dport, sport, rng), rng)
                packet = error(about, own, peer, rng)
            case 1:
                newcomer = transport(protocol, rng.randrange(1024, 65536), dport, rng)
                packet = ip(own, peer, protocol, newcomer, rng)
            case 2:
                packet = bytes([rng.choice((0x45, 0x60))]) + rng.randbytes(rng.randrange(1, 100))
        packet = spoiled(packet, rng)
        kind = struct.pack("!H", 0x86DD if packet[0] >> 4 == 6 else 0x0800)
        wire.send(link + kind + packet)


if __name__ == "__main__":
    if sys.argv[1] == "talk":
        talk(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        throw(*sys.argv[2:])
