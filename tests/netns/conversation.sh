# Conversations of packets that a test writes itself: see conversation.py. Sourced by tests, after
# lab.sh.

. "$HERE/short-way.sh"
SETTINGS='' MODE=''

# between_peers - the usual three hosts, and two peers that no kernel answers for, so that only the
# conversation answers: c4 and c6 at the client's end, s4 and s6 at the server's. g4 and g6 are the
# gateway's addresses on lan0, w4 and w6 those on wan0. The gateway knows all link addresses.
between_peers() {
	gateway_between_client_and_server
	between_drivers
	local interface host address
	LAN=$(link_address gateway lan0) WAN=$(link_address gateway wan0)
	PEERS="c4=192.168.100.9 c6=2001:db8:100::9 s4=192.168.10.9 s6=2001:db8:10::9
		g4=192.168.100.1 g6=2001:db8:100::1 w4=192.168.10.81 w6=2001:db8:10::81"
	while read -r interface host address; do
		on gateway ip neighbour replace "$address" dev "$interface" nud permanent \
			lladdr "$(link_address "$host" eth0)"
	done <<-END
		lan0 client 192.168.100.9
		lan0 client 2001:db8:100::9
		wan0 server 192.168.10.9
		wan0 server 2001:db8:10::9
	END
}

# in_every_mode FUNCTION - runs it for each evaluator and each way that packets can take through the
# gateway; `rules` loads rules for the mode that is tried
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

# rules - loads those on standard input, and one that passes the last datagram of each step; no
# state stays
rules() {
	filter gateway < <(
		echo "$SETTINGS"
		cat
		echo "pass quick inet proto udp from any port 9 to any port 9 no state"
	)
	pf gateway -q -F states
}

# converse [NAME=ADDRESS...] - plays the conversation on standard input
converse() {
	local about expected seen
	# shellcheck disable=SC2086
	python3 "$HERE/conversation.py" "$LAB" "client=eth0/$LAN" "server=eth0/$WAN" $PEERS "$@" \
		>"$WORK/conversation" || FAILED=1
	while IFS=$'\t' read -r about expected seen; do
		same "${MODE:+$MODE: }$about" "$expected" "$seen"
	done <"$WORK/conversation"
}
