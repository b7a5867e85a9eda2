# `set xdp on`: packets of states are redirected to the outbound interface in XDP, with the same
# counters and TTL. Packets that the filter or the kernel would treat otherwise are not redirected.
# long: loads the programs for XDP for several rule sets
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers

one_by_one_server server "$SERVER4" "$SERVER6"
rules() { # INTERFACES
	filter gateway <<-END_OF_RULES
		set xdp on $1
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto { tcp, udp } to port { 7, 80 } label "echo"
		pass inet proto icmp
	END_OF_RULES
}
hook() { # INTERFACE
	pf gateway -sI -vv -i "$1" | sed -n 's/^[[:space:]]*Hook: *//p'
}
counters() { # prints all counters for the packets of a run
	pf gateway -ss -v | grep -o '[0-9]*:[0-9]* pkts, [0-9]*:[0-9]* bytes' | sort -u
	pf gateway -s labels | awk '$3 > 100 { $2 = ""; print }'
	for interface in lan0 wan0; do
		# over IPv6 the hosts look for each other whenever they like
		pf gateway -sI -vv -i "$interface" | grep 4/Pass | tr -s ' \t' ' '
	done
}
clear() {
	pf gateway -q -F states
	pf gateway -q -F info
	pf gateway -q -z
}

# The same packets on tcx and in XDP get the same counters.
for interfaces in none '{ lan0, wan0 }'; do
	rules "$interfaces"
	clear
	before=$(by XDP)
	same "on $interfaces: every datagram comes and goes, one hop less" "1000 63" \
		"$(ask "$SERVER4" 1000)"
	same "on $interfaces: over IPv6 too" "1000 63" "$(ask "$SERVER6" 1000)"
	after=$(by XDP)
	counters >"$WORK/counters-$interfaces"
	if [ "$interfaces" = none ]; then
		same "by tc it says" tc "$(hook lan0)"
		same "no packet goes by XDP" 0 $((after - before))
	else
		same "by XDP it says" "XDP and tc" "$(hook lan0)"
		at_least 3600 "of 4000 packets went by XDP" $((after - before))
	fi
done
same "counters of states, rules and interfaces are the same" "$(cat "$WORK/counters-none")" \
	"$(cat "$WORK/counters-{ lan0, wan0 }")"
at_least 7 "lines of counters" "$(wc -l <"$WORK/counters-none")"

# With translation, by the rules of most gateways: on each path the server sees the gateway's
# address, and the client sees the server's; an inside server is reached from outside.
nat_rules() { # SETTING
	filter gateway <<-END_OF_RULES
		$1
		block
		match out on wan0 from 192.168.100.0/24 nat-to (wan0:0) label "nat"
		match in on wan0 proto udp to (wan0:0) port 77 rdr-to $CLIENT4 port 7
		match on wan0 scrub (max-mss 1300)
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto { tcp, udp } to port { 7, 80 } label "echo"
	END_OF_RULES
}
one_by_one_server client "$CLIENT4"
nat_counters() {
	counters
	pf gateway -ss | grep udp | sed 's/81:[0-9]* (/81:PORT (/' | sort
}
for setting in "set fast-forward no" "set xdp on none" "set xdp on any"; do
	nat_rules "$setting"
	clear
	before=$(($(by tc) + $(by XDP))) before_xdp=$(by XDP)
	same "$setting: out through translation" "500 63" "$(ask "$SERVER4" 500)"
	same "$setting: and in, to another port" "500 63" \
		"$(one_by_one server 192.168.10.81 500 0 77)"
	forwarded=$(($(by tc) + $(by XDP) - before)) by_xdp=$(($(by XDP) - before_xdp))
	nat_counters >"$WORK/nat-$setting"
	case $setting in
	*no) same "the kernel forwards them" 0 "$forwarded" ;;
	*none) at_least 1900 "of 2000 went by tc" $((forwarded - by_xdp)) ;;
	*any) at_least 1900 "of 2000 went by XDP" "$by_xdp" ;;
	esac
done
for setting in "set xdp on none" "set xdp on any"; do
	same "$setting: counted as by the long way" "$(cat "$WORK/nat-set fast-forward no")" \
		"$(cat "$WORK/nat-$setting")"
done
web server 80
for checksums in 0 1; do
	for end in client server; do
		offloads "$end" eth0 "$checksums" tx-checksum gso tso
	done
	for setting in "set xdp on none" "set xdp on any"; do
		nat_rules "$setting"
		same "$setting, checksums offloaded $checksums: 64 MB through translation" \
			"$(sha256sum <"$WORK/www/large")" \
			"$(on client curl -s --noproxy '*' --max-time 20 "http://$SERVER4/large" |
			sha256sum)"
	done
done
for end in client server; do
	offloads "$end" eth0 0 tx-checksum gso tso
done

# XDP on one interface only: the answers arrive on wan0.
rules lan0
clear
before=$(by XDP)
same "on lan0 alone" 1000 "$(ask "$SERVER4" 1000 | cut -d' ' -f1)"
after=$(by XDP)
at_least 900 "of the 1000 that came in there went by XDP" $((after - before))
at_least 0 "and no others: beside those, of 1000" $((1000 - after + before))

# XDP does not redirect packets whose checksum or segmentation is left to the card.
rules any
before=$(by XDP)
for end in client server; do
	offloads "$end" eth0 1 tx-checksum gso tso
done
for address in "$SERVER4" "[$SERVER6]"; do
	same "64 MB from $address, checksums offloaded" "$(sha256sum <"$WORK/www/large")" \
		"$(on client curl -s --noproxy '*' --max-time 20 "http://$address/large" |
		sha256sum)"
done

same "none of them by XDP" 0 $(($(by XDP) - before))
for end in client server; do
	offloads "$end" eth0 0 tx-checksum
done

# Packets for which the kernel has other work are passed to the kernel at once.
kernel_has_its_way "states in XDP"
kernel_has_its_way_soon
same "a state that is killed" 0 "$(rules any; pf gateway -q -f - <<-END_OF_RULES
	set xdp on any
	block
END_OF_RULES
stops "$SERVER4" "$BIN/pfctl" -q -F states)"

# XDP does not redirect to a device with a queue.
rules any
same "before" 20 "$(goes_on "$SERVER4")"
on gateway tc qdisc add dev wan0 root handle 1: htb default 1
on gateway tc class add dev wan0 parent 1: classid 1:1 htb rate 100mbit
sleep 3
same "a queue on the way" 200 "$(ask "$SERVER4" 200 | cut -d' ' -f1)"
at_least 200 "packets that it has seen" \
	"$(on gateway tc -s qdisc show dev wan0 | awk '/Sent/ { print $4; exit }')"
on gateway tc qdisc delete dev wan0 root
sleep 3

# Frames of a known state with another host's link address, or with a tag.
cat >"$WORK/frames.py" <<'END_OF_PROGRAM'
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.bind(("eth0", 0))
own = s.getsockname()[4]
gateway, kind, server = bytes.fromhex(sys.argv[1].replace(":", "")), sys.argv[2], sys.argv[3]
ip = bytearray.fromhex("4500002400000000401100000000000000000000")
ip[12:20] = socket.inet_aton("192.168.100.2") + socket.inet_aton(server)
total = sum(struct.unpack("!10H", ip))
ip[10:12] = struct.pack("!H", 0xffff - (total + (total >> 16)) % 0x10000)
packet = bytes(ip) + struct.pack("!HHHH", 4007, 7, 16, 0) + b"intruder"
if kind == "address":
    gateway = bytes([gateway[0] | 2]) + bytes([gateway[1] ^ 1]) + gateway[2:]
tag = struct.pack("!HH", 0x8100, 7) if kind == "tag" else b""
for _ in range(50):
    s.send(gateway + own + tag + b"\x08\x00" + packet)
END_OF_PROGRAM
lan_address=$(link_address gateway lan0)
intruders() { # KIND - prints the number of 50 frames that XDP redirected
	local before after
	goes_on "$SERVER4" >/dev/null
	before=$(by XDP)
	on client python3 "$WORK/frames.py" "$lan_address" "$1" "$SERVER4"
	after=$(by XDP)
	echo $((after - before))
}
at_least 50 "frames of a state by XDP" "$(intruders none)"
same "to another's link address" 0 "$(intruders address)"
same "with a VLAN tag" 0 "$(intruders tag)"

# A driver without XDP.
on gateway ip link add br7 type bridge
on gateway ip link set br7 up
pf gateway -q -d
rules 'br7' 2>"$WORK/told"
same "and it is told" "pfctl: br7: no XDP: its driver has no native XDP" "$(cat "$WORK/told")"
same "a bridge has no native XDP" "tc; no XDP: its driver has no native XDP" "$(hook br7)"
same "nobody named lan0" tc "$(hook lan0)"
on gateway ip link delete br7

xdp_comes_and_goes "$SERVER4" 63

# skipstepd attaches interfaces that appear later.
rules any
daemon gateway
on gateway ip link add late0 type veth peer name late1
await 5 sh -c "ip netns exec $LAB-gateway $BIN/pfctl -sI -vv -i late0 | grep -q 'XDP and tc'"
same "an interface that came later" "XDP and tc" "$(hook late0)"
pf gateway -q -d
same "nothing is attached when the filter is off" "" "$(hook lan0)"
verdict
