# skipstepd's devices accept frames of the data plane only, and the data plane accepts frames of
# skipstepd only. IP packets that an unprivileged user sends by a socket bound to the device do not
# leave. Frames of a program with CAP_NET_RAW only are rejected, even copies of overheard frames.
. "$(dirname "$0")/lab.sh"

host client host
wire client eth0 host lan0
address client eth0 10.9.1.2/24
address host lan0 10.9.1.1/24

# sends DEVICE - sends a datagram from an unprivileged process
sends() {
	on host setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
		--bounding-set=-all /usr/bin/python3 -c '
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
try:
    sender.sendto(b"forged for " + sys.argv[1].encode(), ("224.0.0.77", 7777))
except PermissionError:
    pass  # the firewall says no' "$1" || die "nothing is sent"
}
# left DEVICE - prints the datagrams that have left by the device since the capture began
left() {
	sends "$1"
	sends lan0 # leaves after the other datagram
	await 5 grep -q "forged for lan0" "$WORK/listener.log" || die "nothing leaves by lan0"
	grep -c "forged for $1" "$WORK/listener.log"
}
listens() {
	start listener host python3 -u -c '
import re, socket
everything = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
print("ready")
while True:
    for found in re.findall("forged for [a-z0-9]+", everything.recv(4000).decode("latin1")):
        print(found)'
	await 5 grep -q ready "$WORK/listener.log" || die "nobody listens"
}

filter host <<<"pass no state"
daemon host
devices=$(on host ip -o link | sed -n 's/^[0-9]*: \(pf[a-z]*[0-9]\)[:@].*/\1/p')
at_least 1 "devices of skipstepd" "$(wc -w <<<"$devices")"
for device in $devices; do
	listens
	before=$(reason host unattached || echo 0)
	same "nothing leaves by $device" 0 "$(left "$device")"
	at_least 1 "which is counted" $(($(reason host unattached || echo 0) - before))
	stop listener
done
filter host <<<"set unattached pass
pass no state"
for device in $devices; do
	listens
	before=$(reason host unattached || echo 0)
	same "nothing leaves by $device, which the device itself guards" 0 "$(left "$device")"
	at_least 1 "which is counted, too" $(($(reason host unattached || echo 0) - before))
	stop listener
done

# the number of frames that skipstepd has accepted, by its counters
believed() {
	pf host --json -si | python3 -c '
import json, sys
info = json.load(sys.stdin)
print({"pffrag0": info["fragments"]["searches"], "pfdivert0": info["divert"]["no_program"],
       "pfdelay0": info["delay"]["sent"]}[sys.argv[1]])' "$1"
}
has_believed() { # DEVICE N
	[ "$(believed "$1")" -ge "$2" ]
}
# genuine DEVICE - makes the data plane send one frame to the device
genuine() {
	case $1 in
	pffrag0) on client python3 "$HERE/handoff-frames.py" raw 8 ;;
	pfdivert0) on client bash -c 'echo genuine >/dev/udp/10.9.1.1/7' ;;
	pfdelay0) on host bash -c 'echo genuine >/dev/udp/10.9.1.2/9' ;;
	esac
}
# stranger COMMAND... - runs a command in a process with CAP_NET_RAW only
stranger() {
	on host setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+net_raw \
		--ambient-caps=-all,+net_raw --bounding-set=-all,+net_raw /usr/bin/python3 - \
		"$@" <"$HERE/handoff-frames.py" || die "the stranger fails"
}
overheard() {
	grep -m 1 '^[0-9a-f]\{40,\}$' "$WORK/stranger.log"
}

filter host <<<"set unattached pass
block all
pass in on lan0 inet proto udp to port 7 divert-packet port 700
pass out on lan0 inet proto udp to port 9 set delay 1"
start heard client python3 -u -c '
import re, socket
everything = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
print("ready")
while True:
    for found in re.findall("forged [a-z]+", everything.recv(4000).decode("latin1")):
        print(found)'
await 5 grep -q ready "$WORK/heard.log" || die "nobody listens"
lan0=$(on host ip -o link show lan0 | cut -d : -f 1)
for device in pffrag0 pfdivert0 pfdelay0; do
	start stranger host setpriv --reuid 65534 --regid 65534 --clear-groups \
		--inh-caps=-all,+net_raw --ambient-caps=-all,+net_raw --bounding-set=-all,+net_raw \
		/usr/bin/python3 -c "$(<"$HERE/handoff-frames.py")" overhear "$device"
	await 5 grep -q ready "$WORK/stranger.log" || die "the stranger does not listen"
	before=$(believed "$device")
	genuine "$device"
	holds "skipstepd believes what the data plane sends by $device" \
		await 5 has_believed "$device" $((before + 1))
	await 5 overheard || die "the stranger hears nothing on $device"
	replay=$(overheard)
	stop stranger
	forged=$(python3 "$HERE/handoff-frames.py" forge "$device" "$lan0" \
		"$(link_address client eth0)")
	before=$(believed "$device") dropped=$(reason host unattached || echo 0)
	for how in queued direct; do
		stranger send "$device" "$how" "$forged"
		stranger send "$device" "$how" "$replay"
	done
	genuine "$device" # arrives after the others
	await 5 has_believed "$device" $((before + 1)) || die "$device is silent"
	same "frames believed on $device, two forged, two replayed, one genuine" 1 \
		$(($(believed "$device") - before))
	at_least 4 "the others are counted" $(($(reason host unattached || echo 0) - dropped))
done

same "forged packets at the client" "" "$(grep forged "$WORK/heard.log" | sort | uniq -c)"

# the exempt devices are identified by index, not by name
on host ip link add pffrag77 type veth peer name other77
on host ip link set pffrag77 up
holds "a device of that name is filtered" await 5 eval \
	'pf host -s Interfaces -vv | grep -A 9 "^pffrag77" | grep -q "Hook.*tc"'
same "a device of skipstepd's is none of the filter's interfaces" "" \
	"$(pf host -s Interfaces | grep -x 'pf[a-z]*0')"
verdict
