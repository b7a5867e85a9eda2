# Hosts in network namespaces, joined by veth. A script that sources this file has a work directory,
# $WORK, and a trap that removes the hosts and the directory in every case. demo.sh and each test
# source it, or one of the files with common parts of some tests, which source it themselves.
#
# A host is a namespace named $LAB-NAME. Commands enter it with nsenter and not with `ip netns
# exec`, because that mounts another /sys, which does not show the pinned maps.

set -u -o pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
BIN=${BIN:-${CARGO_TARGET_DIR:-$ROOT/target}/release}
LAB=skipstep-$$
WORK=
# test programs import packets.py
export PYTHONDONTWRITEBYTECODE=1
declare -A HOSTS=() PINS=() PROCESSES=()

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
	BOLD='' DIM='' RED='' GREEN='' PLAIN=''
fi

# die TEXT... - prints the reason and ends; lab_end cleans up
die() {
	printf '%s\n' "$*" >&2
	exit 1
}

# measure ARGUMENT... - runs two short rounds of fwlab; prints its output
measure() {
	"$BIN/fwlab" measure --rounds 2 --seconds 0.02 "$@" 2>&1
}

# said FILE EXPRESSION - prints a value from a result file of fwlab; the expression calls the file
# `run`
said() {
	python3 -c \
		'import json, sys; run = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
		"$1" "$2"
}

# interrupted WORD MEASUREMENTS [ARGUMENT] - runs `fwlab WORD ARGUMENT --full`, and sends SIGINT
# once MEASUREMENTS measurements are done. Sets $result to its result file; $WORK/text has its
# output
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

# lab_end - cleans up when the script ends, also after Ctrl-C and errors
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
	# A mount may be a folder of this machine, such as /dev.
	awk -v work="$WORK/" 'index($2, work) == 1 { print $2 }' /proc/self/mounts | sort -r |
		xargs -r umount --lazy
	rm -rf --one-file-system "${WORK:?}"
	HOSTS=()
}

# lab_left - prints everything that lab_clean should have removed and did not
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

# host NAME... - makes hosts without links
host() {
	local name
	for name; do
		ip netns add "$LAB-$name" || die "cannot make a network namespace"
		HOSTS[$name]=1
		# Each network namespace has its own instance, which pfctl finds by itself.
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

# wire HOST IFACE HOST IFACE [IFINDEX] - joins two hosts; IFINDEX is the index of the second
# interface
wire() {
	ip link add name "$2" netns "$LAB-$1" type veth \
		peer name "$4" netns "$LAB-$3" ${5:+index "$5"} ||
		die "cannot join $1 and $3"
}

# bad_wire HOST IFACE HOST IFACE - joins two hosts by a network with impairment, as $BADNESS says;
# after `stop`, $WORK/bad-IFACE.log has its counters
bad_wire() {
	local name="bad-$4"
	# shellcheck disable=SC2086
	start "$name" "$1" "$BIN/fwlab" bad-network "$2" far0 ${BADNESS:-}
	await 3 grep -q ready "$WORK/$name.log" ||
		die "cannot join $1 and $3: $(cat "$WORK/$name.log")"
	on "$1" ip link set far0 netns "$LAB-$3" name "$4" || die "cannot join $1 and $3"
}

# address HOST IFACE ADDRESS... - adds addresses and brings the interface up
address() {
	local host=$1 interface=$2 address
	shift 2
	for address; do
		case $address in
		*:*) on "$host" ip address add "$address" dev "$interface" nodad ;;
		*) on "$host" ip address add "$address" dev "$interface" ;;
		esac || die "cannot give $address to $interface of $host"
	done
	# No duplicate address detection, so the link-local address works at once, too.
	on "$host" sh -c "echo 0 >/proc/sys/net/ipv6/conf/$interface/accept_dad"
	on "$host" ip link set "$interface" up
}

# gateway_between_client_and_server [WIRE] - makes the usual three hosts, joined by `wire` or the
# named function:
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
	# The first packet of a new wire can be lost during neighbour discovery.
	await 5 on client ping -n -q -c 1 -W 1 2001:db8:10::2 ||
		die "the hosts do not reach each other over IPv6"
	await 5 on client ping -n -q -c 1 -W 1 192.168.10.2 ||
		die "the hosts do not reach each other over IPv4"
	CLIENT4=192.168.100.2 CLIENT6=2001:db8:100::2
	SERVER4=192.168.10.2 SERVER6=2001:db8:10::2
}

# bridge_between_client_and_server - makes client and server on one network, joined by a bridge
# without addresses:
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

# gateway_between_families - makes a gateway for translation by af-to: the client reaches the server
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

# gateway_with_dmz - makes the usual three hosts, and another inside network on the gateway's dmz0
gateway_with_dmz() {
	gateway_between_client_and_server
	host dmz
	wire dmz eth0 gateway dmz0
	address gateway dmz0 192.168.200.1/24
	address dmz eth0 192.168.200.2/24
	on dmz ip route add default via 192.168.200.1
}

# gateway_with_two_ways_out - makes two providers that lead to the same server; the default route
# uses the first:
#
#   client        gateway                      isp1, isp2                 server
#   eth0 ---- lan0      wan1 ---------- gw0 [isp1] net0 ----------------- eth1
#   192.168.100.2      10.1.0.2    10.1.0.1      10.11.0.1         10.11.0.2
#                       wan2 ---------- gw0 [isp2] net0 ----------------- eth2
#                      10.2.0.2    10.2.0.1      10.12.0.1         10.12.0.2
#
# and the same in IPv6 under 2001:db8. The server is 192.0.2.80 and 2001:db8:80::80. It answers by
# the provider to which the packet's source belongs. No provider forwards packets with a source of
# the other provider.
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

# seen_from HOST ADDRESS PORT - prints the client's address as the server sees it, over TCP, within
# PATIENCE seconds (2 unless set); `witness` answers
seen_from() {
	on "$1" timeout "${PATIENCE:-2}" nc -w "${PATIENCE:-2}" "$2" "$3" </dev/null 2>/dev/null ||
		echo "no answer"
}

# witness HOST PORT... - starts servers that send each client its own address
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

# on HOST COMMAND... - runs a command on a host and waits for it
on() {
	local host=$1
	shift
	nsenter --net="/run/netns/$LAB-$host" -- "$@"
}

# start NAME HOST COMMAND... - runs a command on a host in the background; its output goes to
# $WORK/NAME.log
start() {
	local name=$1 host=$2
	shift 2
	: >"$WORK/$name.log" # at once, because a reader must not see an earlier log
	nsenter --net="/run/netns/$LAB-$host" -- "$@" </dev/null >>"$WORK/$name.log" 2>&1 &
	PROCESSES[$name]=$!
}

# stop NAME [SIGNAL] - ends the process of `start NAME` and waits for it; the exit status is that of
# the process
stop() {
	local pid=${PROCESSES[$1]}
	unset "PROCESSES[$1]"
	kill -s "${2:-TERM}" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

# last_words NAME - ends a process that prints "end" last; prints its output without "ready" and
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

# records FILE PATTERN - prints the number of records in a pflog file whose tcpdump line matches
# (extended regex)
records() {
	tcpdump -n -e -r "$1" 2>/dev/null | grep -Ec -- "$2"
}

# has_records N FILE PATTERN - true if at least N records match; skipstepd writes records with a
# delay
has_records() {
	[ "$(records "$2" "$3")" -ge "$1" ]
}

# has_read NAME FILE - true if the process of `start NAME` has read a file to its end
has_read() {
	local descriptor place=/proc/${PROCESSES[$1]}
	for descriptor in "$place"/fd/*; do
		[ "$descriptor" -ef "$2" ] || continue
		grep -qx "pos:[[:space:]]*$(stat --format %s "$2")" \
			"$place/fdinfo/${descriptor##*/}" && return
	done
	return 1
}

# link_address HOST IFACE - prints the link address of an interface
link_address() {
	on "$1" ip -o link show "$2" | sed 's/.*link.ether \([0-9a-f:]*\) .*/\1/'
}

# unowned HOST IFACE ADDRESS... - makes the gateway send packets for these addresses to HOST by
# IFACE. No kernel has the addresses, so only a program on the host's wire receives and answers the
# packets
unowned() {
	local address
	for address in "${@:3}"; do
		on gateway ip neighbour add "$address" lladdr "$(link_address "$1" eth0)" \
			dev "$2" nud permanent
	done
}

# listening HOST tcp|udp PORT - true if a process listens on the port
listening() {
	[ -n "$(on "$1" ss -Hln "--$2" "sport = :$3")" ]
}

# ssh_server HOST - starts sshd on port 2222, which root can log in to with "${SSH[@]}"
ssh_server() {
	[ -x /usr/sbin/sshd ] || unable "there is no sshd here"
	mkdir -p "$WORK/ssh" /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$WORK/ssh/host"
	ssh-keygen -q -t ed25519 -N '' -f "$WORK/ssh/user"
	cp "$WORK/ssh/user.pub" "$WORK/ssh/authorized"
	cat >"$WORK/ssh/config" <<-END
		Port 2222
		HostKey $WORK/ssh/host
		AuthorizedKeysFile $WORK/ssh/authorized
		PidFile none
		StrictModes no
		UsePAM no
		PermitRootLogin yes
	END
	start sshd "$1" /usr/sbin/sshd -D -e -f "$WORK/ssh/config"
	await 5 listening "$1" tcp 2222 || die "sshd does not listen: $(cat "$WORK/sshd.log")"
	SSH=(ssh -q -p 2222 -i "$WORK/ssh/user" -o StrictHostKeyChecking=no
		-o UserKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectTimeout=2)
}

# web HOST PORT... - starts a web server for both families; /index.html is 16 kB, /large 64 MB
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

# offloads HOST IFACE 0|1 [WHICH...] - switches the named offloads, or all: checksums, segmentation,
# GRO
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

# digest HOST ADDRESS PORT - prints the SHA-256 of the file /random of a web server
digest() {
	local address=$2
	case $address in *:*) address="[$address]" ;; esac
	on "$1" curl --silent --noproxy '*' --max-time 10 "http://$address:$3/random" | sha256sum
}

# echo_server HOST PORT [CPU] - starts a server that echoes TCP and UDP, on this CPU alone
echo_server() {
	start "echo-$1-$2" "$1" ${3:+taskset -c "$3"} "$BIN/fwlab" echo "$2"
	await 3 grep -q ready "$WORK/echo-$1-$2.log" || die "no echo on port $2 of $1"
}

# one_by_one HOST ADDRESS COUNT [PAUSE [PORT [TOS]]] - sends datagrams to the server of
# one_by_one_server; prints the number of answers, and the TTL of the last datagram at the server
one_by_one() {
	on "$1" python3 "$(dirname "$0")/one-by-one.py" ask "${@:2}"
}

# one_by_one_server HOST ADDRESS... - starts echo servers at port 7
one_by_one_server() {
	local host=$1 address
	shift
	for address; do
		start "serve-$address" "$host" python3 "$(dirname "$0")/one-by-one.py" serve \
			"$address"
		await 3 grep -q ready "$WORK/serve-$address.log" || die "no echo at $address"
	done
}

# Probes print the fate of a sender's packet in one or two words.

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

# probe_ping HOST ADDRESS - sends one ICMP echo request
probe_ping() {
	if on "$1" ping -n -q -c 1 -W 1 "$2" >/dev/null 2>&1; then
		echo "passed"
	else
		echo "no answer"
	fi
}

# probe_udp HOST ADDRESS PORT - sends a line to an echo server
probe_udp() {
	local said="hello from $1 $RANDOM" heard
	heard=$(printf '%s\n' "$said" | on "$1" timeout 1 nc -u -W 1 "$2" "$3" 2>/dev/null)
	case $? in
	0) # An ICMP error ends nc at once, too, without output.
		case $heard in
		"$said") echo "passed" ;;
		"") echo "refused" ;;
		*) echo "broken" ;;
		esac ;;
	124) echo "no answer" ;;
	*) echo "broken" ;;
	esac
}

# ask_udp HOST ADDRESS PORT - sends a datagram; prints the answer, "no answer", or "refused" for an
# ICMP error
ask_udp() {
	on "$1" python3 - "$2" "$3" <<'END_OF_PROGRAM'
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((address, port))
s.send(b"hello")
try:
    print(s.recv(100).decode().strip())
except TimeoutError:
    print("no answer")
except ConnectionRefusedError:
    print("refused")
END_OF_PROGRAM
}

# send_datagrams COUNT HOST ADDRESS PORT - sends COUNT datagrams of 100 bytes, at most 20,000 a
# second
send_datagrams() {
	on "$2" python3 - "$1" "$3" "$4" <<'END_OF_PROGRAM'
import socket, sys, time
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])):
    wire.sendto(b"x" * 100, (sys.argv[2], int(sys.argv[3])))
    i % 100 or time.sleep(0.005)
END_OF_PROGRAM
}

# probe_large_udp HOST ADDRESS PORT BYTES - sends BYTES bytes in a datagram that may be fragmented,
# to an echo server; with a smaller MTU on the way the first datagrams may be lost
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

# pf HOST ARGUMENT... - runs pfctl on a host
pf() {
	local host=$1
	shift
	if [ -n "${ETC:-}" ]; then
		# shellcheck disable=SC2016
		on "$host" unshare --mount sh -c 'mount --bind "$0" /etc && exec "$@"' \
			"$ETC" "$BIN/pfctl" "$@"
	else
		on "$host" "$BIN/pfctl" "$@"
	fi
}

# own_etc - gives pfctl a folder /etc of the test's own, which is $ETC
own_etc() {
	ETC=$WORK/etc
	mkdir "$ETC"
	cp /etc/services /etc/protocols /etc/passwd /etc/group "$ETC"
}

# daemon HOST [PATH] - starts skipstepd on a host; it logs to PATH0, by default $WORK/HOST-pflog0
daemon() {
	local host=$1 path=${2:-$WORK/$1-pflog}
	start "skipstepd-$host" "$host" "$BIN/skipstepd" -f "$path"
	await 5 grep -q "skipstepd: ready" "$WORK/skipstepd-$host.log" || {
		cat "$WORK/skipstepd-$host.log" >&2
		die "skipstepd does not start"
	}
}

# daemon_stop HOST [SIGNAL] - ends skipstepd, and waits until its workers have ended, too
daemon_stop() {
	local status processes
	processes=$(daemon_processes "$1")
	stop "skipstepd-$1" "${2:-TERM}"
	status=$?
	# shellcheck disable=SC2086
	await 5 eval '! ps -p "$(echo $processes | tr " " ,)"' || die "a worker outlives skipstepd"
	return $status
}

# daemon_processes HOST - prints the process numbers of skipstepd and its workers
daemon_processes() {
	local guardian=${PROCESSES[skipstepd-$1]}
	echo "$guardian"
	pgrep --parent "$guardian"
}

# daemon_signal HOST SIGNAL - sends a signal to skipstepd and its workers
daemon_signal() {
	daemon_processes "$1" | xargs kill -s "$2"
}

# worker_of HOST TASK - prints the process number of skipstepd's worker with a task
worker_of() {
	pgrep --parent "${PROCESSES[skipstepd-$1]}" --full -- "--worker $2\$"
}

# wire_to_ports HOST... - joins the hosts to port0, port1 … of the host `bridge`. The ports have no
# addresses; the hosts get addresses of one network, from 192.168.100.2 and 2001:db8:100::2 on
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

# unpacked PACKAGE LIBRARY... - prints the folder with an unpacked Debian package and its libraries.
# The package is not installed, because its program would become a service of this machine
unpacked() {
	local packages folder
	packages=$(dirname "$BIN")/packages
	folder=$packages/$1
	mkdir -p "$packages"
	(
		flock 9 # two tests may unpack the same package at once
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

# ftp_server HOST [pure-ftpd] - starts vsftpd, or pure-ftpd, for anonymous users: files in $WORK/ftp
# can be read, and files in its folder upload written. Only one server runs on a host; `stop
# ftp-HOST` ends it.
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
	*) # pure-ftpd needs a user `ftp`, which only this test gives it.
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

# Results. A test goes on after a failed check, and ends with `verdict`.

FAILED=0

# same WHAT EXPECTED SEEN - checks that a value is as expected
same() {
	if [ "$2" = "$3" ]; then
		printf 'as expected: %s: %s\n' "$1" "$3"
	else
		printf 'NOT AS EXPECTED: %s: expected %s, seen %s\n' "$1" "$2" "$3"
		FAILED=1
	fi
}

# holds WHAT COMMAND... - checks that a command succeeds; its output is discarded
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

# at_least N WHAT SEEN - checks that a number is at least N
at_least() {
	if [ "${3:-0}" -ge "$1" ]; then
		printf 'as expected: %s: %s, and at least %s\n' "$2" "$3" "$1"
	else
		printf 'NOT AS EXPECTED: %s: %s, not at least %s\n' "$2" "${3:-nothing}" "$1"
		FAILED=1
	fi
}

# at_most N WHAT SEEN - checks that a number is at most N
at_most() {
	if [ "${3:-$(($1 + 1))}" -le "$1" ]; then
		printf 'as expected: %s: %s, and at most %s\n' "$2" "$3" "$1"
	else
		printf 'NOT AS EXPECTED: %s: %s, not at most %s\n' "$2" "${3:-nothing}" "$1"
		FAILED=1
	fi
}

# unable WHY - ends a test that cannot run on this machine
unable() {
	echo "$*"
	exit 77
}

# verdict - ends a test
verdict() {
	exit $FAILED
}

# filter HOST - loads the rules on standard input, and enables the filter if it is disabled
filter() {
	pf "$1" -q -f - || die "the rules were not loaded"
	pf "$1" -si | grep -q '^Status: Enabled' || pf "$1" -q -e || die "the filter is not enabled"
}

# reason HOST NAME - prints the packets counted under a reason of `pfctl -si`
reason() {
	pf "$1" -si | awk -v name="$2" '$1 == name { print $2; exit }'
}

# state_count HOST [PATTERN] - prints the number of states whose line of `pfctl -ss` matches
state_count() {
	pf "$1" -ss | grep -c -- "${2:-.}"
}

[ "$(id -u)" = 0 ] || die "this makes network namespaces and loads BPF programs: run it as root"
[ -x "$BIN/pfctl" ] || die "$BIN/pfctl is missing: make build"
trap lab_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
WORK=$(mktemp -d "/tmp/$LAB-XXXXXX") || die "no work directory"
