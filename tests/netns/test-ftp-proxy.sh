# FTP through a gateway that hides its network: ftp-proxy rewrites what client and server tell each other
# and opens the filter for the data connections, and for nothing else. Real servers and real clients, active and
# passive, in both families, with translation on either side; and what is left when a process of it is killed.
. "$(dirname "$0")/lab.sh"
. "$HERE/ftpproxy.sh"
lab_begin
proxied
proxy proxy
proxy proxy6 -6
proxy reverse -R "$SERVER4" -p 2121

# gone NAME - whether the process that `start` began is no more
gone() {
	! kill -0 "${PROCESSES[$1]}" 2>/dev/null
}

deaf() {
	[ -z "$(on gateway ss -Hlnt "src 127.0.0.1:8021")" ]
}

files
both_servers "through the proxy"
ftp_server server
same "the server behind the gateway, passive" "$WANTED" "$(fetch 192.168.100.1:2121)"
same "the server behind the gateway, active" "$WANTED" "$(fetch 192.168.100.1:2121 --ftp-port -)"
stop reverse

# FTP_BYTES=1G on a machine that has the time
head -c "${FTP_BYTES:-100M}" /dev/zero >"$WORK/ftp/huge"
same "a download of ${FTP_BYTES:-100M}" "$(sha256sum <"$WORK/ftp/huge")" \
	"$(on client curl --silent --noproxy '*' --max-time 120 "ftp://$SERVER4/huge" | sha256sum)"
rm "$WORK/ftp/huge"

# A transfer lasts; whatever of the proxy is killed in it, its rules are gone within a second.
daemon gateway
slow_fetch() {
	start fetch client curl --silent --noproxy '*' --limit-rate 1M --output /dev/null "ftp://$SERVER4/large"
	await 3 rules_in_force
	at_least 1 "rules during a transfer" "$(rules_left)"
}
slow_fetch
on gateway pkill -KILL --parent "${PROCESSES[proxy]}"
holds "no rules after the worker was killed" await 1 no_rules_left
same "the guardian ends with it" "gone" "$(await 1 gone proxy && echo gone)"
stop fetch
proxy proxy
slow_fetch
stop proxy KILL
holds "no rules after the guardian was killed" await 1 no_rules_left
holds "its worker ends, too" await 1 deaf
stop fetch
verdict
