# A collector of flows (IPFIX, RFC 7011), which reads records by the templates that it received.
# Prints "ready", and a line for each record with all fields of pflow(4). Also prints errors in a
# message, its sequence number or the times of a record.
#
#   flow-collector.py PORT
import socket, struct, sys, time

NAMES = {8: "from", 27: "from", 12: "to", 28: "to", 7: "port", 11: "to-port", 10: "in", 14: "out",
         2: "packets", 1: "octets", 152: "start", 153: "end", 5: "tos", 4: "protocol",
         225: "new-from", 226: "new-to", 227: "new-port", 228: "new-to-port"}
ADDRESSES = (8, 12, 225, 226, 27, 28)

def fields(data, layout):
    """Returns the values of one record by their names."""
    record, at = {}, 0
    for element, length in layout:
        value = data[at:at + length]
        at += length
        if element in ADDRESSES:
            family = socket.AF_INET6 if length == 16 else socket.AF_INET
            record[NAMES[element]] = socket.inet_ntop(family, value)
        else:
            record[NAMES[element]] = int.from_bytes(value, "big")
    return record

def told(number, record):
    now = time.time() * 1000
    if not now - 60000 < record["start"] <= record["end"] < now + 2000:
        yield "times: %d to %d at %d" % (record["start"], record["end"], now)
    if not record["in"] == record["out"] > 0:
        yield "interfaces: %d and %d" % (record["in"], record["out"])
    record["protocol"] = {6: "tcp", 17: "udp"}.get(record["protocol"], record["protocol"])
    ends = "%(from)s %(port)d > %(to)s %(to-port)d"
    if "new-from" in record:
        ends += " as %(new-from)s %(new-port)d > %(new-to)s %(new-to-port)d"
    counts = "%(packets)d packets, %(octets)d octets, tos %(tos)d, %(protocol)s"
    yield "%d: %s" % (number, (ends + ", " + counts) % record)

def main(port):
    collector = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    collector.bind(("", int(port)))
    print("ready", flush=True)
    templates, records = {}, None
    while True:
        message = collector.recv(65535)
        version, length, _, sequence, _ = struct.unpack("!HHIII", message[:16])
        if version != 10 or length != len(message):
            print("version %d, length %d of %d" % (version, length, len(message)), flush=True)
        if records is not None and sequence != records:
            print("number %d instead of %d" % (sequence, records), flush=True)
        records = sequence
        at = 16
        while at < length:
            number, size = struct.unpack("!HH", message[at:at + 4])
            data, at = message[at + 4:at + size], at + size
            while number == 2 and data:
                template, count = struct.unpack("!HH", data[:4])
                pairs = struct.unpack("!%dH" % (2 * count), data[4:4 + 4 * count])
                templates[template] = list(zip(pairs[::2], pairs[1::2]))
                data = data[4 + 4 * count:]
            while number > 2 and data:
                layout = templates[number]
                for line in told(number, fields(data, layout)):
                    print(line, flush=True)
                data = data[sum(length for _, length in layout):]
                records += 1

main(*sys.argv[1:])
