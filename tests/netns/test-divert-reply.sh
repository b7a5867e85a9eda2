# divert-reply: a program on the gateway uses an address that the gateway does not have as its
# source. It asks over TCP and UDP, with raw sockets and echo requests, and receives the answers;
# then again from the same ports.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
echo_server server 7
start raw server python3 "$HERE/divert-reply.py" "echo"
await 3 grep -q ready "$WORK/raw.log" || die "no raw sockets: $(cat "$WORK/raw.log")"

rules() { # DIVERT SETTING...
	filter gateway <<-END
		$(printf '%s\n' "${@:2}")
		block
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass out on wan0 proto { tcp, udp } to port 7 $1
		pass out on wan0 proto 254 $1
		pass out on wan0 inet proto icmp $1
		pass out on wan0 inet6 proto icmp6 icmp6-type echoreq $1
	END
	pf gateway -q -F states
}
ask() { # SECONDS
	on gateway python3 "$HERE/divert-reply.py" ask 192.168.100.77 $SERVER4 "$1"
	on gateway python3 "$HERE/divert-reply.py" ask 2001:db8:100::77 $SERVER6 "$1"
}
replies() { # SETTING...
	rules divert-reply "$@"
	same "$*: answered" \
		"stream stream datagrams datagrams raw raw echoes echoes
stream stream datagrams datagrams raw raw echoes echoes" "$(ask 5)"
}
each_way replies
# no host on the client's side has these addresses
rules ""
same "answered without divert-reply" "" "$(ask 0.1 | xargs)"
verdict
