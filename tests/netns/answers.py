# Sends packets with forged sources, and prints the answers on a wire.
#
#   send IFACE LINK-ADDRESS PROTOCOL FROM FROM-PORT TO TO-PORT [COUNT]
#            sends SYNs (tcp) or datagrams (udp) to the link address
#   ack IFACE LINK-ADDRESS FROM FROM-PORT TO TO-PORT
#            sends a SYN, waits up to a second for the SYN|ACK, and acknowledges the SYN|ACK
#   hear IFACE
#            prints "ready"; after SIGTERM, a line for each TCP segment and ICMP error that arrived
#            on the wire, as "tcp SA from FROM to TO" or "icmp 3 3 from FROM to TO", then "end"
import signal, struct, sys
from packets import ICMP, ICMP6, TCP, datagram, segment
from wires import Wire

FLAGS = "FSRPAU"

def send(iface, link_address, protocol, source, source_port, destination, destination_port,
         count="1"):
    wire = Wire(iface, link_address)
    for number in range(int(count)):
        ends = (source, int(source_port), destination, int(destination_port))
        wire.send(datagram(*ends, b"ping") if protocol == "udp" else segment(*ends, 2, 1000 + number, 0))

def ack(iface, link_address, source, source_port, destination, destination_port):
    wire = Wire(iface, link_address)
    wire.socket.settimeout(1)
    wire.send(segment(source, int(source_port), destination, int(destination_port), 2, 1000, 0))
    try:
        while True:
            protocol, _, to, tcp = wire.receive()
            if protocol == TCP and to == source and tcp[13] & 0x12 == 0x12:
                break
    except TimeoutError:
        print("no SYN|ACK")
        return
    seq, = struct.unpack("!I", tcp[4:8])
    wire.send(segment(source, int(source_port), destination, int(destination_port), 16, 1001,
                      (seq + 1) & 0xffffffff))
    print("acknowledged")

def hear(iface):
    heard = []
    wire = Wire(iface)
    # packets that arrived before the signal are still read
    signal.signal(signal.SIGTERM, lambda *_: wire.socket.settimeout(0))
    print("ready", flush=True)
    while True:
        try:
            protocol, source, destination, transport = wire.receive()
        except (BlockingIOError, TimeoutError):
            print("\n".join(heard + ["end"]), flush=True)
            return
        ends = "from %s to %s" % (source, destination)
        if protocol == TCP:
            names = "".join(name for bit, name in enumerate(FLAGS) if transport[13] >> bit & 1)
            heard.append("tcp %s %s" % (names, ends))
        elif protocol == ICMP or protocol == ICMP6 and transport[0] < 128:
            heard.append("icmp %d %d %s" % (transport[0], transport[1], ends))

{"send": send, "ack": ack, "hear": hear}[sys.argv[1]](*sys.argv[2:])
