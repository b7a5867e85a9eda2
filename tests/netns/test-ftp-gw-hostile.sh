# Hostile use of ftp-gw: malformed lines, thousands of silent sessions, clients that do not read,
# transfers that break off at either end, a file of 1 GiB, and the end of ftp-gw at any time.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
on gateway sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
GATEWAY=192.168.100.1
ftp_server server
head -c 20M /dev/urandom >"$WORK/ftp/large"
wanted=$(sha256sum <"$WORK/ftp/large")
# sparse, with data at both ends
head -c 1M /dev/urandom >"$WORK/ftp/gigabyte"
truncate --size 1023M "$WORK/ftp/gigabyte"
head -c 1M /dev/urandom >>"$WORK/ftp/gigabyte"

# gateway_at PORT NAME <<<MORE - starts a gateway at this port that allows every client and the
# server
gateway_at() {
	local port=$1 name=$2
	{
		echo "listen = [\"$GATEWAY:$port\"]"
		echo 'rule = [{ action = "allow", to = ["192.168.10.2"] }]'
		cat
	} >"$WORK/$name.conf"
	start "$name" gateway "$BIN/ftp-gw" -d -f "$WORK/$name.conf"
	await 3 grep -q "listening.*$port" "$WORK/$name.log" ||
		die "no gateway: $(cat "$WORK/$name.log")"
}

fetch() {
	on client curl --silent --noproxy '*' --max-time 20 \
		"ftp://anonymous%40$SERVER4:x@$GATEWAY:$1/large" | sha256sum
}

# memory NAME - prints the resident memory of a gateway in kB
memory() {
	awk '$1 == "VmRSS:" { print $2 }' "/proc/${PROCESSES[$1]}/status"
}

# sockets - prints the number of TCP connections on the gateway
sockets() {
	on gateway ss -Hnt state established | wc -l
}

no_sockets() {
	[ "$(sockets)" = 0 ]
}

gateway_at 2121 gw <<'END_OF_FILE'
limits = { sessions = 11000, sessions-per-client = 11000 }
END_OF_FILE
same "it is somebody else" "0 0000000000000000" \
	"$(awk '$1 == "Uid:" { print ($2 == 0) + ($3 == 0) + ($4 == 0) }
	$1 == "CapEff:" { print $2 }' "/proc/${PROCESSES[gw]}/status" | xargs)"

# The sessions of a special client, which prints a line for each session.
cat >"$WORK/client.py" <<'END_OF_PROGRAM'
import errno, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
what, gateway, port, server = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
class Session:
    def __init__(self, enter=True, buffer=None):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(10)
        self.socket.connect((gateway, port))
        self.stream = self.socket.makefile("rb")
        if enter:
            self.reply()
            self.ask("USER anonymous@" + server)
    def reply(self):
        while True:
            line = self.stream.readline()
            if line[3:4] == b" " or not line:
                return line[:3].decode() or "end"
    def ask(self, text):
        self.socket.sendall(text.encode() + b"\r\n")
        return self.reply()
    def data(self, buffer=None):
        self.socket.sendall(b"EPSV\r\n")
        data = socket.socket()
        if buffer:
            data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        data.settimeout(10)
        data.connect((gateway, int(self.stream.readline().split(b"|")[3])))
        return data
def outcome(data):
    try:
        while data.recv(1 << 20):
            pass
        return "whole"
    except ConnectionError:
        return "broken"
if what == "malformed":
    for line in (b"x" * 10000, b"NOOP\0\r\n", b"NOOP\rPASV\r\n", b"\n" * 5000, b"\xff" * 100 + b"\r\n",
                 b"\xff\xf4\xff\xf2ABOR\r\n", b"USER @\r\n", b"USER a@b@c@\r\n", b"OPEN " + b"a" * 3000 + b"\r\n",
                 b"SITE [::1\r\n", b"USER x@" + server.encode() + b"\r\nPORT " + b"9," * 900 + b"9\r\n",
                 b"USER x@" + server.encode() + b"\r\nEPRT |||||\r\nEPSV 3\r\nMODE B\r\nSTRU R\r\nPORT\r\n"):
        s = Session(enter=False)
        try:
            s.reply()
            s.socket.sendall(line)
            s.socket.shutdown(socket.SHUT_WR)
            while s.stream.read(1000):
                pass
        except OSError as gone:
            if gone.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
    print("over")
elif what == "silent":
    all = [Session(enter=False) for _ in range(int(sys.argv[5]))]
    print("ready", flush=True)
    time.sleep(60)
elif what == "slow":
    all = []
    for _ in range(50):
        s = Session(buffer=4096)
        data = s.data(buffer=4096)
        s.ask("RETR large")
        all.append((s, data))
    # and some that speak and do not listen
    for _ in range(10):
        s = Session(buffer=4096)
        s.socket.setblocking(False)
        try:
            while s.socket.send(b"HELP\r\n" * 1000):
                pass
        except BlockingIOError:
            all.append(s)
    print("ready", flush=True)
    time.sleep(60)
elif what == "abort":
    s = Session()
    data = s.data(buffer=4096)
    print(s.ask("RETR large"), end=" ")
    # how clients interrupt (RFC 959 section 4.1.3): IP, DM as urgent data, and the command
    s.socket.sendall(b"\xff\xf4\xff")
    s.socket.send(b"\xf2", socket.MSG_OOB)
    print(s.ask("ABOR"), s.reply(), outcome(data), s.ask("NOOP"), end=" ")
    data = s.data()
    print(s.ask("RETR large"), outcome(data), s.reply(), s.ask("QUIT"))
elif what == "close":
    s = Session()
    data = s.data(buffer=4096)
    print(s.ask("RETR large"), end=" ")
    data.close()
    print(s.reply(), s.ask("NOOP"))
elif what == "later":
    s = Session()
    data = s.data(buffer=4096)
    print(s.ask("RETR large"), end=" ")
    s.socket.sendall(b"NOOP\r\nQUIT\r\n")
    print(outcome(data), s.reply(), s.reply(), s.reply(), s.reply())
elif what == "leave":
    s = Session()
    data = s.data()
    s.ask("STOR upload/left")
    data.sendall(b"x" * 100000)
elif what == "broken":
    s = Session()
    data = s.data(buffer=4096)
    s.ask("RETR large")
    print("ready", flush=True)
    time.sleep(1)
    print(outcome(data))
elif what == "timeout":
    start = time.monotonic()
    print(Session(enter=False).reply(), end=" ")
    s = Session(enter=False)
    s.reply()
    print(s.reply(), s.reply())
elif what.startswith("endless-") or what == "warm-up":
    def end(lines):
        for line in lines:
            if line.startswith(b"421"):
                return "421"
        return "no 421"
    s = Session()
    if what == "endless-transfer":
        data = s.data()
        s.socket.sendall(b"RETR x\r\n")
    elif what == "endless-features":
        s.socket.sendall(b"FEAT\r\n")
    elif what == "endless-help":
        s.socket.sendall(b"HELP\r\n")
    elif what == "endless-line":
        try:
            for _ in range(1000):
                s.socket.sendall(b"x" * 65536)
        except ConnectionError:
            pass
    try:
        print(end(s.stream) if what != "warm-up" else "over")
    except (ConnectionError, TimeoutError) as problem:
        print("421" if what == "endless-line" else type(problem).__name__)
elif what == "limit":
    all = [Session(enter=False) for _ in range(4)]
    print(*[s.reply() for s in all])
END_OF_PROGRAM
# client WHAT PORT [NUMBER] - runs a session of this kind
client() {
	on client python3 "$WORK/client.py" "$1" "$GATEWAY" "$2" "$SERVER4" "${@:3}"
}

same "lines that are none" "over" "$(client malformed 2121)"
same "a client after them" "$wanted" "$(fetch 2121)"
same "ABOR, and another transfer" "150 426 225 broken 200 150 whole 226 221" "$(client abort 2121)"
same "a client that closes its data connection" "150 426 200" "$(client close 2121)"
same "commands within a transfer wait for its end" "150 whole 226 200 221 end" \
	"$(client later 2121)"
client leave 2121
holds "nothing is left of one that leaves" await 3 no_sockets
start broken client python3 "$WORK/client.py" broken "$GATEWAY" 2121 "$SERVER4"
await 5 grep -q ready "$WORK/broken.log"
# a session of vsftpd has two processes, parent and child
sessions=$(pgrep --parent "${PROCESSES[ftp-server]}" | paste -sd ,)
pgrep --parent "$sessions" | xargs -r kill -KILL ${sessions//,/ }
await 5 grep -q -e whole -e broken "$WORK/broken.log"
same "a file that a killed server did not finish" "broken" "$(tail -n 1 "$WORK/broken.log")"
stop broken

for shovel in 64k splice; do
	gateway_at 2130 large <<<"shovel = \"$shovel\""
	same "1 GiB, $shovel" "whole" "$(on client curl --silent --noproxy '*' --max-time 25 \
		"ftp://anonymous%40$SERVER4:x@$GATEWAY:2130/gigabyte" |
		cmp - "$WORK/ftp/gigabyte" && echo whole)"
	stop large
done

before=$(memory gw)
start silent client python3 "$WORK/client.py" silent "$GATEWAY" 2121 "$SERVER4" 10000
holds "10,000 sessions that say nothing" await 30 grep -q ready "$WORK/silent.log"
same "a client beside them" "$wanted" "$(fetch 2121)"
at_least 1 "kB for each of them" $((($(memory gw) - before) / 10000))
at_least "$(memory gw)" "kB in all, of 200 MB" 200000
stop silent
holds "they go" await 10 no_sockets
start slow client python3 "$WORK/client.py" slow "$GATEWAY" 2121 "$SERVER4"
holds "60 clients that do not read" await 20 grep -q ready "$WORK/slow.log"
same "a client beside them" "$wanted" "$(fetch 2121)"
at_least "$(memory gw)" "kB in all, of 300 MB" 300000
stop slow
holds "they go, too" await 10 no_sockets

# A server with endless replies, and clients with endless lines.
cat >"$WORK/endless.py" <<'END_OF_PROGRAM'
import socket, threading
MOST = 64 << 20
def serve(control):
    stream = control.makefile("rb")
    say = lambda text: control.sendall(text.encode() + b"\r\n")
    def without_end(text):
        for _ in range(MOST // len(text) // 10000):
            control.sendall(text * 10000)
    say("220 hello")
    for line in stream:
        verb = line.split()[0].upper()
        if verb == b"PASV":
            data = socket.create_server((control.getsockname()[0], 0))
            port = data.getsockname()[1]
            say("227 (%s,%d,%d)" % (control.getsockname()[0].replace(".", ","), port >> 8, port & 255))
        elif verb == b"RETR":
            say("150 here")
            data.accept()[0].close()
            without_end(b"226-more\r\n")
        elif verb == b"FEAT":
            say("211-Features")
            without_end(b" SIZE\r\n")
        elif verb == b"HELP":
            without_end(b"214-more\r\n")
        else:
            say("230 in")
listener = socket.create_server(("", 2100))
print("ready", flush=True)
def quietly(control):
    try:
        serve(control)
    except OSError:
        pass
while True:
    threading.Thread(target=quietly, args=[listener.accept()[0]], daemon=True).start()
END_OF_PROGRAM
start endless server python3 "$WORK/endless.py"
await 5 grep -q ready "$WORK/endless.log" || die "no server: $(cat "$WORK/endless.log")"
cat >"$WORK/bounded.conf" <<END_OF_FILE
listen = ["$GATEWAY:2131"]
rule = [{ action = "allow", to = ["$SERVER4"], ports = [2100] }]
END_OF_FILE
start bounded gateway "$BIN/ftp-gw" -d -f "$WORK/bounded.conf"
await 3 grep -q "listening.*2131" "$WORK/bounded.log" || die "no gateway: $(cat "$WORK/bounded.log")"
endless() {
	client "$1" 2131
}
SERVER4=$SERVER4:2100 endless warm-up >/dev/null
before=$(memory bounded)
for what in transfer features help; do
	same "an endless reply: $what" "421" "$(SERVER4=$SERVER4:2100 endless "endless-$what")"
	at_least "$(($(memory bounded) - before))" "kB more after it, of 8 MB" 8000
done
same "an endless line of a client" "421" "$(SERVER4=$SERVER4:2100 endless endless-line)"
at_least "$(($(memory bounded) - before))" "kB more after it, of 8 MB" 8000
for limit in "1000 lines in a reply" "1048576 bytes in an answer" "a line of more than 4096 bytes"; do
	holds "the log names the limit: $limit" grep -q "session ends: .*$limit" "$WORK/bounded.log"
done
stop bounded
stop endless

gateway_at 2122 short <<'END_OF_FILE'
timeouts = { login = 1 }
limits = { sessions-per-client = 3 }
END_OF_FILE
same "who does not log in" "220 421 end" "$(client timeout 2122)"
same "too many of one client" "220 220 220 421" "$(client limit 2122)"

stop gw KILL
same "nothing is left of a gateway that was killed" "" "$(on gateway ss -Hnlt "sport = :2121")"
gateway_at 2121 gw <<<""
same "another takes its place at once" "$wanted" "$(fetch 2121)"
stop gw KILL

# said CONFIGURATION - prints the error about a wrong configuration
said() {
	echo "$1" >"$WORK/wrong.conf"
	on gateway "$BIN/ftp-gw" -d -f "$WORK/wrong.conf" 2>&1
}
same "a key that is none" "ftp-gw: $WORK/wrong.conf:1: unknown field" \
	"$(said 'lisen = []' | sed -n '1s/ .lisen.*//p')"
same "a user that is none" "ftp-gw: there is no user nobody-of-this-name" \
	"$(said "listen = [\"$GATEWAY:2140\"]
user = \"nobody-of-this-name\"")"
verdict
