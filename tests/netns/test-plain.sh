# Packets without a state whose rules only pass or drop them. The fast path judges them on tcx and
# in XDP, with the same counters as the slow path, and forwards them like the kernel.
# long: every shape of packets, on both ways
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
one_by_one_server server "$SERVER4" "$SERVER6"
rules() { # SETTING
	filter gateway <<-END_OF_RULES
		$1
		table <bad> { 192.168.100.66, !192.168.100.2, 192.168.100.0/28 }
		pass quick inet6 proto icmp6 no state
		block label "rest"
		pass proto udp to port { 7, 17 } no state label "there"
		pass proto udp from port 7 no state label "back"
		block drop in quick on lan0 from <bad> label "bad"
		anchor on lan0 {
			block in proto udp to port 17 label "inside"
		}
		pass inet proto icmp
	END_OF_RULES
}
counters() { # prints all counters for the packets of a run
	pf gateway -s labels | awk '$3 > 100 { print }'
	pf gateway -sr -v | grep -A1 'label "\(there\|back\|bad\)"' |
		grep -o 'Evaluations: [0-9]*  *Packets: [0-9]*  *Bytes: [0-9]*'
	pf gateway -t bad -T show -vv | grep -v Cleared | grep '[1-9][0-9][0-9]'
	for interface in lan0 wan0; do
		pf gateway -sI -vv -i "$interface" | grep 4/ | tr -s ' \t' ' '
	done
}

# Datagrams with forged sources, which are not answered.
cat >"$WORK/send.py" <<'END_OF_PROGRAM'
import socket, struct, sys
sender, server, ttl, port, count = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 36, 0, 0, int(ttl), 17, 0, socket.inet_aton(sender), socket.inet_aton(server))
for _ in range(int(count)):
    s.sendto(ip + struct.pack("!HHHH", 4007, int(port), 16, 0) + b"intruder", (server, 0))
END_OF_PROGRAM
send() { # SOURCE TTL PORT COUNT
	on client python3 "$WORK/send.py" "$1" "$SERVER4" "${@:2}"
}

for setting in "set fast-forward no" "set xdp on none" "set xdp on any"; do
	rules "$setting"
	ask "$SERVER4" 5 >/dev/null
	ask "$SERVER6" 5 >/dev/null
	pf gateway -q -F info
	pf gateway -q -z
	pf gateway -q -t bad -T zero
	before=$(by tc) before_xdp=$(by XDP)
	same "$setting: every datagram comes and goes, one hop less" "500 63" \
		"$(ask "$SERVER4" 500)"
	send "$CLIENT4" 64 17 200	# the anchor blocks these
	send 192.168.100.66 64 7 200	# an address in the table
	send 192.168.100.5 64 7 200	# a network in the table
	send "$CLIENT4" 64 9 200	# only the first rule matches
	# IPv6 hosts send neighbour discovery at any time, so its packets are not compared
	counters | grep -v inet6 >"$WORK/counters-$setting"
	same "$setting: over IPv6 too" "500 63" "$(ask "$SERVER6" 500)"
	forwarded=$(($(by tc) - before)) by_xdp=$(($(by XDP) - before_xdp))
	case $setting in
	*no) same "the kernel forwards them" "0 0" "$forwarded $by_xdp" ;;
	*none) at_least 1900 "of 2000 went by tc" "$forwarded" ;;
	*any) at_least 1900 "of 2000 went by XDP" "$by_xdp" ;;
	esac
done
at_least 8 "lines of counters" "$(wc -l <"$WORK/counters-set fast-forward no")"
for setting in "set xdp on none" "set xdp on any"; do
	same "$setting: counted as by the long way" "$(cat "$WORK/counters-set fast-forward no")" \
		"$(cat "$WORK/counters-$setting")"
done

# A state on the outbound interface only.
for setting in "set xdp on none" "set xdp on any"; do
	filter gateway <<-END_OF_RULES
		$setting
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass in on lan0 proto udp to port 7 no state
		pass out on lan0 proto udp from port 7 no state
		pass out on wan0 proto udp to port 7 label "state"
	END_OF_RULES
	pf gateway -q -F states
	before=$(($(by tc) + $(by XDP)))
	same "$setting: one side with a state" "500 63" "$(ask "$SERVER4" 500)"
	same "which counts both ways" "500:500 pkts, 64000:64000 bytes" \
		"$(pf gateway -ss -v | grep -o '[0-9]*:[0-9]* pkts, [0-9]*:[0-9]* bytes')"
	# answers have no state on their outbound interface that could name their inbound one
	at_least 450 "of 500 went past the kernel" $(($(by tc) + $(by XDP) - before))
done

# Datagrams of which each begins a flow. The fast path creates, counts and names states like the
# slow path: on both interfaces, on one interface, or where rules then drop the packet.
cat >"$WORK/flows.py" <<'END_OF_PROGRAM'
import socket, struct, sys
sender, server, port, count = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 36, 0, 0, 64, 17, 0, socket.inet_aton(sender), socket.inet_aton(server))
for flow in range(int(count)):
    s.sendto(ip + struct.pack("!HHHH", 5000 + flow, int(port), 16, 0) + b"newcomer", (server, 0))
END_OF_PROGRAM
flows() { # PORT COUNT
	on client python3 "$WORK/flows.py" "$CLIENT4" "$SERVER4" "$@"
}
state_rules() { # SETTING
	filter gateway <<-END_OF_RULES
		$1
		set limit states 1400
		table <good> { 192.168.100.0/28 }
		pass quick inet6 proto icmp6 no state
		block
		pass proto udp from <good> to port 9 label "both"
		pass in on lan0 proto udp to port 10 keep state (if-bound) label "in"
		pass out on wan0 proto udp to port 10 no state
		pass in on lan0 proto udp to port 11 no state
		anchor "out" out on wan0 {
			pass proto udp to port 11 keep state (sloppy) label "out"
		}
		pass in on lan0 proto udp to port 12 label "only in"
		pass proto udp to port 7
	END_OF_RULES
}
states_of() \
	{ # all that there is of the states, but for their ages, and all that was counted for packets of IPv4
	pf gateway -ss -vv | sed \
		's/age [0-9:]*, expires in [0-9:]*//; s/id: [0-9a-f]* creatorid: .*//' |
		paste - - - | sort
	pf gateway -s labels
	pf gateway -sr -v | grep -o 'Evaluations: .*' | tail -n +2
	pf gateway -si | grep -E '^  (inserts|memory|state-insert)' | tr -s ' ' | cut -d' ' -f1-3
	pf gateway -t good -T show -vv | grep -v Cleared
	for interface in lan0 wan0; do
		pf gateway -sI -vv -i "$interface" | grep 4/ | tr -s ' \t' ' '
	done
}
# the server must not send ICMP errors about closed ports
on server nft 'table ip t { chain c { type filter hook input priority 0; udp dport 9-12 drop; }; }'
for setting in "set fast-forward no" "set xdp on none" "set xdp on any"; do
	state_rules "$setting"
	ask "$SERVER4" 5 >/dev/null	# the cached route exists
	pf gateway -q -F states
	pf gateway -q -F info
	pf gateway -q -z
	pf gateway -q -t good -T zero
	before=$(by tc) before_xdp=$(by XDP)
	flows 9 300
	flows 10 200
	flows 11 100
	flows 12 50
	forwarded=$(($(by tc) - before)) by_xdp=$(($(by XDP) - before_xdp))
	same "$setting: states of new flows" "600 200 100 50" \
		"$(for port in 9 10 11 12; do pf gateway -ss | grep -c ":$port\b"; done | xargs)"
	states_of >"$WORK/states-$setting"
	flows 9 600
	at_least 1 "$setting: states are at their limit" \
		"$(pf gateway -si | awk '/^  memory/ { print $2 }')"
	case $setting in
	*no) same "the kernel forwards them" "0 0" "$forwarded $by_xdp" ;;
	*none) at_least 550 "of 600 went by tc" "$forwarded" ;;
	*any) at_least 550 "of 600 went by XDP" "$by_xdp" ;;
	esac
done
for setting in "set xdp on none" "set xdp on any"; do
	same "$setting: states and counters as by the long way" \
		"$(cat "$WORK/states-set fast-forward no")" \
		"$(cat "$WORK/states-$setting")"
done
on server nft delete table ip t

# Changes of the kernel's forwarding are effective.
for setting in "set xdp on none" "set xdp on any"; do
	rules "$setting"
	kernel_has_its_way "$setting"
	same "a block that is loaded meanwhile" 0 "$(pf gateway -q -f - <<-END_OF_RULES
		$setting
		block
	END_OF_RULES
	ask "$SERVER4" 3 | cut -d' ' -f1)"
done

# Sources that the kernel rejects: its own address, loopback addresses, and with rp_filter sources
# behind another interface. None of them reaches the server.
arrives() { # SOURCE [TTL] - prints how many of 20 datagrams reach the server's wire
	start listener server timeout 2 tcpdump -n -i eth0 -Q in --immediate-mode udp and src host \
		"$1"
	await 3 grep -q listening "$WORK/listener.log" || die "tcpdump does not listen"
	goes_on "$SERVER4" >/dev/null
	send "$1" "${2:-64}" 7 20
	sleep 0.5
	stop listener
	grep -c ' IP ' "$WORK/listener.log"
}
for setting in "set xdp on none" "set xdp on any"; do
	rules "$setting"
	same "$setting: a source behind the client" 20 "$(arrives 172.16.0.9)"
	same "the gateway's own address" 0 "$(arrives 192.168.10.81)"
	same "a source on no host" 0 "$(arrives 127.0.0.9)"
	same "a time to live that ends" 0 "$(arrives 172.16.0.9 1)"
	for strict in 1 2; do
		on gateway sh -c "echo $strict >/proc/sys/net/ipv4/conf/lan0/rp_filter"
		same "rp_filter $strict: a source with no way back" 0 "$(arrives 172.16.0.9)"
		same "its own network" 20 "$(arrives 192.168.100.77)"
	done
	same "rp_filter 2: a source on the other side" 20 "$(arrives 192.168.10.9)"
	on gateway sh -c 'echo 1 >/proc/sys/net/ipv4/conf/lan0/rp_filter'
	same "rp_filter 1: a source on the other side" 0 "$(arrives 192.168.10.9)"
	on gateway sh -c 'echo 0 >/proc/sys/net/ipv4/conf/lan0/rp_filter'
done

# A neighbour with a new link address is found again.
rules "set xdp on any"
same "before" 20 "$(goes_on "$SERVER4")"
on server ip link set eth0 address 02:00:00:00:77:01
on server ping -n -q -c 1 -W 1 192.168.10.81 >/dev/null
same "another card" 20 "$(goes_on "$SERVER4")"
verdict
