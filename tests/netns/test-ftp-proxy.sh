# FTP through a gateway with NAT. ftp-proxy rewrites the addresses that client and server send, and
# opens the filter for the data connections only. Real servers and clients are used, active and
# passive, in both families, with translation on either side. The test also kills processes of
# ftp-proxy.
. "$(dirname "$0")/ftpproxy.sh"
proxied
proxy proxy
proxy proxy6 -6
proxy reverse -R "$SERVER4" -p 2121

# gone NAME - true if the process of `start NAME` has ended
gone() {
	! kill -0 "${PROCESSES[$1]}" 2>/dev/null
}

deaf() {
	[ -z "$(on gateway ss -Hlnt "src 127.0.0.1:8021")" ]
}

files
both_servers "through the proxy"
ftp_server server pure-ftpd
for _ in $(seq 5); do aborts "through the proxy, pure-ftpd"; done
stop ftp-server
ftp_server server
same "the server behind the gateway, passive" "$WANTED" "$(fetch 192.168.100.1:2121)"
same "the server behind the gateway, active" "$WANTED" "$(fetch 192.168.100.1:2121 --ftp-port -)"
same "who shuts its side behind QUIT is answered" 221 \
	"$(printf 'QUIT\r\n' | on client timeout 5 nc -N 192.168.100.1 2121 | tail -n 1 |
	cut -c 1-3)"
stop reverse

huge "through the proxy"

# A session waits for its data connection. After any process of the proxy is killed, its rules are
# gone within a second.
stop ftp-server
start naive server python3 "$HERE/naive_ftp.py" serve
await 10 listening server tcp 21 || die "no FTP server: $(cat "$WORK/naive.log")"
daemon gateway
hold() {
	# the rules of the previous session stay for a moment
	await 3 no_rules_left
	start hold client python3 "$HERE/naive_ftp.py" hold "$SERVER4" -
	await 5 rules_in_force
	same "rules for a connection that does not come" 2 "$(rules_left)"
}
hold
on gateway pkill -KILL --parent "${PROCESSES[proxy]}"
holds "no rules after the worker was killed" await 1 no_rules_left
same "the guardian ends with it" "gone" "$(await 1 gone proxy && echo gone)"
stop hold
proxy proxy
hold
stop proxy KILL
holds "no rules after the guardian was killed" await 1 no_rules_left
holds "its worker ends, too" await 1 deaf
stop hold
verdict
