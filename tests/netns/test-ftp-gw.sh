# FTP through an application proxy: the gateway does not forward, but speaks with both sides. Real
# servers and clients are used. The client names its server, or is diverted. Data connections are
# active and passive on either side, in both families and between them. The test also checks
# forbidden commands, accounts at the gateway, and malformed clients.
# long: 16 s of a processor, 65 s beside five others
. "$(dirname "$0")/lab.sh"
command -v lftp >/dev/null || unable "no lftp here"
gateway_between_client_and_server
# No packet is forwarded, and the server has no route to the client.
on gateway sh \
	-c 'echo 0 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding'
on server ip route del default
on server ip -6 route del default
GATEWAY4=192.168.100.1 GATEWAY6=2001:db8:100::1

ftp_server server
mkdir "$WORK/ftp/many"
head -c 20M /dev/urandom >"$WORK/ftp/large"
for number in $(seq 50); do echo "file $number" >"$WORK/ftp/many/$number"; done

filter gateway <<'END_OF_RULES'
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
# clients that know of the gateway, and what it sends
pass in on lan0 proto tcp to self port { 2121:2130, 50000:50999 }
pass out proto tcp from self
pass in on wan0 proto tcp to self port >= 1024
# clients that know it by another address, and a server that knows it by another one
pass in on lan0 inet proto tcp to 192.0.2.5 port 21 rdr-to 192.168.100.1 port 2121
pass in on lan0 inet proto tcp to 192.0.2.5 port 50000:50999 rdr-to 192.168.100.1
pass out on wan0 inet proto tcp from self to 192.168.10.3 nat-to 192.168.10.99
# clients that do not
pass in quick on lan0 inet proto tcp to 192.168.10.2 port { 21, 50000:50999 } divert-to 127.0.0.1 port 8021
pass in quick on lan0 inet6 proto tcp to 2001:db8:10::2 port { 21, 50000:50999 } divert-to ::1 port 8021
END_OF_RULES

# gateway_at PORT NAME <<<MORE - starts a gateway for direct clients at this port, with MORE in its
# configuration
gateway_at() {
	local port=$1 name=$2
	{
		echo "listen = [\"$GATEWAY4:$port\", \"[$GATEWAY6]:$port\"]"
		echo 'data-ports = "50000-50999"'
		cat
	} >"$WORK/$name.conf"
	start "$name" gateway "$BIN/ftp-gw" -d -f "$WORK/$name.conf"
	await 3 grep -q "listening.*$port" "$WORK/$name.log" ||
		die "no gateway: $(cat "$WORK/$name.log")"
	holds "system calls of the gateway $name are filtered" confined "${PROCESSES[$name]}"
}

gateway_at 2121 passive <<'END_OF_FILE'
transparent = ["127.0.0.1:8021", "[::1]:8021"]
[[rule]]
action = "allow"
from = ["192.168.100.0/24", "2001:db8:100::/64"]
to = ["192.168.10.2", "192.168.10.3", "2001:db8:10::2"]
END_OF_FILE
gateway_at 2122 active <<'END_OF_FILE'
server-data = "active"
shovel = "splice"
[[rule]]
action = "allow"
END_OF_FILE

# in_url ADDRESS - prints an address as URLs have it
in_url() {
	case $1 in *:*) echo "[$1]" ;; *) echo "$1" ;; esac
}

# at SERVER [USER] - prints the user name for the gateway as URLs have it
at() {
	printf '%s@%s' "${2:-anonymous}" "$(in_url "$1")" |
		sed 's/@/%40/g; s/\[/%5B/; s/]/%5D/; s/:/%3A/g'
}

# fetch URL CURL_OPTION... - fetches a file by curl
fetch() {
	on client curl --silent --noproxy '*' --max-time 20 "$@" | sha256sum
}

wanted=$(sha256sum <"$WORK/ftp/large")
for gateway in "$GATEWAY4" "$GATEWAY6"; do
	for server in "$SERVER4" "$SERVER6"; do
		for port in 2121 2122; do
			way="from $server by way of $gateway port $port"
			url="ftp://$(at "$server"):x@$(in_url "$gateway"):$port/large"
			same "passive $way" "$wanted" "$(fetch "$url")"
			same "active $way" "$wanted" "$(fetch "$url" --ftp-port -)"
		done
	done
done
url="ftp://$(at "$SERVER4"):x@$GATEWAY4:2121/large"
same "PASV" "$wanted" "$(fetch "$url" --disable-epsv)"
same "PORT" "$wanted" "$(fetch "$url" --ftp-port - --disable-eprt)"
for server in "$SERVER4" "$SERVER6"; do
	same "transparent, passive, from $server" "$wanted" \
		"$(fetch "ftp://$(in_url "$server")/large")"
	same "transparent, active, from $server" "$wanted" \
		"$(fetch "ftp://$(in_url "$server")/large" --ftp-port -)"
done
same "transparent, PASV" "$wanted" "$(fetch "ftp://$SERVER4/large" --disable-epsv)"

# Translated on the client's side, on the server's side, and on both.
address server eth0 192.168.10.3/24
address gateway wan0 192.168.10.99/24
for gateway in "$GATEWAY4:2121" 192.0.2.5; do
	for server in "$SERVER4" 192.168.10.3; do
		way="from $server by way of $gateway"
		url="ftp://$(at "$server"):x@$gateway/large"
		same "NAT: passive $way" "$wanted" "$(fetch "$url")"
		same "NAT: PASV $way" "$wanted" "$(fetch "$url" --disable-epsv)"
		same "NAT: active $way" "$wanted" "$(fetch "$url" --ftp-port -)"
	done
done
at_least 1 "states of NAT towards the server" "$(pf gateway -ss | grep -c 192.168.10.99)"

# Other clients: listings, uploads, many files, and a resumed transfer.
for port in 2121 2122; do
	for passive in true false; do
		on client env -u ftp_proxy lftp -c "
			set ftp:passive-mode $passive; set net:timeout 5; set net:max-retries 1
			open -p $port -u anonymous@$SERVER4,x ftp://$GATEWAY4
			mirror --parallel=3 many $WORK/many-$port-$passive
			put -O upload $WORK/ftp/large -o large-$port-$passive" >"$WORK/lftp.log" \
				2>&1
		same "many files, port $port, passive $passive" "" \
			"$(diff -r "$WORK/ftp/many" "$WORK/many-$port-$passive" 2>&1)"
		same "an upload, port $port, passive $passive" "$wanted" \
			"$(sha256sum <"$WORK/ftp/upload/large-$port-$passive")"
	done
done
url="ftp://$(at "$SERVER4"):x@$GATEWAY4:2121"
head -c 7000000 "$WORK/ftp/large" >"$WORK/part"
on client curl --silent --noproxy '*' --max-time 20 --continue-at - --output "$WORK/part" \
	"$url/large"
same "the rest of a file" "$wanted" "$(sha256sum <"$WORK/part")"
same "a listing" 50 \
	"$(on client curl --silent --noproxy '*' --max-time 5 --list-only "$url/many/" | wc -l)"
if command -v tnftp >/dev/null; then
	on client env -u ftp_proxy tnftp -n -V >"$WORK/tnftp.log" 2>&1 <<-END_OF_COMMANDS
		open $GATEWAY4 2121
		user anonymous@$SERVER4 x
		binary
		get large $WORK/tnftp
		passive off
		put $WORK/tnftp upload/tnftp
		quit
	END_OF_COMMANDS
	same "tnftp fetches" "$wanted" "$(sha256sum <"$WORK/tnftp")"
	same "tnftp sends, active" "$wanted" "$(sha256sum <"$WORK/ftp/upload/tnftp")"
fi

# Another server.
stop ftp-server
ftp_server server pure-ftpd
for port in 2121 2122; do
	url="ftp://$(at "$SERVER4"):x@$GATEWAY4:$port"
	same "pure-ftpd, port $port" "$wanted" "$(fetch "$url/large")"
	same "pure-ftpd, port $port, IPv6, active" "$wanted" \
		"$(fetch "ftp://$(at "$SERVER6"):x@$GATEWAY4:$port/large" --ftp-port -)"
	on client curl --silent --noproxy '*' --max-time 20 --upload-file "$WORK/ftp/large" \
		"$url/upload/pure-$port"
	same "an upload to pure-ftpd, port $port" "$wanted" \
		"$(sha256sum <"$WORK/ftp/upload/pure-$port")"
done
stop ftp-server
ftp_server server

# talk ADDRESS PORT LINE... - prints the reply codes of the greeting and of these lines
talk() {
	on client python3 - "$@" <<'END_OF_PROGRAM'
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10)
stream, codes = s.makefile("rb"), []
def reply():
    line = stream.readline()
    if line[3:4] == b"-":
        while not (more := stream.readline()).startswith(line[:3] + b" "):
            if not more:
                break
    codes.append(line[:3].decode() or "end")
try:
    reply()
    for line in sys.argv[3:]:
        s.sendall(line.encode().decode("unicode_escape").encode("latin1") + b"\r\n")
        reply()
except (TimeoutError, ConnectionError) as problem:
    codes.append(type(problem).__name__)
print(*codes)
END_OF_PROGRAM
}

# Servers, users, commands and addresses that the rules allow or deny.
gateway_at 2123 strict <<'END_OF_FILE'
[[rule]]
action = "allow"
to = ["192.168.10.2"]
users = ["anonymous"]
commands = ["@read"]
END_OF_FILE
enter="USER anonymous@$SERVER4"
same "a server that no rule names" "220 530 530" \
	"$(talk $GATEWAY4 2123 "USER anonymous@[$SERVER6]" "OPEN $GATEWAY4")"
same "another port of one" "220 530" "$(talk $GATEWAY4 2123 "$enter:22")"
same "a user that the rule does not name" "220 530 230" \
	"$(talk $GATEWAY4 2123 "USER root@$SERVER4" "USER anonymous")"
same "commands that the rule does not name" "220 230 230 550 550 550 250" \
	"$(talk $GATEWAY4 2123 "$enter" "PASS x" "DELE large" "SITE CHMOD 0 large" "STOR x" \
	"CWD many")"
same "TLS" "220 502 230 502 502" "$(talk $GATEWAY4 2121 "AUTH TLS" "$enter" "AUTH TLS" "PROT P")"
same "three ways to name a server" "220 220 230 230" \
	"$(talk $GATEWAY4 2121 "SITE $SERVER4" "USER anonymous" "PASS x")"
same "the third" "220 220 230 230" \
	"$(talk $GATEWAY4 2121 "OPEN $SERVER4 21" "USER anonymous" "PASS x")"
same "data for somebody else" "220 230 230 501 501 522 501" \
	"$(talk $GATEWAY4 2121 "$enter" "PASS x" \
	"PORT 192,168,100,3,200,1" "PORT 192,168,100,2,0,22" "EPRT |2|$CLIENT6|5000|" "PORT 1,2")"
same "only EPSV" "220 230 230 200 503 503 229" \
	"$(talk $GATEWAY4 2121 "$enter" "PASS x" "EPSV ALL" PASV \
	"PORT 192,168,100,2,200,1" EPSV)"
same "a transfer without a way" "220 230 230 425" \
	"$(talk $GATEWAY4 2121 "$enter" "PASS x" "RETR large")"
features=$(printf 'USER anonymous@%s\r\nPASS x\r\nFEAT\r\nQUIT\r\n' "$SERVER4" |
	on client nc -w 3 "$GATEWAY4" 2121)
same "features of both" "yes" \
	"$(grep -q ' EPSV' <<<"$features" && grep -q ' REST STREAM' <<<"$features" &&
	! grep -q AUTH <<<"$features" && echo yes)"

# The shipped rules, and a service on the gateway's loopback interface.
start loopback gateway python3 -c '
import socket
listeners = [socket.create_server(("127.0.0.1", 21)), socket.create_server(("::1", 21), family=socket.AF_INET6)]
print("ready", flush=True)
while True:
    listeners[0].accept()[0].sendall(b"220 loopback\r\n")'
await 3 grep -q ready "$WORK/loopback.log" || die "no service on the loopback interface"
gateway_at 2125 shipped < <(sed -n '/^# Nobody reaches/,$p' "$ROOT/examples/ftp-gw.conf")
for inside in 127.0.0.1 127.1 2130706433 localhost "[::1]" "[::ffff:127.0.0.1]" "[::127.0.0.1]" 0.0.0.0 0 \
	"[::]" "[::ffff:0.0.0.0]" "[64:ff9b::127.0.0.1]" 169.254.0.1 "[::ffff:192.168.10.2]"; do
	same "the shipped rules keep clients from $inside" "220 530" "$(talk $GATEWAY4 2125 "USER anonymous@$inside")"
done
stop shipped
stop loopback

# Accounts at the gateway.
echo secret | "$BIN/ftp-gw" password alice >"$WORK/accounts"
chmod 640 "$WORK/accounts"
cat >"$WORK/accounts.more" <<END_OF_FILE
accounts = "$WORK/accounts"
[[rule]]
action = "allow"
accounts = ["alice"]
END_OF_FILE
gateway_at 2124 accounts <"$WORK/accounts.more"
same "no account" "220 530" "$(talk $GATEWAY4 2124 "$enter")"
same "a wrong password" "220 331 530 530" \
	"$(talk $GATEWAY4 2124 "USER alice" "PASS wrong" "$enter")"
same "an unknown name" "220 331 530" "$(talk $GATEWAY4 2124 "USER bob" "PASS secret")"
same "the third, in any session" "220 331 530 421" "$(talk $GATEWAY4 2124 "USER a" "PASS x" "NOOP")"
same "nothing is looked at then" "220 331 530 421" \
	"$(talk $GATEWAY4 2124 "USER alice" "PASS secret" "NOOP")"
same "other clients have their own" "220 331 530 331 530 331 530 421" \
	"$(talk $GATEWAY6 2124 "USER a" "PASS x" "USER a" "PASS x" "USER a" "PASS x" "NOOP")"
stop accounts
gateway_at 2124 accounts <"$WORK/accounts.more"
same "the right one" "220 331 230 230 230" \
	"$(talk $GATEWAY4 2124 "USER alice" "PASS secret" "$enter" "PASS x")"
same "both at once" "$wanted" \
	"$(fetch "ftp://$(at "$SERVER4" anonymous@alice):x%40secret@$GATEWAY4:2124/large")"
same "no password is told" "" "$(grep -h -e secret -e wrong "$WORK/accounts.log")"
same "a line for each command" 1 \
	"$(grep -c "account=.alice. user=.anonymous. server=$SERVER4:21 command=RETR \
argument=.large. reply=226 bytes=20971520 " "$WORK/accounts.log")"
verdict
