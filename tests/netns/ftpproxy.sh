# Common parts of the tests of ftp-proxy.
. "$(dirname "$0")/ftp.sh"
FILTER=gateway RULE='keep state (max 1)'

# proxied - a gateway that diverts control connections to proxies, and translates its network for
# the server
proxied() {
	gateway_between_client_and_server
	on server ip route del default
	on server ip -6 route del default
	filter gateway <<-'END_OF_RULES'
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass in on lan0 inet proto tcp to port 21 divert-to 127.0.0.1 port 8021
		pass in on lan0 inet6 proto tcp to port 21 divert-to ::1 port 8021
		# for the server that hides behind the gateway's port 2121
		pass in on lan0 inet proto tcp to 192.168.100.1 port 2121 divert-to 127.0.0.1 port 2121
		# what the gateway itself sends
		pass out on wan0 proto tcp from self to port 21
		anchor "ftp-proxy/*"
	END_OF_RULES
}

# proxy NAME OPTION... - starts a proxy
proxy() {
	local name=$1
	shift
	start "$name" gateway "$BIN/ftp-proxy" -d -D 7 "$@"
	await 3 grep -q listening "$WORK/$name.log" || die "no proxy: $(cat "$WORK/$name.log")"
	holds "system calls of the worker of $name are filtered" await 3 \
		confined "$(pgrep --parent "${PROCESSES[$name]}")"
}
