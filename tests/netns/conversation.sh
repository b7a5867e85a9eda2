# Conversations of packets that a test writes itself: see conversation.py.
. "$(dirname "$0")/short-way.sh"
SETTINGS='' MODE=''

# between_peers - the usual three hosts, and two peers whose addresses no kernel answers for, so
# that only the conversation answers. c4 and c6 are at the client's end, s4 and s6 at the server's.
# g4 and g6 are the gateway's addresses on lan0, w4 and w6 those on wan0.
between_peers() {
	gateway_between_client_and_server
	between_drivers
	CONVERSERS="client=eth0/$(link_address gateway lan0) server=eth0/$(link_address gateway wan0)"
	ADDRESSES="g4=192.168.100.1 g6=2001:db8:100::1 w4=192.168.10.81 w6=2001:db8:10::81"
	peer c4 lan0 client 192.168.100.9
	peer c6 lan0 client 2001:db8:100::9
	peer s4 wan0 server 192.168.10.9
	peer s6 wan0 server 2001:db8:10::9
}

# peer NAME INTERFACE HOST ADDRESS - makes an address behind the gateway's interface, whose packets
# HOST receives; the gateway knows its link address
peer() {
	on gateway ip neighbour replace "$4" dev "$2" nud permanent \
		lladdr "$(link_address "$3" eth0)"
	ADDRESSES+=" $1=$4"
}

# in_every_mode FUNCTION - runs FUNCTION for each evaluator, and for the slow path, tc fast path and
# XDP fast path; `rules` loads rules for the current mode
in_every_mode() {
	local evaluator forward xdp by before
	while read -r evaluator forward xdp by; do
		MODE="$evaluator, $by"
		SETTINGS="set evaluator $evaluator
set fast-forward $forward
set xdp on $xdp"
		before=$([ "$by" = kernel ] || by "$by")
		"$1"
		[ "$by" = kernel ] || at_least 1 "$MODE: packets that took this way" \
			$(($(by "$by") - before))
	done <<-END
		linear no none kernel
		skip-steps yes none tc
		compiled yes any XDP
	END
}

# rules - loads the rules on standard input, and a rule that passes the last datagram of each step;
# removes all states
rules() {
	{
		echo "$SETTINGS"
		cat
		echo "pass quick inet proto udp from any port 9 to any port 9 no state"
	} >"$WORK/rules"
	filter gateway <"$WORK/rules"
	pf gateway -q -F states
}

# converse - plays the conversation on standard input
converse() {
	local about expected seen
	# shellcheck disable=SC2086
	python3 "$HERE/conversation.py" "$LAB" $CONVERSERS $ADDRESSES >"$WORK/conversation" ||
		FAILED=1
	while IFS=$'\t' read -r about expected seen; do
		same "${MODE:+$MODE: }$about" "$expected" "$seen"
	done <"$WORK/conversation"
}
