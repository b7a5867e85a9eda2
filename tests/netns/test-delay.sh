# set delay: packets of a rule with a delay wait before they leave, in order, and never above the
# limit; other packets do not wait. Without skipstepd delayed packets are dropped and counted.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53
web server 80

# delays NAME - prints a counter from the JSON form of -si
delays() {
	pf gateway --json -si | python3 \
		-c 'import json, sys; print(json.load(sys.stdin)["delay"][sys.argv[1]])' "$1"
}
# counted NAME N - true if skipstepd has reported a counter of at least N
counted() {
	[ "$(delays "$1")" -ge "$2" ]
}
# trip HOST ADDRESS [OPTION...] - prints the round-trip time of ping(8) in milliseconds
trip() {
	on "$1" ping -n -c 1 -W 5 "${@:2}" | sed -n 's/.*time=\([0-9]*\).*/\1/p'
}

filter gateway <<'END_OF_RULES'
pass
pass out on wan0 proto icmp set delay 150
match out on wan0 inet6 proto icmp6 icmp6-type echoreq set delay 150
pass in on lan0 proto tcp to port 80 set delay 30
pass out on wan0 proto udp to port 5000 set delay 50
END_OF_RULES

before=$(reason gateway memory)
same "no daemon" "no answer" "$(probe_ping client "$SERVER4")"
at_least $((before + 1)) "counted as without memory" "$(reason gateway memory)"
same "what no rule delays" passed "$(probe_udp client "$SERVER4" 53)"

daemon gateway
at_least 150 "milliseconds, IPv4" "$(trip client "$SERVER4")"
at_least 150 "milliseconds, IPv6, by a match rule" "$(trip client "$SERVER6")"
at_least 150 "milliseconds, from the gateway itself" "$(trip gateway "$SERVER4")"
at_least 150 "milliseconds, IPv6 in fragments" "$(trip client "$SERVER6" -s 3000)"
holds "all have waited" await 5 counted sent 6
same "what no rule delays" passed "$(probe_udp client "$SERVER4" 53)"
sleep 1.2 # longer than the interval at which skipstepd reports its counters
same "and that has not waited" 6 "$(delays sent)"

# GSO packets wait as segments of the wire's size, in the direction of the data
for address in "$SERVER4" "[$SERVER6]"; do
	on client curl --silent --noproxy '*' --max-time 20 "http://$address/large" |
		cmp - "$WORK/www/large"
	same "64 MB from $address are what they were" "0 0" "${PIPESTATUS[*]}"
done
holds "they have waited" await 5 counted sent 90000

# order
start receiver server python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# all of the burst comes at once, and who reads may have to wait for a processor
s.setsockopt(socket.SOL_SOCKET, 33, 4 << 20)	# SO_RCVBUFFORCE
s.bind(("", 5000))
s.settimeout(10)
print("ready", flush=True)
print(*[int(s.recv(100)) for _ in range(500)], flush=True)'
await 5 grep -q ready "$WORK/receiver.log" || die "no receiver"
on client python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(500):
    s.sendto(b"%d" % i, (sys.argv[1], 5000))' "$SERVER4"
holds "all of a burst arrives" await 5 grep -q 499 "$WORK/receiver.log"
holds "in order" [ "$(tail -1 "$WORK/receiver.log")" = "$(seq -s ' ' 0 499)" ]

# a link without headers, and a bridge with tagged frames
wire client bridged0 gateway port0
wire gateway port1 server bridged0
on client ip link set bridged0 up
on server ip link set bridged0 up
on gateway sh -c "ip link add bridge0 type bridge && ip link set port0 master bridge0 &&
	ip link set port1 master bridge0 && ip link set port0 up && ip link set port1 up &&
	ip link set bridge0 up" || die "no bridge"
start tags server tcpdump -l -n -e -i bridged0 udp or vlan
start tun gateway python3 -c '
import fcntl, os, struct, subprocess
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"tun0", 0x1001))
subprocess.run("ip address add 192.168.88.1/24 dev tun0 && ip link set tun0 up", shell=True, check=True)
print("ready", flush=True)
while True:
    packet = os.read(tun, 2000)
    if packet[0] == 0x45:
        print(*packet[16:20], flush=True)'
await 5 grep -q ready "$WORK/tun.log" || die "no tun0"
filter gateway <<'END_OF_RULES'
queue line on wan0 bandwidth 100M
queue bulk parent line bandwidth 90M default
queue prompt parent line bandwidth 10M
pass
pass out on wan0 proto udp to port 53 set (queue prompt, delay 10)
pass out on tun0 set delay 10
pass out on port1 proto udp set delay 10
END_OF_RULES
sent=$(delays sent)
on client ping -n -q -c 1 -W 1 192.168.88.7 >/dev/null
holds "by a link without headers" await 3 grep -q "192 168 88 7" "$WORK/tun.log"
holds "after its delay" await 5 counted sent $((sent + 1))
on client python3 - <<'END_OF_FRAME'
import socket
udp = bytes.fromhex("45000020 0001 0000 40 11 ef78 c0a80502 c0a80501 0001 0007 000c 0000 74616773")
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("bridged0", 0))
wire.send(bytes.fromhex("ffffffffffff 020000000001 8100 0005 0800") + udp)
END_OF_FRAME
holds "through a bridge, with its tag" await 5 grep -q "vlan 5.*192.168.5.2.1 > 192.168.5.1.7" \
	"$WORK/tags.log"
holds "after its delay" await 5 counted sent $((sent + 2))

same "what has a queue of its own" passed "$(probe_udp client "$SERVER4" 53)"
at_least 1 "packets in that queue" \
	"$(pf gateway -s queue -v | awk \
	'/^queue prompt/ { here = 1 } here && /pkts:/ { print $3; exit }')"

# the limit of delayed packets
filter gateway <<'END_OF_RULES'
set limit pktdelay-pkts 5
pass
pass out on wan0 proto icmp set delay 2500
END_OF_RULES
sleep 1.2 # until skipstepd has read the new limit
before=$(reason gateway memory)
answers=$(on client ping -n -q -c 20 -i 0.01 -W 4 "$SERVER4" |
	sed -n 's/.* \([0-9]*\) received.*/\1/p')
same "as many as may wait come back" 5 "$answers"
same "the others are counted as without memory" $((before + 15)) "$(reason gateway memory)"
holds "and as refused" await 5 counted refused 15

# skipstepd ends: no packet leaves too soon; it comes back, and continues
daemon_stop gateway KILL
before=$(reason gateway memory)
same "the daemon was killed" "no answer" "$(probe_ping client "$SERVER4")"
at_least $((before + 1)) "counted as without memory" "$(reason gateway memory)"
same "what no rule delays" passed "$(probe_udp client "$SERVER4" 53)"
daemon gateway
at_least 2500 "milliseconds when it is back" "$(trip client "$SERVER4")"
verdict
