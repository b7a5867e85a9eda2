#!/bin/bash
# make demo: the rule set of examples/gateway.conf on a live router, crossed by real programs. Ends
# with 0 only if all packets were treated as the rules say, and leaves nothing behind.
. "$(dirname "$0")/lab.sh"

HELD=0 BROKEN=0

title() {
	printf '\n%s== %s%s\n' "$BOLD" "$*" "$PLAIN"
}

# shown HOST COMMAND... - prints a command as a user would type it on that host, then its output
shown() {
	local host=$1
	shift
	printf '\n%s%s# %s%s\n' "$BOLD" "$host" "$*" "$PLAIN"
	if [ "$1" = pfctl ]; then
		shift
		pf "$host" "$@"
	else
		on "$host" "$@"
	fi
}

# expect WHAT RULE EXPECTED PROBE... - prints a line of a table and counts the probes that match
expect() {
	local what=$1 rule=$2 expected=$3 seen verdict
	shift 3
	seen=$("$@")
	if [ "$seen" = "$expected" ]; then
		verdict="${GREEN}ok$PLAIN" HELD=$((HELD + 1))
	else
		verdict="${RED}NOT AS EXPECTED$PLAIN" BROKEN=$((BROKEN + 1))
	fi
	printf '  %-32s %-30s %-10s %-10s %s\n' "$what" "$rule" "$expected" "$seen" "$verdict"
}

table_head() {
	printf '  %s%-32s %-30s %-10s %-10s%s\n' "$DIM" "$1" "$2" "expected" "seen" "$PLAIN"
}

# with_filter_off - checks that every server answers without the filter, so that later failures are
# the rules' effect
with_filter_off() {
	local all="(no filter)"
	table_head "what" ""
	expect "HTTP, port 80, IPv4" "$all" passed probe_web client $SERVER4 80
	expect "HTTP, port 80, IPv6" "$all" passed probe_web client $SERVER6 80
	expect "HTTP, port 8080, IPv4" "$all" passed probe_web client $SERVER4 8080
	expect "HTTP, port 8080, IPv6" "$all" passed probe_web client $SERVER6 8080
	expect "HTTP, port 23, IPv4" "$all" passed probe_web client $SERVER4 23
	expect "HTTP, port 23, IPv6" "$all" passed probe_web client $SERVER6 23
	expect "UDP echo, port 53, IPv4" "$all" passed probe_udp client $SERVER4 53
	expect "UDP echo, port 9, IPv4" "$all" passed probe_udp client $SERVER4 9
	expect "UDP echo, port 9, server > client" "$all" passed probe_udp server $CLIENT4 9
}

with_filter_on() {
	table_head "what" "the rule that says so"
	expect "HTTP, port 80, IPv4" "pass in .. {21,22,80,5001}" passed probe_web client $SERVER4 \
		80
	expect "HTTP, port 80, IPv6" "pass in .. {21,22,80,5001}" passed probe_web client $SERVER6 \
		80
	expect "HTTP, port 8080, IPv4" "block return in log .. 8080" refused probe_web client \
		$SERVER4 8080
	expect "HTTP, port 8080, IPv6" "block return in log .. 8080" refused probe_web client \
		$SERVER6 8080
	expect "HTTP, port 23, IPv4" "block in log .. 23" "no answer" probe_web client $SERVER4 23
	expect "HTTP, port 23, IPv6" "block in log .. 23" "no answer" probe_web client $SERVER6 23
	expect "ping, IPv4" "pass in proto icmp" passed probe_ping client $SERVER4
	expect "ping, IPv6" "pass in inet6 proto icmp6" passed probe_ping client $SERVER6
	expect "UDP echo, port 53, IPv4" "pass in .. { udp, tcp } .. 53" passed probe_udp client \
		$SERVER4 53
	expect "UDP echo, port 53, IPv6" "pass in .. { udp, tcp } .. 53" passed probe_udp client \
		$SERVER6 53
	expect "UDP echo, port 9, IPv4" "block all" "no answer" probe_udp client $SERVER4 9
	expect "HTTP, server > client" "pass out on lan0 proto tcp" passed probe_web server \
		$CLIENT4 8000
	expect "UDP echo, port 9, server > client" "block all (out on lan0)" "no answer" probe_udp \
		server $CLIENT4 9
	expect "gateway's port 22, from outside" "pass in on wan0 .. port 22" passed probe_web \
		server 192.168.10.81 22
	expect "gateway's port 22, from inside" "block all" "no answer" probe_web client \
		192.168.100.1 22
	expect "gateway to itself over lo" "pass on lo" passed probe_web gateway 127.0.0.1 22
	expect "iperf3, port 5001, IPv4" "pass in .. {21,22,80,5001}" passed probe_iperf $SERVER4
	expect "iperf3, port 5001, IPv6" "pass in .. {21,22,80,5001}" passed probe_iperf $SERVER6
}

# throughput ADDRESS - prints the Gbit/s of one TCP stream of a second
throughput() {
	on client iperf3 --client "$1" --port 5001 --time 1 --connect-timeout 1000 --json \
		2>/dev/null |
		sed -n '/"sum_received"/,/}/s/.*"bits_per_second":[[:space:]]*\([0-9.e+]*\).*/\1/p' |
		awk '{ printf "%.2f\n", $1 / 1e9; got = 1 } END { exit !got }'
}

probe_iperf() {
	if [ -n "$(throughput "$1")" ]; then echo "passed"; else echo "no answer"; fi
}

# transactions tcp|udp SIZE - prints the requests answered in a second, one at a time, all on one
# CPU
transactions() {
	on client taskset -c 0 "$BIN/fwlab" rr "$1" "$SERVER4:53" --size "$2" --seconds 0.7 \
		2>/dev/null |
		sed -n 's/^rate=\([0-9]*\).*/\1/p'
}

measure_once() {
	local state=$1
	throughput $SERVER4 >>"$WORK/iperf3.$state"
	transactions tcp 1024 >>"$WORK/tcp.$state"
	transactions udp 64 >>"$WORK/udp.$state"
}

median() {
	sort -g "$1" | awk \
		'{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# compared NAME FILE UNIT - prints the median and all rounds with the filter off and on, and the
# ratio
compared() {
	local off on
	off=$(median "$WORK/$2.off") on=$(median "$WORK/$2.on")
	if [ -z "$off" ] || [ -z "$on" ]; then
		printf '  %-28s %s\n' "$1" "${RED}no figure$PLAIN"
		BROKEN=$((BROKEN + 1))
		return
	fi
	printf '  %-28s %10s %10s %-8s %6s   %s\n' "$1" "$off" "$on" "$3" \
		"$(awk -v a="$on" -v b="$off" 'BEGIN { printf "%.0f%%", 100 * a / b }')" \
		"$DIM$(tr '\n' ' ' <"$WORK/$2.off")| $(tr '\n' ' ' <"$WORK/$2.on")$PLAIN"
}

figures() {
	local rounds=4 round
	for ((round = 1; round <= rounds; round++)); do
		[ ! -t 1 ] || printf '\r  round %d of %d: filter off, filter on ' $round $rounds
		pf gateway -q -d
		measure_once off
		pf gateway -q -e
		measure_once on
	done
	[ ! -t 1 ] || printf '\r%42s\r' ""
	printf '  %s%-28s %10s %10s %-8s %6s   %s%s\n' "$DIM" "median of $rounds rounds" \
		"filter off" "filter on" "" "ratio" \
		"each round, off | on" "$PLAIN"
	compared "iperf3, one TCP stream" iperf3 "Gbit/s"
	compared "TCP request/response 1024" tcp "a second"
	compared "UDP request/response 64" udp "a second"
	awk -v cpus="$(nproc)" \
		'$1 > cpus + 1 { printf "  The machine is busy (load %s on %d CPUs): these figures mean little.\n", $1, cpus }' /proc/loadavg
	printf '  %sVirtual wires on one machine: compare the columns, not the figures with other machines.%s\n' "$DIM" "$PLAIN"
}

title "Three hosts"
gateway_between_client_and_server
cat <<-'END'

	  client                          gateway                          server
	  eth0 ---------------------- lan0      wan0 ---------------------- eth0
	  192.168.100.2        192.168.100.1    192.168.10.81       192.168.10.2
	  2001:db8:100::2    2001:db8:100::1    2001:db8:10::81   2001:db8:10::2
END
web server 80 8080 23
web client 8000
web gateway 22
echo_server server 53
echo_server server 9
echo_server client 9
start iperf3 server iperf3 --server --port 5001
await 3 listening server tcp 5001 || die "no iperf3 server"

title "Filter off: the gateway is a plain router"
with_filter_off

title "Filter on"
cd "$ROOT" || die "no $ROOT"
shown gateway pfctl -ef examples/gateway.conf || die "the rules were not loaded"
daemon gateway
echo
with_filter_on

title "What the firewall knows"
shown gateway pfctl -vvsr
shown gateway pfctl -ss
shown gateway pfctl -si
shown gateway tcpdump -n -e -ttt -r "$WORK/gateway-pflog0" 2>&1 | grep -v '^reading from' |
	tail -n 14
logged=$(tcpdump -n -e -r "$WORK/gateway-pflog0" 2>/dev/null | grep -c "block in on lan0")
[ "${logged:-0}" -ge 4 ] || {
	BROKEN=$((BROKEN + 1))
	echo "  ${RED}the log lacks what the rules with log blocked$PLAIN"
}

title "What it costs"
figures

title "Result"
lab_clean
left=$(lab_left)
if [ -n "$left" ]; then
	BROKEN=$((BROKEN + 1))
	printf '  %sleft behind:%s\n%s\n' "$RED" "$PLAIN" "$left"
else
	echo "  Hosts, links, programs, pinned maps and processes are gone."
fi
printf '  %d expectations held, %d did not\n' $HELD $BROKEN
[ $BROKEN = 0 ]
