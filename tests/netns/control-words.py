"""Writes down when anything was said on the control connections of fwlab agents, seen from the controller's host: seconds
of the day (UTC), and bytes of payload. Another use, `control-words.py SEEN LOG...`: how many segments there were within
the trials that logs of agents tell of, and how many besides."""

import re
import socket
import struct
import sys

PORT = 19818

# From the kernel's headers: the arrival time comes with the packet, however late it is read.
SO_TIMESTAMPNS = 35


def watch(path):
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    with open(path, "w", buffering=1) as seen:
        packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        seen.write("watching\n")
        while True:
            packet, [(_, _, stamp)], _, _ = packets.recvmsg(65535, 64)
            seconds, nanoseconds = struct.unpack("qq", stamp)
            header = 4 * (packet[0] & 15)
            if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
                continue
            ports = [int.from_bytes(packet[at : at + 2], "big") for at in (header, header + 2)]
            if PORT in ports:
                payload = int.from_bytes(packet[2:4], "big") - header - 4 * (packet[header + 12] >> 4)
                seen.write(f"{seconds % 86400 + nanoseconds / 1e9:.4f} {payload}\n")


def count(path, logs):
    def seconds(text):
        hours, minutes, rest = text.split(":")
        return 3600 * int(hours) + 60 * int(minutes) + float(rest)

    spans = []
    for log in logs:
        for since, until in re.findall(r"trial \d+ from (\S+) to (\S+) UTC", open(log).read()):
            spans.append((seconds(since), seconds(until)))
    times = [float(line.split()[0]) for line in open(path).readlines()[1:]]
    within = sum(any(since <= time <= until for since, until in spans) for time in times)
    print(f"{len(spans) >= 8} {within} {len(times) - within > 10}")


if len(sys.argv) == 2:
    watch(sys.argv[1])
else:
    count(sys.argv[1], sys.argv[2:])
