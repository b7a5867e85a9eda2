# Rules about the owner of a socket, and the owner in the log. On a router rules about users match
# its own traffic, not forwarded packets.
#
#   client                gateway                server
#   eth0 ------------ lan0      wan0 ------------ eth0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
echo_server server 53
# the server listens on every address of the gateway, and still owns no forwarded packet
echo_server gateway 53

NOBODY=$(id -u nobody) GROUP=$(id -g nobody)

# as_nobody COMMAND... - runs a command on the gateway without root's rights
as_nobody() {
	on gateway setpriv --reuid "$NOBODY" --regid "$GROUP" --clear-groups "$@"
}

# fetch COMMAND... - fetches a page from the server's port 80; COMMAND comes in front of curl
fetch() {
	local address=$1 code
	shift
	case $address in *:*) address="[$address]" ;; esac
	code=$("$@" curl --silent --output /dev/null --noproxy '*' --max-time 1 --write-out \
		'%{http_code}' "http://$address/")
	[ "$code" = 200 ] && echo "passed" || echo "no answer"
}

filter gateway <<END
block
pass inet6 proto icmp6
pass out on wan0 proto tcp to port 80 user $NOBODY
pass log (user) on wan0 proto udp to port 53 group $GROUP
pass on lan0
END
for address in $SERVER4 $SERVER6; do
	same "the user who may, to $address" passed "$(fetch $address as_nobody)"
	same "root may not, to $address" "no answer" "$(fetch $address on gateway)"
	same "nor a host behind the gateway, to $address" "no answer" "$(fetch $address on client)"
done
# asked SOURCE-WORDS... - sends a line to the server's UDP echo
asked() {
	local heard
	heard=$(echo hello | "$@" timeout 1 nc -u -W 1 $SERVER4 53 2>/dev/null)
	[ "$heard" = hello ] && echo "passed" || echo "no answer"
}
daemon gateway
same "the group that may, over UDP" passed "$(asked as_nobody)"
same "root's may not, over UDP" "no answer" "$(asked on gateway)"
same "nor a host behind the gateway" "no answer" "$(asked on client)"
daemon_stop gateway
same "the log names the user" "$NOBODY" \
	"$(od -A n -t u4 -j $((24 + 16 + 44)) -N 4 "$WORK/gateway-pflog0" | tr -d ' ')"

# the user of a server, for inbound packets
filter gateway <<'END'
block
pass inet6 proto icmp6
pass in on lan0 proto tcp to port 22 user root
pass in on lan0 proto tcp to port 23 user != root
END
web gateway 22 23
same "in to a server of root's" passed "$(probe_web client 192.168.100.1 22)"
same "in to a server that is not somebody else's" "no answer" "$(probe_web client 192.168.100.1 23)"
same "in to a server of root's, IPv6" passed "$(probe_web client 2001:db8:100::1 22)"

filter gateway <<'END'
pass in proto udp to port 53 user unknown
block in proto udp to port 53 user != unknown
END
same "what is forwarded is nobody's" passed "$(probe_udp client $SERVER4 53)"
same "what comes to the gateway's own server is somebody's" "no answer" \
	"$(probe_udp client 192.168.100.1 53)"
verdict
