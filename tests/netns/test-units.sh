# The services of packaging/ have few rights, and these rights suffice. Without systemd the test can
# apply the capabilities and mounts of the units, but no filters for system calls, address families
# or devices.
#
#   client ----------------- gateway (the services) ----------------- server
#                  lan0                               wan0
#
# The gateway is the test's own namespace.
. "$(dirname "$0")/units.sh"
host client server

for name in skipstepd skipstep-boot skipstep-closed skipstep-attached skipstep-rules ftp-proxy \
	ftpsesame ftp-gw skipstep-web skipstep-broker; do
	said=$(systemd-analyze security --offline=true --threshold=29 --no-pager "$(unit "$name")" 2>&1)
	same "is $name.service exposed less than 3.0" 0 $?
	sed -n 's/.*\(Overall.*: [0-9.]*\).*/\1/p' <<<"$said"
	case $name in
	skipstep-boot | skipstep-rules) ;; # the kernel charges the filter's maps to these
	*) holds "its memory is bounded" grep -q '^MemoryMax=[0-9]*[GM]$' "$ROOT/packaging/$name.service" ;;
	esac
	[[ $name =~ ^(ftp-gw|skipstep-web|skipstep-closed|skipstep-attached)$ ]] ||
		same "its programs may change the filter" 1 "$(setting "$name" SystemCallFilter | grep -cw bpf)"
done

ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
ip link add eth0 netns "$LAB-client" type veth peer name lan0
ip link add eth0 netns "$LAB-server" type veth peer name wan0
ip address add 192.168.100.1/24 dev lan0
ip address add 192.168.10.81/24 dev wan0
ip link set lan0 up
ip link set wan0 up
address client eth0 192.168.100.2/24
address server eth0 192.168.10.2/24
on client ip route add default via 192.168.100.1
on server ip route add default via 192.168.10.81
await 5 on client ping -n -q -c 1 -W 1 192.168.10.2 || die "the hosts do not reach each other"

# the rules before the network starts
echo pass >"$WORK/pf.conf"
for number in 1 2; do
	said=$(as_command skipstep-boot ExecStart $number 2>&1)
	same "command $number of skipstep-boot.service" "0 " "$? $said"
done
same "the instance" main "$(ls /sys/fs/bpf/skipstep)"
same "what others may do in /run/skipstep" "" "$(find /run/skipstep -perm /077)"
same "the rules of boot.conf" "block drop all" "$("$BIN/pfctl" -sr | head -n 1)"

# rules that are loaded with all rights, and skipstepd
"$BIN/pfctl" -q -f - <<-'END_OF_RULES' || die "the rules were not loaded"
	block log all
	pass inet proto icmp
	pass in on lan0 proto udp to port 700 divert-packet port 700
	pass in on lan0 inet proto tcp to port 21 divert-to 127.0.0.1 port 8021
	pass out on wan0 proto tcp from self to port 21
	anchor "ftp-proxy/*"
	anchor "ftpsesame/*"
END_OF_RULES
# shellcheck disable=SC2046
service skipstepd $(command_of skipstepd ExecStart)
holds "skipstepd is ready" await 5 grep -q "skipstepd: ready" "$WORK/skipstepd.log"
probe_udp client 192.168.10.2 53 >/dev/null # a packet that is blocked and logged
holds "it writes the log" await 5 test -s /var/log/skipstep/pflog0
holds "it opens sockets for programs" await 5 test -S /run/skipstep/main/divert/700
same "it puts fragments together" passed \
	"$(on client ping -n -q -c 1 -W 2 -s 4000 192.168.10.2 >/dev/null && echo passed)"
ip link add later0 type veth peer name later1
holds "it attaches interfaces" await 5 eval '"$BIN/pfctl" -sI -vv -i later0 | grep -q "Hook: *tc"'
same "it complains about nothing" "skipstepd: ready" "$(cat "$WORK/skipstepd.log")"

# FTP: rules of a session are loaded, and removed with the session
start naive server python3 "$HERE/naive_ftp.py" serve
await 10 listening server tcp 21 || die "no FTP server: $(cat "$WORK/naive.log")"
# shellcheck disable=SC2046
service ftp-proxy $(command_of ftp-proxy ExecStart)
await 5 eval '[ -n "$(ss -Hlnt "sport = :8021")" ]' ||
	die "no ftp-proxy: $(cat "$WORK/ftp-proxy.log")"
in_force() {
	"$BIN/pfctl" -a '*' -sr | grep -q 'keep state (max 1)'
}
start hold client python3 "$HERE/naive_ftp.py" hold 192.168.10.2 -
holds "ftp-proxy opens the filter" await 5 in_force
stop hold
holds "and closes it" await 5 eval '! in_force'
# shellcheck disable=SC2046
service ftpsesame $(command_of ftpsesame ExecStart)
# the name of the file that the guardian locks contains the log
holds "ftpsesame reads its log" await 5 grep -qr 1 /run/skipstep/main/owners --include='ftpsesame.*'
for name in ftpsesame ftp-proxy; do
	holds "$name has a worker" await 5 pgrep --parent "${PROCESSES[$name]}"
	worker=$(pgrep --parent "${PROCESSES[$name]}") || die "$(cat "$WORK/$name.log")"
	kill "$worker" # as systemd does, to all processes of a service
	stop "$name"
	same "$name ends" 0 $?
	same "it leaves nothing" "" "$(find /run/skipstep/main/owners -name "$name.*")"
done
stop skipstepd
same "skipstepd ends" 0 $?
verdict
