"""Makes interfaces and says how long each was there before it was attached.

late-links.py FOLDER COUNT - FOLDER has the pins of links; prints for each interface a line with the
milliseconds from before the kernel was asked for it until its links for packets in and out were
pinned, and those of a grace period of RCU: the kernel waits for one in each attachment, when the
program already runs
"""

import ctypes
import os
import socket
import struct
import sys
import time

NETLINK_ROUTE, RTM_NEWLINK, NLMSG_ERROR = 0, 16, 2
REQUEST, ACK, CREATE, EXCLUSIVE = 1, 4, 0x400, 0x200
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND = 3, 18, 1
PATIENCE = 20

MEMBARRIER, MEMBARRIER_GLOBAL = {"x86_64": 324, "aarch64": 283}.get(os.uname().machine), 1


def attribute(number, value):
    header = struct.pack("=HH", 4 + len(value), number)
    return header + value + bytes(-len(value) % 4)


def make(netlink, name):
    kind = attribute(IFLA_INFO_KIND, b"bridge")
    body = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
    body += attribute(IFLA_IFNAME, name.encode() + b"\0") + attribute(IFLA_LINKINFO, kind)
    flags = REQUEST | ACK | CREATE | EXCLUSIVE
    netlink.send(struct.pack("=IHHII", 16 + len(body), RTM_NEWLINK, flags, 1, 0) + body)
    answer = netlink.recv(65536)
    kind, error = struct.unpack_from("=H", answer, 4)[0], struct.unpack_from("=i", answer, 16)[0]
    if kind != NLMSG_ERROR or error != 0:
        sys.exit(f"{name}: error {error}")


def milliseconds(work):
    begin = time.monotonic()
    work(begin)
    return (time.monotonic() - begin) * 1000


def grace_period(_):
    ctypes.CDLL(None).syscall(MEMBARRIER, MEMBARRIER_GLOBAL, 0, 0)


def await_pin(path, begin):
    while not os.path.exists(path):
        if time.monotonic() - begin > PATIENCE:
            sys.exit(f"{path}: not there after {PATIENCE} s")
        time.sleep(0.0001)
    return (time.monotonic() - begin) * 1000


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)
    netlink.bind((0, 0))
    for number in range(count):
        name = f"late{number}"
        begin = time.monotonic()
        make(netlink, name)
        index = socket.if_nametoindex(name)
        sides = [await_pin(os.path.join(folder, f"{index}-{side}"), begin) for side in ("in", "out")]
        time.sleep(0.1)  # skipstepd is done with it
        print("%.2f %.2f" % tuple(sides), "%.2f" % milliseconds(grace_period), flush=True)


main()
