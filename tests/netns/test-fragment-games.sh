# Fragments that are out of order, overlap, are empty, too many or late, contradict each other, or
# have extension headers. The test checks which datagrams the gateway reassembles, for a host behind
# it and for itself.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
address client eth0 192.168.100.3/24 2001:db8:100::3/64
for name in server gateway; do
	echo_server $name 7
	echo_server $name 8
done
daemon gateway
link_address=$(link_address gateway lan0)

rules() { # SETTING...
	filter gateway <<-END
		$(printf '%s\n' "$@")
		set timeout interval 1
		block
		block in proto udp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto { icmp, icmp6 }
		pass proto udp to port 7
		pass from { 192.168.100.3, 2001:db8:100::3 } allow-opts
	END
}
number=0
games() { # COMMAND [ARGUMENT] - uses other identifications each time
	on client python3 "$HERE/fragment-games.py" "$1" "$LAB" "$link_address" "$number" "${@:2}"
}
counted() {
	[ "$(reason gateway fragment)" -ge "$1" ]
}
bad=$(python3 "$HERE/fragment-games.py" counted)
all_games() { # SETTING...
	local before expected
	rules "$@"
	before=$(reason gateway fragment)
	same "$*" "216 cases" "$(games play)"
	expected=$((before + bad))
	await 5 counted "$expected"
	same "$*: counted as fragment" "$expected" "$(reason gateway fragment)"
	number=$((number + 4000))
}
each_way all_games

rules "set timeout frag 1"
same "without a pause" 4 "$(games late 0)"
number=$((number + 100))
same "fragments that come too late" 0 "$(games late 2.2)"
verdict
