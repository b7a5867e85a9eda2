# Sockets that use an address of another host (test-divert-reply.sh).
#
#   ask OWN SERVER SECONDS   asks the server in the name of OWN, over TCP and UDP, with a raw socket
#                            of protocol 254 and with echo requests: each twice, from the same
#                            ports; waits SECONDS for each answer. Prints the protocols answered
#   echo                     prints "ready", and sends raw packets of protocol 254 back
import select, socket, struct, sys
from packets import ICMP, ICMP6, echo

RAW, PORT = 254, 7
IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75

def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET

def foreign(own, kind, protocol, port):
    opened = socket.socket(family(own), kind, protocol)
    level, option = ((socket.IPPROTO_IPV6, IPV6_TRANSPARENT) if ":" in own
                     else (socket.IPPROTO_IP, IP_TRANSPARENT))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(level, option, 1)
    opened.bind((own, port))
    return opened

def behind_ip(opened, data):
    """A raw socket of IPv4 gets the IP header as well."""
    return data[(data[0] & 15) * 4:] if opened.family == socket.AF_INET else data

def stream(own, server, seconds, words):
    with foreign(own, socket.SOCK_STREAM, 0, 4000) as opened:
        opened.settimeout(seconds)
        opened.connect((server, PORT))
        opened.sendall(words)
        heard = opened.recv(100)
        # closing resets the connection, so that the ports are free at once
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return heard == words

def datagrams(own, server, seconds, words):
    with foreign(own, socket.SOCK_DGRAM, 0, 4000) as opened:
        opened.settimeout(seconds)
        opened.sendto(words, (server, PORT))
        return opened.recv(100) == words

def raw(own, server, seconds, words):
    with foreign(own, socket.SOCK_RAW, RAW, 0) as opened:
        opened.settimeout(seconds)
        opened.sendto(words, (server, 0))
        return behind_ip(opened, opened.recv(100)) == words

def echoes(own, server, seconds, words):
    with foreign(own, socket.SOCK_RAW, ICMP6 if ":" in own else ICMP, 0) as opened:
        ident = words[-1]
        opened.sendto(echo(own, server, ident, 1, words), (server, 0))
        while select.select([opened], [], [], seconds)[0]:
            answer = behind_ip(opened, opened.recv(100))
            if answer[4:] == struct.pack("!HH", ident, 1) + words:
                return True
        raise TimeoutError

def ask(own, server, seconds):
    answered = []
    for way in (stream, datagrams, raw, echoes):
        for words in (b"hello 1", b"hello 2"):
            try:
                right = way(own, server, float(seconds), words)
                answered.append(way.__name__ if right else "not " + way.__name__)
            except TimeoutError:
                pass
    print(*answered)

def answer_raw():
    sockets = [socket.socket(kind, socket.SOCK_RAW, RAW)
               for kind in (socket.AF_INET, socket.AF_INET6)]
    print("ready", flush=True)
    while True:
        for opened in select.select(sockets, [], [])[0]:
            data, peer = opened.recvfrom(2000)
            opened.sendto(behind_ip(opened, data), peer[:1] + (0,))

if sys.argv[1] == "ask":
    ask(*sys.argv[2:])
else:
    answer_raw()
