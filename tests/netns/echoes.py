# Sends echo requests to many addresses at once, in order, and prints the addresses that answer.
#
#   LAST-ADDRESS... -- ADDRESS...   sends one request to each address, and then some to the last
#                                   addresses, one of each family, which must answer; prints the
#                                   addresses that answer before, in the order of the requests
import select, socket, struct, sys, time
from packets import ICMP, ICMP6, echo
from wires import in_order, roomy

LAST = 60000

def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET

def request(sockets, address, number):
    own = "::" if ":" in address else "0.0.0.0"  # the kernel computes the checksum over IPv6
    sockets[family(address)].sendto(echo(own, address, 0x4543, number, b"echo"), (address, 0))

def answers(sockets, seconds):
    """Yields the number of each answer."""
    for opened in select.select(sockets.values(), [], [], seconds)[0]:
        reply = opened.recv(2000)
        if opened.family == socket.AF_INET:
            reply = reply[(reply[0] & 15) * 4:]
        kind, ident, number = struct.unpack("!BxxxHH", reply[:8])
        if kind == (0 if opened.family == socket.AF_INET else 129) and ident == 0x4543:
            yield number

def main(arguments):
    split = arguments.index("--")
    last, asked = arguments[:split], arguments[split + 1:]
    in_order()
    sockets = {socket.AF_INET: socket.socket(socket.AF_INET, socket.SOCK_RAW, ICMP),
               socket.AF_INET6: socket.socket(socket.AF_INET6, socket.SOCK_RAW, ICMP6)}
    for opened in sockets.values():
        roomy(opened)
    for number, address in enumerate(asked):
        request(sockets, address, number)
    answered = set()
    # sent twice, because XDP sends several packets at once
    for number in range(LAST, LAST + 2 * len(last)):
        request(sockets, last[number % len(last)], number)
        deadline = time.monotonic() + 5
        while number not in answered:
            if time.monotonic() > deadline:
                sys.exit("no answer from " + last[number % len(last)])
            answered.update(answers(sockets, 0.2))
    print(" ".join(address for number, address in enumerate(asked) if number in answered))

main(sys.argv[1:])
