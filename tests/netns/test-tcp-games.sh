# Hostile segments for the states of a connection: SYNs, RSTs, FINs and ACKs with numbers within and
# outside of the window, from both ends, on each path through the gateway.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
lan=$(link_address gateway lan0)
wan=$(link_address gateway wan0)
unowned client lan0 192.168.100.9 2001:db8:100::9
unowned server wan0 192.168.10.9 2001:db8:10::9

# states - prints the client's port and the states of both sides of each connection on lan0
states() {
	pf gateway -ss | awk '$1 " " $2 " " $4 == "all tcp <-" {
			split($6, states, ":")
			port = $5
			gsub(/.*[:[]|]/, "", port)
			print port, states[2], states[1]
		}' | sort -n
}
read -r bad_number bad_flags < <(python3 "$HERE/tcp-games.py" counted)
port=20000
games() { # SETTING...
	local mismatch normalize by_tc by_xdp
	filter gateway <<-END
		$(printf '%s\n' "$@")
		block
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		pass in on lan0 proto tcp to port 80
		pass out on wan0 proto tcp to port 80
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto udp to port 9 no state
	END
	pf gateway -q -F states
	mismatch=$(reason gateway state-mismatch) normalize=$(reason gateway normalize)
	by_tc=$(by tc) by_xdp=$(by XDP)
	on client python3 "$HERE/tcp-games.py" "$LAB" "$lan" "$wan" $port >"$WORK/games"
	states >"$WORK/states"
	same "$*: what differs in $(wc -l <"$WORK/states") connections" "" \
		"$(diff "$WORK/games" "$WORK/states")"
	same "$*: counted as state-mismatch" $((mismatch + bad_number)) \
		"$(reason gateway state-mismatch)"
	same "$*: counted as normalize" $((normalize + bad_flags)) "$(reason gateway normalize)"
	by_tc=$(($(by tc) - by_tc)) by_xdp=$(($(by XDP) - by_xdp))
	case $* in
	*"fast-forward no") same "$*: packets that went past the kernel" 0 $((by_tc + by_xdp)) ;;
	*"fast-forward yes") at_least 100 "$*: packets that went by tc" $by_tc ;;
	*) at_least 100 "$*: packets that went by XDP" $by_xdp ;;
	esac
	port=$((port + 200))
}
each_way games
verdict
