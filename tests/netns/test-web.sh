# long: a browser
#
# The web page in a real browser, and what it refuses.
#
#   client ----------------- gateway (web, browser) ----------------- server
#                  lan0                                wan0
#
# PICTURES=FOLDER keeps pictures of the views.
. "$(dirname "$0")/lab.sh"
command -v chromedriver >/dev/null || unable "no chromedriver (Debian's package chromium-driver)"
/usr/bin/python3 -c 'import selenium' 2>/dev/null || unable "no selenium (Debian's package python3-selenium)"
gateway_between_client_and_server
web server 80 8080

cat >"$WORK/pf.conf" <<'END'
table <guessers> persist { 198.51.100.0/24 }
set skip on lo
block log all label "rest"
block in quick on lan0 from <guessers>
pass out on wan0
pass in on lan0 proto tcp to port { 80 22 } label "web"
pass in on lan0 proto udp to port 7000
END
pf gateway -q -ef "$WORK/pf.conf" || die "the rules were not loaded"
daemon gateway
log=$WORK/gateway-pflog0

# The programs run elsewhere, because nobody may not look into every folder.
chmod 711 "$WORK"
cp "$BIN/skipstep-web" "$WORK/skipstep-web"
broker() {
	"$BIN/skipstep-broker" --tokens "$WORK/tokens" "$@"
}
writer=$(broker token add writer anna)
reader=$(broker token add reader screen)
same "the tokens" "writer anna
reader screen" "$(broker token list)"
# The broker has a folder /etc of its own.
mkdir "$WORK/etc"
cp /etc/passwd /etc/group "$WORK/etc"
cp "$WORK/pf.conf" "$WORK/etc/pf.conf"
start_broker() {
	# shellcheck disable=SC2016
	start broker gateway unshare --mount sh -c 'mount --bind "$0/etc" /etc && exec "$@"' "$WORK" \
		"$BIN/skipstep-broker" --tokens "$WORK/tokens" --socket "$WORK/socket" --group nogroup --log "$log"
}
start_broker
await 5 test -S "$WORK/socket" || die "no broker: $(cat "$WORK/broker.log")"
same "the socket is for root and one group" "srw-rw---- root nogroup" \
	"$(stat -c '%A %U %G' "$WORK/socket")"
page() {
	local name=$1
	shift
	start "$name" gateway setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs \
		"$WORK/skipstep-web" --broker "$WORK/socket" "$@"
	await 5 grep -q "skipstep-web: " "$WORK/$name.log" || die "no page: $(cat "$WORK/$name.log")"
}
page page --listen 127.0.0.1:8099
# ask ARGUMENT... - prints the status of a request, and keeps the answer
ask() {
	on gateway curl -s -o "$WORK/answer" -D "$WORK/head" -w '%{http_code}' --max-time 20 "$@"
}
at=http://127.0.0.1:8099
token="Authorization: Bearer $writer"

# What is refused.
same "the page without a login" 200 "$(ask $at/)"
holds "the page runs no inline script" grep -qi "^content-security-policy: default-src 'none'; script-src 'self'" "$WORK/head"
for path in session info states history log drops file rules; do
	same "$path without a login" 401 "$(ask $at/api/$path)"
done
same "metrics without a token" 401 "$(ask $at/metrics)"
same "another name for this host" 403 "$(ask -H 'Host: evil.example' -H "$token" $at/api/info)"
same "a path out of the page" 404 "$(ask --path-as-is "$at/../etc/passwd")"
same "a wrong token" 401 "$(ask -H 'Authorization: Bearer guess' $at/api/info)"
same "a reader's token" 200 "$(ask -H "Authorization: Bearer $reader" $at/api/info)"
same "a reader cannot confirm" 403 "$(ask -H "Authorization: Bearer $reader" --json '{}' $at/api/confirm)"
same "a change by GET" 405 "$(ask -H "$token" $at/api/confirm)"
same "a role is no change" 405 "$(ask -H "$token" --json '{}' $at/api/role)"
same "an unknown verb" 422 "$(ask -H "$token" --json '{"command": "id"}' $at/api/shell)"
same "an option as a table" 422 "$(ask -H "$token" "$at/api/table?table=-Fall")"
same "a name as an address" 422 \
	"$(ask -H "$token" --json '{"table": "guessers", "address": "example.com"}' $at/api/add)"
same "a page of another site" 403 \
	"$(ask -H "$token" -H 'Origin: http://evil.example' --json '{}' $at/api/revert)"
head -c 3000000 /dev/zero | tr '\0' x >"$WORK/large"
same "a body that is too long" 413 "$(ask -H "$token" -H 'content-type: application/json' --data-binary "@$WORK/large" $at/api/diff)"
ask --cookie-jar "$WORK/cookies" --json "{\"token\": \"$writer\"}" $at/api/login >"$WORK/status"
same "a login" 200 "$(cat "$WORK/status")"
holds "the cookie is kept from scripts and other sites" \
	grep -qi '^set-cookie: skipstep=[0-9a-f]*; HttpOnly; SameSite=Strict' "$WORK/head"
same "a change with the cookie alone" 403 \
	"$(ask --cookie "$WORK/cookies" --json '{}' $at/api/revert)"
ask --cookie "$WORK/cookies" $at/api/session >/dev/null
proof=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["proof"])' "$WORK/answer")
same "a change with the page's proof" 422 \
	"$(ask --cookie "$WORK/cookies" -H "x-skipstep-proof: $proof" --json '{}' $at/api/revert)"
holds "which pfctl refuses: nothing is on trial" grep -q "no rules are on trial" "$WORK/answer"
same "metrics with a token" 200 "$(ask -H "Authorization: Bearer $reader" $at/metrics)"
holds "the metrics" grep -q '^pf_' "$WORK/answer"

# A user who is removed, and a page that only reads.
other=$(broker token add writer bob)
same "bob" 200 "$(ask -H "Authorization: Bearer $other" $at/api/info)"
broker token remove bob
same "bob, removed" 401 "$(ask -H "Authorization: Bearer $other" $at/api/info)"
page read-only --listen 127.0.0.1:8098 --read-only
same "a writer at a page that only reads" 403 \
	"$(ask -H "$token" --json '{}' http://127.0.0.1:8098/api/revert)"
stop read-only

# What somebody finds who takes over skipstep-web: the socket, without a writer's token.
say_to_broker() {
	on gateway setpriv --reuid=nobody --regid=nogroup --clear-groups \
		/usr/bin/python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b"\n")
print(s.makefile().readline().strip())' "$WORK/socket" "$1"
}
same "the broker, without a token" '{"status":"denied","needs":"writer"}' \
	"$(say_to_broker '{"request": {"verb": "load", "rules": "pass", "seconds": 60, "write": true}}')"
holds "the broker, an unknown verb" grep -q '"status":"refused"' \
	<<<"$(say_to_broker '{"request": {"verb": "run", "command": "id"}}')"
holds "nobody else reaches the broker" eval \
	"! on gateway setpriv --reuid=nobody --regid=daemon --clear-groups /usr/bin/python3 -c \
	'import socket; socket.socket(socket.AF_UNIX).connect(\"$WORK/socket\")'"

# HTTPS with client certificates.
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=authority" -keyout "$WORK/authority.key" \
	-out "$WORK/authority.pem" 2>/dev/null
certificate() {
	openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$WORK/$1.key" -out "$WORK/$1.csr" 2>/dev/null
	openssl x509 -req -days 2 -in "$WORK/$1.csr" -CA "$WORK/authority.pem" -CAkey "$WORK/authority.key" \
		-CAcreateserial -extfile <(echo "subjectAltName=DNS:$1") -out "$WORK/$1.pem" 2>/dev/null
}
certificate gateway.example
certificate anna
echo "$writer" >"$WORK/client-token"
chmod 644 "$WORK"/*.key "$WORK/client-token"
refused=$("$WORK/skipstep-web" --listen 0.0.0.0:8443 2>&1)
same "a network without HTTPS" 1 $?
holds "the message names the options" grep -q -- '--certificate' <<<"$refused"
page secure --listen 192.168.100.1:8443 --name gateway.example --certificate "$WORK/gateway.example.pem" \
	--key "$WORK/gateway.example.key" --client-authority "$WORK/authority.pem" --client-token "$WORK/client-token"
secure() {
	on client curl -s -o "$WORK/answer" -w '%{http_code}' --max-time 10 --cacert "$WORK/authority.pem" \
		--resolve gateway.example:8443:192.168.100.1 "$@" \
		https://gateway.example:8443/api/session
}
pf gateway -q -f - <<<"pass" || die "the rules were not loaded"
same "a client with a certificate" 200 "$(secure --cert "$WORK/anna.pem" --key "$WORK/anna.key")"
holds "who may change the filter" grep -q '"can_change":true' "$WORK/answer"
same "a client without one" 000 "$(secure)"
stop secure
pf gateway -q -f "$WORK/pf.conf" || die "the rules were not loaded"

# A connection, for the browser to kill, and 20,000 other states, two for each packet.
start connection client nc "$SERVER4" 80
on client python3 -c 'import socket
for port in range(20000, 30000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", port)); s.sendto(b"x", ("192.168.10.2", 7000)); s.close()'
await 5 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 2 ]' || die "no connection"
at_least 20000 "states" "$(state_count gateway)"

on gateway env HOME="$WORK" PICTURES="${PICTURES:-}" WRITER="$writer" READER="$reader" LOG="$log" PFCTL="$BIN/pfctl" \
	PROBE="nsenter --net=/run/netns/$LAB-client curl -s --max-time 1 http://$SERVER4:8080/" \
	/usr/bin/python3 "$HERE/web-page.py" $at || FAILED=1
same "the file of rules has what was confirmed" 1 "$(grep -c 'port 8443' "$WORK/etc/pf.conf")"
holds "the broker's log names the user of a change" grep -q '^skipstep-broker: anna: confirms' "$WORK/broker.log"

# The broker restarts, and the page goes on.
stop broker
same "without a broker" 502 "$(ask -H "$token" $at/api/info)"
holds "the message names it" grep -q "skipstep-broker" "$WORK/answer"
start_broker
await 5 eval '[ "$(ask -H "$token" $at/api/info)" = 200 ]' || die "the page does not recover"
verdict
