# FTP through a gateway, by each proxy; `xtask bench --ftp` calls this script and makes the table.
# In each of ROUNDS rounds it measures all proxies and prints a line for each: name, sessions per
# second of CLIENTS parallel clients, bytes per second of one client, and for ftp-gw its CPU time in
# milliseconds for 1 GB. At the end it prints the memory of an idle session.
#
# A small file measures sessions, and a large file bytes. Every proxy has its own address of the
# server.
. "$(dirname "$0")/lab.sh"
ROUNDS=${ROUNDS:-5} CLIENTS=6 SECONDS_EACH=${SECONDS_EACH:-1} IDLE=300 LARGE=400
gateway_between_client_and_server
ftp_server server
echo small >"$WORK/ftp/small"
head -c "${LARGE}M" /dev/zero >"$WORK/ftp/large"
on server sysctl -q net.ipv4.ip_local_port_range="10000 65000"
on client sysctl -q net.ipv4.ip_local_port_range="10000 65000" net.ipv4.tcp_tw_reuse=1
for last in 3 4 5; do address server eth0 "192.168.10.$last/24"; done
FILTER=192.168.10.2 PROXY=192.168.10.3 SESAME=192.168.10.4 GW=192.168.10.5
SHOVELS="512 2k 16k 64k 256k 1M splice"

filter gateway <<END_OF_RULES
set limit states 500000
block
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
anchor "ftp-proxy/*"
anchor "ftpsesame/*"
pass on { lan0, wan0 } proto tcp from 192.168.100.2 to $FILTER
pass in quick on lan0 proto tcp to $PROXY port 21 divert-to 127.0.0.1 port 8021
pass out on wan0 proto tcp from self
pass in log (all, to pflog1) on lan0 proto tcp to $SESAME port 21 set delay 40
pass out on wan0 proto tcp from 192.168.100.2 to $SESAME port 21
pass in quick on lan0 proto tcp to self port { 2000:2999, 50000:59999 }
END_OF_RULES
daemon gateway
start proxy gateway "$BIN/ftp-proxy" -d -m 1000
start sesame gateway "$BIN/ftpsesame" -d
port=2000
declare -A PORTS
for shovel in $SHOVELS; do
	port=$((port + 1))
	PORTS[$shovel]=$port
	cat >"$WORK/$shovel.conf" <<-END_OF_FILE
		listen = ["192.168.100.1:$port"]
		data-ports = "50000-59999"
		shovel = "$shovel"
		limits = { sessions = 1000, sessions-per-client = 1000 }
		rule = [{ action = "allow" }]
	END_OF_FILE
	start "gw-$shovel" gateway "$BIN/ftp-gw" -d -D 4 -f "$WORK/$shovel.conf"
	await 3 listening gateway tcp "$port" || die "no gateway: $(cat "$WORK/gw-$shovel.log")"
done
await 3 grep -q listening "$WORK/proxy.log" || die "no ftp-proxy: $(cat "$WORK/proxy.log")"
await 3 grep -q watching "$WORK/sesame.log" || die "no ftpsesame: $(cat "$WORK/sesame.log")"

# load SERVER OPTION... - runs the load and prints sessions per second and bytes per second
load() {
	on client "$BIN/fwlab" ftp "$@" | sed 's/ sessions.s,//; s/ bytes.s//' ||
		die "a session failed: $*"
}

# spent [PROCESS] - prints the CPU time of a process in nanoseconds
spent() {
	[ -z "$1" ] || cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

# measured NAME PROCESS SERVER OPTION... - prints a line of the table
measured() {
	local name=$1 process=$2 sessions bytes before
	shift 2
	read -r sessions _ < <(load "$@" --seconds "$SECONDS_EACH" --clients "$CLIENTS")
	before=$(spent "$process")
	read -r _ bytes < <(load "$@" --seconds 0.01 --file large)
	[ -n "$sessions" ] && [ -n "$bytes" ] || die "nothing was measured of $name"
	echo "$name: $sessions $bytes${process:+ $((($(spent "$process") - before) / (LARGE * 1048)))}"
}

for _ in $(seq "$ROUNDS"); do
	pf gateway -q -d
	measured "router, no filter" "" "$FILTER:21"
	pf gateway -q -e
	measured "router, filter" "" "$FILTER:21"
	measured "ftp-proxy" "" "$PROXY:21"
	measured "ftpsesame" "" "$SESAME:21"
	for shovel in $SHOVELS; do
		measured "ftp-gw, $shovel" "${PROCESSES[gw-$shovel]}" "192.168.100.1:${PORTS[$shovel]}" --user "anonymous@$GW"
	done
done

# memory PROCESS - prints the resident memory of a process in kB
memory() {
	awk '$1 == "Rss:" { print $2 }' "/proc/$1/smaps_rollup"
}
# this process has had sessions before, so that the difference is the memory of sessions only
process=${PROCESSES[gw-64k]}
before=$(memory "$process")
start idle client "$BIN/fwlab" ftp --idle $IDLE --user "anonymous@$GW" "192.168.100.1:${PORTS[64k]}"
await 60 grep -q ready "$WORK/idle.log" || die "no idle sessions: $(cat "$WORK/idle.log")"
echo "memory: $IDLE $before $(memory "$process")"
