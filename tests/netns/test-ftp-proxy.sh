# FTP through a gateway that hides its network: ftp-proxy rewrites what client and server tell each other
# and opens the filter for the data connections, and for nothing else. A real server and real clients,
# active and passive, in both families.
. "$(dirname "$0")/lab.sh"
lab_begin
command -v lftp >/dev/null || unable "no lftp here"
gateway_between_client_and_server
# Who is outside knows nothing of the network inside.
on server ip route del default
on server ip -6 route del default

ftp_server server
mkdir "$WORK/ftp/many"
head -c 20M /dev/urandom >"$WORK/ftp/large"
for number in $(seq 50); do echo "file $number" >"$WORK/ftp/many/$number"; done

filter gateway <<'END_OF_RULES'
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 inet proto tcp to port 21 divert-to 127.0.0.1 port 8021
pass in on lan0 inet6 proto tcp to port 21 divert-to ::1 port 8021
# what the gateway itself sends
pass out on wan0 proto tcp from self to port 21
anchor "ftp-proxy/*"
END_OF_RULES
start proxy gateway "$BIN/ftp-proxy" -d -D 7
start proxy6 gateway "$BIN/ftp-proxy" -6 -d -D 7
await 3 grep -q listening "$WORK/proxy.log" || die "no proxy: $(cat "$WORK/proxy.log")"
await 3 grep -q listening "$WORK/proxy6.log" || die "no proxy: $(cat "$WORK/proxy6.log")"

# rules_left - how many rules of data connections are in force
rules_left() {
	pf gateway -a '*' -sr | grep -c 'keep state (max 1)'
}

no_rules_left() {
	[ "$(rules_left)" = 0 ]
}

# gone NAME - whether the process that `start` began is no more
gone() {
	! kill -0 "${PROCESSES[$1]}" 2>/dev/null
}

deaf() {
	[ -z "$(on gateway ss -Hlnt "src 127.0.0.1:8021")" ]
}

# fetch ADDRESS CURL_OPTION... - of the large file, by curl
fetch() {
	local address=$1
	shift
	case $address in *:*) address="[$address]" ;; esac
	on client curl --silent --noproxy '*' --max-time 20 "$@" "ftp://$address/large" | sha256sum
}

wanted=$(sha256sum <"$WORK/ftp/large")
for address in "$SERVER4" "$SERVER6"; do
	same "passive (EPSV) from $address" "$wanted" "$(fetch "$address")"
	same "active (EPRT) from $address" "$wanted" "$(fetch "$address" --ftp-port -)"
done
same "passive (PASV)" "$wanted" "$(fetch "$SERVER4" --disable-epsv)"
same "active (PORT)" "$wanted" "$(fetch "$SERVER4" --ftp-port - --disable-eprt)"

for passive in true false; do
	on client env -u ftp_proxy lftp -c "
		set ftp:passive-mode $passive; set net:timeout 5; set net:max-retries 1
		open ftp://$SERVER4
		mirror --parallel=3 many $WORK/many-$passive
		put -O upload $WORK/ftp/large -o large-$passive" >"$WORK/lftp.log" 2>&1
	same "many files, passive $passive" "" "$(diff -r "$WORK/ftp/many" "$WORK/many-$passive" 2>&1)"
	same "an upload, passive $passive" "$wanted" "$(sha256sum <"$WORK/ftp/upload/large-$passive")"
done
holds "no rules after the sessions" await 2 no_rules_left

# A transfer lasts; whatever of the proxy is killed in it, its rules are gone within a second.
daemon gateway
slow_fetch() {
	start fetch client curl --silent --noproxy '*' --limit-rate 1M --output /dev/null "ftp://$SERVER4/large"
	await 3 rules_in_force
	at_least 1 "rules during a transfer" "$(rules_left)"
}
rules_in_force() {
	[ "$(rules_left)" != 0 ]
}
slow_fetch
on gateway pkill -KILL --parent "${PROCESSES[proxy]}"
holds "no rules after the worker was killed" await 1 no_rules_left
same "the guardian ends with it" "gone" "$(await 1 gone proxy && echo gone)"
stop fetch
start proxy gateway "$BIN/ftp-proxy" -d -D 7
await 3 grep -q listening "$WORK/proxy.log" || die "no proxy: $(cat "$WORK/proxy.log")"
slow_fetch
stop proxy KILL
holds "no rules after the guardian was killed" await 1 no_rules_left
holds "its worker ends, too" await 1 deaf
stop fetch

# Hostile clients: each is heard out or cut off, and others are served.
start proxy gateway "$BIN/ftp-proxy" -d -D 7 -m 200
await 3 grep -q listening "$WORK/proxy.log" || die "no proxy: $(cat "$WORK/proxy.log")"
on client python3 - "$SERVER4" <<'END_OF_PROGRAM'
import socket, sys
def session(*lines):
    s = socket.create_connection((sys.argv[1], 21), timeout=5)
    s.recv(1000)
    heard = b""
    try:
        for line in lines:
            s.sendall(line)
        while data := s.recv(1000):
            heard += data
            if heard.count(b"\n") >= len(lines):
                break
    except (ConnectionError, TimeoutError):
        pass
    return heard
for lines in ([b"PORT 192,168,100,2,0,80\r\n"], [b"PORT x\r\n"], [b"x" * 10000], [b"NOOP\0\r\n"],
              [b"NOOP\rPASV\r\n"], [b"EPRT |1|192.168.100.2|22|\r\n"], [b"\xff" * 100 + b"\r\n"],
              [b"\n" * 5000]):
    session(*lines)
idle = [socket.create_connection((sys.argv[1], 21), timeout=5) for _ in range(190)]
END_OF_PROGRAM
same "a client after hostile ones" "$wanted" "$(fetch "$SERVER4")"
holds "no rules of hostile ones" await 2 no_rules_left
verdict
