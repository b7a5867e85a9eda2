# Hosts in network namespaces, joined by veth. Sourced by demo.sh and by each test.
#
# A host is a namespace named $LAB-NAME. Commands enter it with nsenter and not with `ip netns
# exec`, because that mounts a /sys of its own, in which the pinned maps are not to be seen.
# Whatever happens, `lab_end` takes everything away again.

set -u -o pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
BIN=${BIN:-${CARGO_TARGET_DIR:-$ROOT/target}/release}
LAB=skipstep-$$
WORK=
# programs of the tests import packets.py
export PYTHONDONTWRITEBYTECODE=1
declare -A HOSTS=() PINS=() PROCESSES=()

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
	BOLD='' DIM='' RED='' GREEN='' PLAIN=''
fi

# die TEXT... - says why and ends; lab_end does the rest
die() {
	printf '%s\n' "$*" >&2
	exit 1
}

# lab_begin - work directory and the trap that cleans up, also after Ctrl-C and errors
lab_begin() {
	[ "$(id -u)" = 0 ] ||
		die "this makes network namespaces and loads BPF programs: run it as root"
	[ -x "$BIN/pfctl" ] || die "$BIN/pfctl is missing: make build"
	trap lab_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	WORK=$(mktemp -d "/tmp/$LAB-XXXXXX")
}

# measure ARGUMENT... - two short rounds of the laboratory; what it printed
measure() {
	"$BIN/fwlab" measure --rounds 2 --seconds 0.02 "$@" 2>&1
}

# said FILE EXPRESSION - a value of a result file of the laboratory, which is `run` in the
# expression
said() {
	python3 -c \
		'import json, sys; run = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
		"$1" "$2"
}

# interrupted WORD MEASUREMENTS [ARGUMENT] - runs `fwlab WORD ARGUMENT --full`, and types Ctrl-C
# once so many measurements are done. $result is its result then, $WORK/text what it printed
interrupted() {
	local word=$1 position=$2 process
	result=$WORK/cut/${3-$1}.json
	shift 2
	"$BIN/fwlab" "$word" "$@" --full --out "$WORK/cut" >"$WORK/text" 2>&1 &
	process=$!
	await 60 grep -q "\"position\": $position" "$result" ||
		die "no round is done: $(cat "$WORK/text")"
	kill -INT $process
	wait $process
	same "a run that is interrupted" 1 $?
	same "is not complete" "(False, 'interrupted')" \
		"$(said "$result" '(run["complete"], run["incomplete_because"])')"
	same "its networks are gone" "" "$(ip netns list | grep "fwlab-$process-")"
}

lab_end() {
	local status=$?
	trap '' INT TERM HUP
	trap - EXIT
	lab_clean
	exit "$status"
}

# lab_clean - kills what `start` started, removes instances, namespaces and the work directory
lab_clean() {
	local name
	for name in "${!PROCESSES[@]}"; do
		stop "$name"
	done
	for name in "${!HOSTS[@]}"; do
		[ ! -e "${PINS[$name]}" ] || on "$name" "$BIN/pfctl" -q --remove
		# A pfctl that was interrupted while it made the instance leaves only this.
		rm -rf "/run/skipstep/${PINS[$name]##*/}"
		# A server that was stopped may leave a child that still holds a connection.
		ip netns pids "$LAB-$name" | xargs -r kill 2>/dev/null
		ip netns delete "$LAB-$name"
	done
	if mountpoint -q "$WORK/disk"; then
		umount "$WORK/disk"
	fi
	rm -rf "${WORK:?}"
	HOSTS=()
}

# lab_left - prints what is still there after lab_clean, which should be nothing
lab_left() {
	ip netns list | grep "^$LAB-"
	local pinned
	for pinned in "${PINS[@]}"; do
		[ ! -e "$pinned" ] || echo "$pinned"
		[ ! -e "/run/skipstep/${pinned##*/}" ] || echo "/run/skipstep/${pinned##*/}"
	done
	[ ! -e "$WORK" ] || echo "$WORK"
	local child
	for child in $(jobs -p); do
		echo "process $child"
	done
}

# host NAME... - makes hosts that know only themselves
host() {
	local name
	for name; do
		ip netns add "$LAB-$name" || die "cannot make a network namespace"
		HOSTS[$name]=1
		# Each network namespace has an instance of its own, which pfctl finds by itself.
		PINS[$name]=/sys/fs/bpf/skipstep/netns-$(stat --dereference --format %i \
			"/run/netns/$LAB-$name")
		on "$name" ip link set lo up
	done
}

# router NAME... - makes hosts that forward IPv4 and IPv6
router() {
	host "$@"
	local name
	for name; do
		on "$name" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
			echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
	done
}

# wire HOST IFACE HOST IFACE [IFINDEX] - joins two hosts; IFINDEX is what the second interface gets
wire() {
	ip link add name "$2" netns "$LAB-$1" type veth \
		peer name "$4" netns "$LAB-$3" ${5:+index "$5"} ||
		die "cannot join $1 and $3"
}

# bad_wire HOST IFACE HOST IFACE - joins two hosts by a network that treats frames badly, in a way
# that the numbers in $BADNESS say; what it did stands in $WORK/bad-IFACE.log when it was stopped
bad_wire() {
	local name="bad-$4"
	# shellcheck disable=SC2086
	start "$name" "$1" "$BIN/fwlab" bad-network "$2" far0 ${BADNESS:-}
	await 3 grep -q ready "$WORK/$name.log" ||
		die "cannot join $1 and $3: $(cat "$WORK/$name.log")"
	on "$1" ip link set far0 netns "$LAB-$3" name "$4" || die "cannot join $1 and $3"
}

# address HOST IFACE ADDRESS... - gives addresses and brings the interface up
address() {
	local host=$1 interface=$2 address
	shift 2
	for address; do
		case $address in
		*:*) on "$host" ip address add "$address" dev "$interface" nodad ;;
		*) on "$host" ip address add "$address" dev "$interface" ;;
		esac || die "cannot give $address to $interface of $host"
	done
	# No duplicate address detection: the link-local address works at once too.
	on "$host" sh -c "echo 0 >/proc/sys/net/ipv6/conf/$interface/accept_dad"
	on "$host" ip link set "$interface" up
}

# gateway_between_client_and_server [WIRE] - the usual three hosts, joined by `wire` or what is
# named:
#
#   client                      gateway                      server
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   192.168.100.2    192.168.100.1    192.168.10.81   192.168.10.2
#   2001:db8:100::2  2001:db8:100::1  2001:db8:10::81 2001:db8:10::2
gateway_between_client_and_server() {
	local join=${1:-wire}
	host client server
	router gateway
	"$join" client eth0 gateway lan0
	"$join" server eth0 gateway wan0
	address client eth0 192.168.100.2/24 2001:db8:100::2/64
	address gateway lan0 192.168.100.1/24 2001:db8:100::1/64
	address gateway wan0 192.168.10.81/24 2001:db8:10::81/64
	address server eth0 192.168.10.2/24 2001:db8:10::2/64
	on client ip route add default via 192.168.100.1
	on client ip -6 route add default via 2001:db8:100::1
	on server ip route add default via 192.168.10.81
	on server ip -6 route add default via 2001:db8:10::81
	# The first packet of a new wire can be lost while IPv6 finds its neighbours.
	await 5 on client ping -n -q -c 1 -W 1 2001:db8:10::2 ||
		die "the hosts do not reach each other over IPv6"
	await 5 on client ping -n -q -c 1 -W 1 192.168.10.2 ||
		die "the hosts do not reach each other over IPv4"
	CLIENT4=192.168.100.2 CLIENT6=2001:db8:100::2
	SERVER4=192.168.10.2 SERVER6=2001:db8:10::2
}

# bridge_between_client_and_server - the same two on one network, and what joins them has no
# address:
#
#   client                  bridge                  server
#   eth0 -------------- port0 (br0) port1 -------------- eth0
#   192.168.100.2                            192.168.100.3
#   2001:db8:100::2                        2001:db8:100::3
bridge_between_client_and_server() {
	local port
	host client bridge server
	wire client eth0 bridge port0
	wire server eth0 bridge port1
	on bridge ip link add br0 type bridge
	on bridge ip link set br0 up
	for port in port0 port1; do
		on bridge ip link set "$port" master br0
		on bridge ip link set "$port" up
	done
	address client eth0 192.168.100.2/24 2001:db8:100::2/64
	address server eth0 192.168.100.3/24 2001:db8:100::3/64
	await 5 on client ping -n -q -c 1 -W 1 2001:db8:100::3 ||
		die "the hosts do not reach each other over IPv6"
	await 5 on client ping -n -q -c 1 -W 1 192.168.100.3 ||
		die "the hosts do not reach each other over IPv4"
	CLIENT4=192.168.100.2 CLIENT6=2001:db8:100::2
	SERVER4=192.168.100.3 SERVER6=2001:db8:100::3
}

# gateway_between_families - a gateway that is to translate (af-to): the client reaches the server
# as SERVER64, the server reaches the client as CLIENT46:
#
#   client (IPv6 only)         gateway            server (IPv4 only)
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   2001:db8:100::2                   192.168.10.81     192.168.10.2
gateway_between_families() {
	host client server
	router gateway
	wire client eth0 gateway lan0
	wire server eth0 gateway wan0
	address client eth0 2001:db8:100::2/64
	address gateway lan0 2001:db8:100::1/64
	address gateway wan0 192.168.10.81/24
	address server eth0 192.168.10.2/24
	on client ip route add default via 2001:db8:100::1
	on server ip route add default via 192.168.10.81
	on server ip route add 192.168.10.100/32 via 192.168.10.81
	on client ip route add 2001:db8:64::/96 via 2001:db8:100::1
	SERVER64=64:ff9b::192.168.10.2 CLIENT46=192.168.10.100
}

# gateway_with_dmz - the first of them with one more network inside, on the gateway's dmz0
gateway_with_dmz() {
	gateway_between_client_and_server
	host dmz
	wire dmz eth0 gateway dmz0
	address gateway dmz0 192.168.200.1/24
	address dmz eth0 192.168.200.2/24
	on dmz ip route add default via 192.168.200.1
}

# gateway_with_two_ways_out - two providers lead to the same server; the default route is the
# first's:
#
#   client        gateway                      isp1, isp2                 server
#   eth0 ---- lan0      wan1 ---------- gw0 [isp1] net0 ----------------- eth1
#   192.168.100.2      10.1.0.2    10.1.0.1      10.11.0.1         10.11.0.2
#                       wan2 ---------- gw0 [isp2] net0 ----------------- eth2
#                      10.2.0.2    10.2.0.1      10.12.0.1         10.12.0.2
#
# and the same in IPv6 under 2001:db8. The server is 192.0.2.80 and 2001:db8:80::80, and answers by
# the way that a packet came, as far as its source tells. No provider takes what has an address of
# the other.
gateway_with_two_ways_out() {
	local way
	host client server
	router gateway isp1 isp2
	wire client eth0 gateway lan0
	address client eth0 192.168.100.2/24 2001:db8:100::2/64
	address gateway lan0 192.168.100.1/24 2001:db8:100::1/64
	on client ip route add default via 192.168.100.1
	on client ip -6 route add default via 2001:db8:100::1
	for way in 1 2; do
		wire gateway "wan$way" "isp$way" gw0
		wire "isp$way" net0 server "eth$way"
		address gateway "wan$way" "10.$way.0.2/24" "2001:db8:$way::2/64"
		address "isp$way" gw0 "10.$way.0.1/24" "2001:db8:$way::1/64"
		address "isp$way" net0 "10.1$way.0.1/24" "2001:db8:1$way::1/64"
		address server "eth$way" "10.1$way.0.2/24" "2001:db8:1$way::2/64"
		on "isp$way" ip route add 192.0.2.80 via "10.1$way.0.2"
		on "isp$way" ip -6 route add 2001:db8:80::80 via "2001:db8:1$way::2"
		on "isp$way" sh -c 'echo 1 >/proc/sys/net/ipv4/conf/gw0/rp_filter'
		on server ip route add "10.$way.0.0/24" via "10.1$way.0.1"
		on server ip -6 route add "2001:db8:$way::/64" via "2001:db8:1$way::1"
	done
	on server ip address add 192.0.2.80/32 dev lo
	on server ip address add 2001:db8:80::80/128 dev lo nodad
	on gateway ip route add default via 10.1.0.1
	on gateway ip -6 route add default via 2001:db8:1::1
	for way in 1 2; do
		await 5 on gateway ping -n -q -c 1 -W 1 "10.$way.0.1" ||
			die "no way to isp$way over IPv4"
		await 5 on gateway ping -n -q -c 1 -W 1 "2001:db8:$way::1" ||
			die "no way to isp$way over IPv6"
	done
}

# seen_from HOST ADDRESS PORT - who the server believes to talk to, over TCP; `witness` answers
seen_from() {
	on "$1" timeout 2 nc -w 2 "$2" "$3" </dev/null 2>/dev/null || echo "no answer"
}

# witness HOST PORT... - tells everybody who connects from which address
witness() {
	local host=$1 port
	shift
	for port; do
		start "witness-$host-$port" "$host" python3 -c '
import socket, sys
s = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    c, (address, *_) = s.accept()
    c.sendall(address.removeprefix("::ffff:").encode() + b"\n")
    c.close()' "$port"
		await 3 grep -q ready "$WORK/witness-$host-$port.log" ||
			die "no witness on port $port of $host"
	done
}

# on HOST COMMAND... - runs a command there and waits for it
on() {
	local host=$1
	shift
	nsenter --net="/run/netns/$LAB-$host" -- "$@"
}

# start NAME HOST COMMAND... - runs a command there in the background; its output goes to
# $WORK/NAME.log
start() {
	local name=$1 host=$2
	shift 2
	: >"$WORK/$name.log" # at once: who looks into it is not to read what one of the same name said before
	nsenter --net="/run/netns/$LAB-$host" -- "$@" </dev/null >>"$WORK/$name.log" 2>&1 &
	PROCESSES[$name]=$!
}

# stop NAME [SIGNAL] - ends what `start NAME` began and waits until it is gone; the exit status is
# its own
stop() {
	local pid=${PROCESSES[$1]}
	unset "PROCESSES[$1]"
	kill -s "${2:-TERM}" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

# last_words NAME - ends a process that prints "end" last; prints its output but for "ready" and
# "end". In a subshell `stop` alone would not wait.
last_words() {
	local log=$WORK/$1.log
	kill "${PROCESSES[$1]}"
	await 5 grep -q '^end$' "$log" || echo "$1 did not end"
	stop "$1"
	grep -v '^ready$\|^end$\|^$' "$log"
}

# await SECONDS COMMAND... - repeats a command until it succeeds
await() {
	local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt "$deadline" ] || return 1
		sleep 0.02
	done
}

# records FILE PATTERN - how many records of a pflog file tcpdump prints that match (extended regex)
records() {
	tcpdump -n -e -r "$1" 2>/dev/null | grep -Ec -- "$2"
}

# has_records N FILE PATTERN - true if that are at least N: skipstepd writes them when it comes to
# it
has_records() {
	[ "$(records "$2" "$3")" -ge "$1" ]
}

# has_read NAME FILE - true if the process that `start NAME` began has read a file to its end
has_read() {
	local descriptor place=/proc/${PROCESSES[$1]}
	for descriptor in "$place"/fd/*; do
		[ "$descriptor" -ef "$2" ] || continue
		grep -qx "pos:[[:space:]]*$(stat --format %s "$2")" \
			"$place/fdinfo/${descriptor##*/}" && return
	done
	return 1
}

# link_address HOST IFACE
link_address() {
	on "$1" ip -o link show "$2" | sed 's/.*link.ether \([0-9a-f:]*\) .*/\1/'
}

# unowned HOST IFACE ADDRESS... - addresses that the gateway finds at that host by that interface,
# and no kernel has: a program that hears and sends on the host's wire has both to itself
unowned() {
	local address
	for address in "${@:3}"; do
		on gateway ip neighbour add "$address" lladdr "$(link_address "$1" eth0)" \
			dev "$2" nud permanent
	done
}

# listening HOST tcp|udp PORT - whether some process listens there
listening() {
	[ -n "$(on "$1" ss -Hln "--$2" "sport = :$3")" ]
}

# web HOST PORT... - a web server for both families; /index.html is 16 kB, /large 64 MB
web() {
	local host=$1 port
	shift
	mkdir -p "$WORK/www"
	[ -e "$WORK/www/large" ] || head -c 64M /dev/zero >"$WORK/www/large"
	head -c 16384 /dev/zero >"$WORK/www/index.html"
	for port; do
		start "web-$host-$port" "$host" busybox httpd -f -p "[::]:$port" -h "$WORK/www"
		await 3 listening "$host" tcp "$port" || die "no web server on port $port of $host"
	done
}

# offloads HOST IFACE 0|1 [WHICH...] - what the kernel leaves to the card, all of it or what is
# named: checksums, segments, joining them
offloads() {
	local host=$1
	shift
	on "$host" python3 - "$@" <<'END_OF_PROGRAM'
import array, fcntl, socket, struct, sys
commands = {"tx-checksum": 0x17, "rx-checksum": 0x15, "tso": 0x1f, "gso": 0x24, "gro": 0x2c}
for which in sys.argv[3:] or commands:
    value = array.array("I", [commands[which], int(sys.argv[2])])
    request = struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0])
    try:
        fcntl.ioctl(socket.socket(), 0x8946, request)
    except OSError:
        pass  # not every kernel lets each be changed
END_OF_PROGRAM
}

# digest HOST ADDRESS PORT - of the file /random that a web server has there
digest() {
	local address=$2
	case $address in *:*) address="[$address]" ;; esac
	on "$1" curl --silent --noproxy '*' --max-time 10 "http://$address:$3/random" | sha256sum
}

# echo_server HOST PORT - answers TCP and UDP with what they say
echo_server() {
	start "echo-$1-$2" "$1" "$BIN/fwlab" echo "$2"
	await 3 grep -q ready "$WORK/echo-$1-$2.log" || die "no echo on port $2 of $1"
}

# one_by_one HOST ADDRESS COUNT [PAUSE [PORT [TOS]]] - datagrams to an echo server of
# one_by_one_server, and back; prints how many came back and their time to live there
one_by_one() {
	on "$1" python3 "$(dirname "$0")/one-by-one.py" ask "${@:2}"
}

# one_by_one_server HOST ADDRESS... - at port 7
one_by_one_server() {
	local host=$1 address
	shift
	for address; do
		start "serve-$address" "$host" python3 "$(dirname "$0")/one-by-one.py" serve \
			"$address"
		await 3 grep -q ready "$WORK/serve-$address.log" || die "no echo at $address"
	done
}

# Probes print in one or two words how a packet's sender sees the network.

# probe_web HOST ADDRESS PORT - fetches a page over HTTP, within PATIENCE seconds (1 unless set)
probe_web() {
	local address=$2 code
	case $address in *:*) address="[$address]" ;; esac
	code=$(on "$1" curl --silent --output /dev/null --noproxy '*' --max-time "${PATIENCE:-1}" \
		--write-out '%{http_code} %{size_download}' "http://$address:$3/")
	case $? in
	0) [ "$code" = "200 16384" ] && echo "passed" || echo "answer $code" ;;
	7) echo "refused" ;;
	28) echo "no answer" ;;
	*) echo "broken" ;;
	esac
}

# probe_ping HOST ADDRESS - one ICMP echo
probe_ping() {
	if on "$1" ping -n -q -c 1 -W 1 "$2" >/dev/null 2>&1; then
		echo "passed"
	else
		echo "no answer"
	fi
}

# probe_udp HOST ADDRESS PORT - a line to an echo server and back
probe_udp() {
	local said="hello from $1 $RANDOM" heard
	heard=$(printf '%s\n' "$said" | on "$1" timeout 1 nc -u -W 1 "$2" "$3" 2>/dev/null)
	case $? in
	0) # An ICMP error ends nc at once too, with nothing heard.
		case $heard in
		"$said") echo "passed" ;;
		"") echo "refused" ;;
		*) echo "broken" ;;
		esac ;;
	124) echo "no answer" ;;
	*) echo "broken" ;;
	esac
}

# probe_large_udp HOST ADDRESS PORT BYTES - so many bytes in a datagram that may be fragmented, to
# an echo server and back; where a link on the way has a smaller MTU the first ones may be lost
probe_large_udp() {
	on "$1" python3 - "$2" "$3" "$4" <<'END_OF_PROGRAM'
import socket, sys
address, port, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ipv6 = ":" in address
s = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
if not ipv6:
    s.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: IP_PMTUDISC_DONT
data = bytes(i % 251 for i in range(length))
for _ in range(4):
    s.sendto(data, (address, port))
    try:
        print("passed" if s.recv(65535) == data else "broken")
        break
    except OSError:
        pass
else:
    print("no answer")
END_OF_PROGRAM
}

# pf HOST ARGUMENT... - pfctl on that host
pf() {
	local host=$1
	shift
	on "$host" "$BIN/pfctl" "$@"
}

# daemon HOST [PATH] - skipstepd on that host; it logs to PATH0, $WORK/HOST-pflog0 if no PATH is
# given
daemon() {
	local host=$1 path=${2:-$WORK/$1-pflog}
	start "skipstepd-$host" "$host" "$BIN/skipstepd" -f "$path"
	await 5 grep -q "skipstepd: ready" "$WORK/skipstepd-$host.log" || {
		cat "$WORK/skipstepd-$host.log" >&2
		die "skipstepd does not start"
	}
}

# daemon_stop HOST [SIGNAL] - and waits until its workers are gone, too
daemon_stop() {
	local status processes
	processes=$(daemon_processes "$1")
	stop "skipstepd-$1" "${2:-TERM}"
	status=$?
	# shellcheck disable=SC2086
	await 5 eval '! ps -p "$(echo $processes | tr " " ,)"' || die "a worker outlives skipstepd"
	return $status
}

# daemon_processes HOST - skipstepd there, and its workers
daemon_processes() {
	local guardian=${PROCESSES[skipstepd-$1]}
	echo "$guardian"
	pgrep --parent "$guardian"
}

# daemon_signal HOST SIGNAL - to all of them
daemon_signal() {
	daemon_processes "$1" | xargs kill -s "$2"
}

# worker_of HOST TASK - the process of skipstepd there that has this task
worker_of() {
	pgrep --parent "${PROCESSES[skipstepd-$1]}" --full -- "--worker $2\$"
}

# wire_to_ports HOST... - wires the hosts to port0, port1 … of the host `bridge`, which have no
# addresses, and gives them addresses of one network, from 192.168.100.2 and 2001:db8:100::2 on
wire_to_ports() {
	local name number=0
	for name; do
		wire "$name" eth0 bridge "port$number"
		on bridge sh -c "echo 1 >/proc/sys/net/ipv6/conf/port$number/disable_ipv6"
		on bridge ip link set "port$number" up
		address "$name" eth0 "192.168.100.$((number + 2))/24" "2001:db8:100::$((number + 2))/64"
		number=$((number + 1))
	done
}

# confined PROCESS - true if a filter confines the system calls of each of its threads
confined() {
	[ -n "${1:-}" ] && ! grep -h '^Seccomp:' /proc/"$1"/task/*/status | grep -qv '[[:space:]]2$'
}

# unpacked PACKAGE LIBRARY... - the folder with a Debian package and what it needs, not installed:
# its program would be a service of this machine
unpacked() {
	local packages folder
	packages=$(dirname "$BIN")/packages
	folder=$packages/$1
	mkdir -p "$packages"
	(
		flock 9 # two tests may want it at once
		[ ! -e "$folder" ] || exit 0
		rm -rf "$folder.new"
		mkdir "$folder.new"
		cd "$folder.new" && apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 \
			download "$@" || exit
		for package in *.deb; do dpkg -x "$package" . || exit; done
		mv "$folder.new" "$folder"
	) 9>"$packages/lock" >"$packages/log" 2>&1 || {
		tail -n 3 "$packages/log" >&2
		return 1
	}
	echo "$folder"
}

# ftp_server HOST [pure-ftpd] - vsftpd, or the other, for anonymous: what is in $WORK/ftp can be
# read, and written in its folder upload. One after the other on a host, `stop ftp-HOST` between
# them.
ftp_server() {
	local host=$1 server=${2:-vsftpd} folder
	mkdir -p "$WORK/ftp/upload" "$WORK/nothing"
	chmod 755 "$WORK" "$WORK/ftp" "$WORK/nothing"
	chmod 777 "$WORK/ftp/upload"
	case $server in
	vsftpd) folder=$(unpacked vsftpd libwrap0) ;;
	*) folder=$(unpacked pure-ftpd libsodium23) ;;
	esac || unable "$server cannot be had here"
	set -- env LD_LIBRARY_PATH="$(echo "$folder"/lib/* "$folder"/usr/lib/* | tr ' ' :)"
	case $server in
	vsftpd)
		vsftpd_settings >"$WORK/vsftpd.conf"
		set -- "$@" "$folder/usr/sbin/vsftpd" "$WORK/vsftpd.conf"
		;;
	*) # It wants a user `ftp`, whom no machine needs to have outside of this test.
		{ grep -v ^ftp: /etc/passwd; echo \
			"ftp:x:$(id -u daemon):$(id -g daemon)::$WORK/ftp:/bin/false"; } \
			>"$WORK/passwd"
		# shellcheck disable=SC2016
		set -- "$@" unshare --mount sh \
			-c 'mount --bind "$1" /etc/passwd && shift && exec "$@"' sh "$WORK/passwd" \
			"$folder/usr/sbin/pure-ftpd" --anonymousonly --dontresolve \
			--maxclientsnumber 20000 \
			--maxclientsperip 20000 --pidfile "$WORK/pure-ftpd.pid" --syslogfacility \
			none --autorename
		;;
	esac
	start "ftp-$host" "$host" "$@"
	await 3 listening "$host" tcp 21 || die "no FTP server: $(cat "$WORK/ftp-$host.log")"
}

vsftpd_settings() {
	cat <<-END_OF_FILE
		listen_ipv6=YES
		background=NO
		max_clients=0
		max_per_ip=0
		anonymous_enable=YES
		no_anon_password=YES
		ftp_username=daemon
		anon_root=$WORK/ftp
		anon_upload_enable=YES
		anon_umask=022
		write_enable=YES
		connect_from_port_20=YES
		seccomp_sandbox=NO
		secure_chroot_dir=$WORK/nothing
	END_OF_FILE
}

# What tests say. A test goes on after a failed check, and ends with `verdict`.

FAILED=0

# same WHAT EXPECTED SEEN
same() {
	if [ "$2" = "$3" ]; then
		printf 'as expected: %s: %s\n' "$1" "$3"
	else
		printf 'NOT AS EXPECTED: %s: expected %s, seen %s\n' "$1" "$2" "$3"
		FAILED=1
	fi
}

# holds WHAT COMMAND... - a command that must succeed; what it prints is not shown
holds() {
	local what=$1
	shift
	if "$@" >/dev/null 2>&1; then
		printf 'as expected: %s\n' "$what"
	else
		printf 'NOT AS EXPECTED: %s (%s)\n' "$what" "$*"
		FAILED=1
	fi
}

# at_least N WHAT SEEN
at_least() {
	if [ "${3:-0}" -ge "$1" ]; then
		printf 'as expected: %s: %s, and at least %s\n' "$2" "$3" "$1"
	else
		printf 'NOT AS EXPECTED: %s: %s, not at least %s\n' "$2" "${3:-nothing}" "$1"
		FAILED=1
	fi
}

# at_most N WHAT SEEN
at_most() {
	if [ "${3:-$(($1 + 1))}" -le "$1" ]; then
		printf 'as expected: %s: %s, and at most %s\n' "$2" "$3" "$1"
	else
		printf 'NOT AS EXPECTED: %s: %s, not at most %s\n' "$2" "${3:-nothing}" "$1"
		FAILED=1
	fi
}

# unable WHY - this machine cannot run the test
unable() {
	echo "$*"
	exit 77
}

# verdict - ends a test
verdict() {
	exit $FAILED
}

# filter HOST - loads the rules on standard input there and sees to it that the filter is enabled
filter() {
	pf "$1" -q -f - || die "the rules were not loaded"
	pf "$1" -si | grep -q '^Status: Enabled' || pf "$1" -q -e || die "the filter is not enabled"
}

# reason HOST NAME - how many packets were counted under a reason of `pfctl -si`
reason() {
	pf "$1" -si | awk -v name="$2" '$1 == name { print $2; exit }'
}

# state_count HOST [PATTERN] - states that `pfctl -ss` shows, whose line matches
state_count() {
	pf "$1" -ss | grep -c -- "${2:-.}"
}
