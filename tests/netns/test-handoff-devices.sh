# skipstepd's devices take frames of the data plane alone: IP packets that a user without rights
# sends there, with a socket bound to the device, do not leave.
. "$(dirname "$0")/lab.sh"
lab_begin

host client host
wire client eth0 host lan0
address client eth0 10.9.1.2/24
address host lan0 10.9.1.1/24

# sends DEVICE - a datagram, from a process without rights
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
# left DEVICE - the datagrams that have left by the device since it is listened to
left() {
	sends "$1"
	sends lan0 # leaves, behind the other
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
	at_least 1 "the probe finds the hole where nobody guards $device" "$(left "$device")"
	stop listener
done
verdict
