#!/usr/bin/env python3
"""Sees the packets of a divert-packet rule, and lets through what it likes.

    pass out on wan0 inet proto udp to port 53 divert-packet port 700

    divert.py 700               prints every packet and writes it back
    divert.py 700 WORD          drops those that contain WORD
    divert.py 700 OLD NEW       replaces OLD by NEW, which must be as long

skipstepd(8), DIVERTED PACKETS, says what the messages look like.
"""
import ipaddress
import socket
import struct
import sys
import time

# interface, its index, mark, port, direction (1 in, 2 out), Ethernet header; written back as it was
ENVELOPE = struct.Struct("=16sIIHBB2sH14s2x")


def connect(port, instance="main"):
    """The socket is there when skipstepd runs and a rule names the port."""
    path = f"/run/skipstep/{instance}/divert/{port}"
    while True:
        try:
            program = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            program.connect(path)
            return program
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.1)


def ends(packet):
    """Source and destination of an IP packet."""
    at, length = (12, 4) if packet[0] >> 4 == 4 else (8, 16)
    return [ipaddress.ip_address(packet[i : i + length]) for i in (at, at + length)]


def main():
    arguments = sys.argv[1:]
    instance = "main"
    if arguments[:1] == ["-p"]:
        instance, arguments = arguments[1], arguments[2:]
    if not 1 <= len(arguments) <= 3:
        sys.exit(__doc__)
    port, words = arguments[0], [word.encode() for word in arguments[1:]]
    if len(words) == 2 and len(words[0]) != len(words[1]):
        sys.exit("divert.py: the lengths of the words differ")
    program = connect(port, instance)
    print("ready", flush=True)
    while message := program.recv(65535 + ENVELOPE.size):
        interface, _, _, _, direction, *_ = ENVELOPE.unpack_from(message)
        packet = message[ENVELOPE.size :]
        drop = len(words) == 1 and words[0] in packet
        source, destination = ends(packet)
        print(
            "drop" if drop else "pass",
            {1: "in", 2: "out"}[direction],
            "on",
            interface.rstrip(b"\0").decode(),
            f"{source} > {destination}",
            len(packet),
            flush=True,
        )
        if len(words) == 2:
            packet = packet.replace(*words)
        if not drop:
            program.send(message[: ENVELOPE.size] + packet)


main()
