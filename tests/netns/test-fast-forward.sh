# The tc fast path redirects packets of states past the kernel's forwarding, with the same counters,
# TTL and errors. It does so only while the kernel would just forward them.
# long: many kinds of packets, on each way past the kernel
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server

one_by_one_server server "$SERVER4" "$SERVER6"
forwarded() { # prints the packets that the kernel has forwarded, for both families
	on gateway awk '/^Ip: [0-9]/ { print $7 }' /proc/net/snmp
	on gateway awk '$1 == "Ip6OutForwDatagrams" { print $2 }' /proc/net/snmp6
}
sum_forwarded() {
	forwarded | awk '{ sum += $1 } END { print sum }'
}
rules() { # SETTING
	filter gateway <<-END_OF_RULES
		set fast-forward $1
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto { tcp, udp } to port { 7, 80 }
		pass inet proto icmp
	END_OF_RULES
}
counters() { # prints the packets of the states in both directions
	pf gateway -ss -v | grep -o '[0-9]*:[0-9]* pkts, [0-9]*:[0-9]* bytes' | sort -u
}

for setting in no auto yes; do
	rules "$setting"
	before=$(sum_forwarded)
	same "$setting: every datagram comes and goes, one hop less" "1000 63" \
		"$(ask "$SERVER4" 1000)"
	same "$setting: over IPv6 too" "1000 63" "$(ask "$SERVER6" 1000)"
	same "$setting: counted in each state" \
		"1000:1000 pkts, 128000:128000 bytes 1000:1000 pkts, 148000:148000 bytes" \
		"$(counters | xargs)"
	after=$(sum_forwarded)
	if [ "$setting" = no ]; then
		same "no: the kernel forwards them all" 4000 $((after - before))
	else
		holds "$setting: hardly one of 4000 goes by the kernel" [ $((after - before)) \
			-lt 400 ]
	fi
	pf gateway -q -F states
done

# Changes of the kernel's forwarding are effective at once. Before each change the cached route is
# fresh.
rules auto
kernel_has_its_way "states on tc"
kernel_has_its_way_soon
pf gateway -q -f - <<-END_OF_RULES
	block
	pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
	pass proto tcp to port 80
END_OF_RULES
same "a state stays when its rule goes" 20 "$(goes_on "$SERVER4")"
same "until it is killed" 0 "$(stops "$SERVER4" "$BIN/pfctl" -q -F states)"
rules auto

# A device without link headers, on both sides of the gateway.
cat >"$WORK/tun.py" <<'END_OF_PROGRAM'
import fcntl, os, select, socket, struct, subprocess, sys
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"tun7", 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
# Linux drops packets to the device until it has handled the change of the carrier, a moment later
while b"state DOWN" in subprocess.check_output(["ip", "link", "show", "tun7"]):
    pass
packet = bytearray.fromhex("4500003800000000401100000000000000000000") + struct.pack("!HHHH", 4008, 7, 36, 0) + bytes(28)
packet[12:20] = socket.inet_aton("192.168.77.2") + socket.inet_aton(sys.argv[1])
total = sum(struct.unpack("!10H", packet[:20]))
packet[10:12] = struct.pack("!H", 0xffff - (total + (total >> 16)) % 0x10000)
came = 0
for _ in range(20):
    os.write(tun, packet)
    while select.select([tun], [], [], 20)[0]:
        answer = os.read(tun, 2000)
        if answer[0] == 0x45 and answer[9] == 17:
            came += answer[20:22] == b"\x00\x07"
            break
print(came)
END_OF_PROGRAM
on gateway ip tuntap add tun7 mode tun
on gateway ip link set tun7 up
on gateway ip route add 192.168.77.0/24 dev tun7
pf gateway -q -d
pf gateway -q -e
same "packets without a link header" 20 "$(on gateway python3 "$WORK/tun.py" "$SERVER4")"

# Large transfers, with the segments that the kernel joins.
web server 80
for address in "$SERVER4" "[$SERVER6]"; do
	before=$(sum_forwarded)
	same "64 MB from $address" "$(sha256sum <"$WORK/www/large")" \
		"$(on client curl -s --noproxy '*' --max-time 20 "http://$address/large" |
		sha256sum)"
	after=$(sum_forwarded)
	holds "hardly a packet of them went by the kernel ($((after - before)))" [ \
		$((after - before)) -lt 3000 ]
done
verdict
