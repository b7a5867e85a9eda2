# Sends datagrams one after the other from one port and waits for each echo; prints the number of
# echoes, and the TTL of the last datagram at the server. Also is that server.
#
#   one-by-one.py serve ADDRESS                          at port 7
#   one-by-one.py ask ADDRESS COUNT [PAUSE [PORT [TOS]]]       seconds between them; the server's port; of IPv4
import socket, sys, time
what, address = sys.argv[1:3]
count, pause, port, tos = sys.argv[3:] + ["0", "0", "7", "0"][len(sys.argv) - 3 :]
six = ":" in address
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
if what == "serve":
    if six:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    else:
        s.setsockopt(socket.IPPROTO_IP, 12, 1)  # IP_RECVTTL
    s.bind((address, 7))
    print("ready", flush=True)
    while True:
        data, told, _, peer = s.recvmsg(2000, 100)
        s.sendto(told[0][2][:1] + data[1:], peer)
s.bind(("", 4007))
if int(tos):
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(tos))
s.settimeout(0.3)
s.connect((address, int(port)))
came, ttl = 0, 0
for _ in range(int(count)):
    s.send(b"." * 100)
    try:
        ttl = s.recv(2000)[0]
        came += 1
    except OSError:
        pass
    time.sleep(float(pause))
# On a busy machine an answer may come late and count as the answer to the next datagram. Then the
# last answers are still on their way. If no answer has come, do not wait.
while 0 < came < int(count):
    try:
        ttl = s.recv(2000)[0]
        came += 1
    except OSError:
        break
print(came, ttl)
