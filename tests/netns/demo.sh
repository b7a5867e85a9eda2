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

# cpus - prints the CPUs that this process may use, ascending
cpus() {
	local range
	for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
		seq "${range%-*}" "${range#*-}"
	done
}

# throughput ADDRESS - prints the Gbit/s of one TCP stream of a second; client and server have a CPU
# each, if there are two
throughput() {
	on client iperf3 --client "$1" --port 5001 --time 1 --connect-timeout 1000 --json \
		--affinity "$FIRST_CPU,$LAST_CPU" 2>/dev/null |
		sed -n '/"sum_received"/,/}/s/.*"bits_per_second":[[:space:]]*\([0-9.e+]*\).*/\1/p' |
		awk '{ printf "%.2f\n", $1 / 1e9; got = 1 } END { exit !got }'
}

probe_iperf() {
	if [ -n "$(throughput "$1")" ]; then echo "passed"; else echo "no answer"; fi
}

# transactions tcp|udp SIZE - prints the requests answered in a second, one at a time. Client and
# server share a CPU: if the scheduler chose their CPUs, the rate would show its choice
transactions() {
	on client taskset -c "$LAST_CPU" "$BIN/fwlab" rr "$1" "$SERVER4:53" --size "$2" \
		--seconds 0.6 2>/dev/null | sed -n 's/^rate=\([0-9]*\).*/\1/p'
}

# figure FILE COMMAND... - appends the command's figure to the file, or - if there is none
figure() {
	local file=$1
	shift
	{ "$@" || true; } | grep . >>"$WORK/$file" || echo - >>"$WORK/$file"
}

# measure_once on|off - measures with the filter enabled or disabled
measure_once() {
	pf gateway -q -e
	[ "$1" = on ] || pf gateway -q -d
	figure "iperf3.$1" throughput "$SERVER4"
	figure "tcp.$1" transactions tcp 1024
	figure "udp.$1" transactions udp 64
}

# rounds_of TITLE FILE - prints the rounds of a measurement for fwlab ratio
rounds_of() {
	echo "[$1]"
	paste -d ' ' "$WORK/$2.off" "$WORK/$2.on"
}

figures() {
	local rounds=6 round order setting
	for ((round = 1; round <= rounds; round++)); do
		[ ! -t 1 ] || printf '\r  round %d of %d: filter off and on ' $round $rounds
		# each setting comes first in every other round, because a machine may become slower
		order="off on"
		((round % 2)) || order="on off"
		for setting in $order; do
			measure_once "$setting"
		done
	done
	pf gateway -q -e
	[ ! -t 1 ] || printf '\r%42s\r' ""
	{
		rounds_of "iperf3, one stream, Gbit/s" iperf3
		rounds_of "TCP requests/s, 1024 bytes" tcp
		rounds_of "UDP requests/s, 64 bytes" udp
	} >"$WORK/rounds"
	if ! "$BIN/fwlab" ratio --before "filter off" --after "filter on" --widest 20 \
		<"$WORK/rounds" >"$WORK/ratios" || grep -q 'complete rounds *0 ' "$WORK/ratios"; then
		echo "  ${RED}a measurement has no figures$PLAIN"
		BROKEN=$((BROKEN + 1))
	fi
	sed 's/^/  /' "$WORK/ratios"
	cat <<-END
		  ${DIM}Medians of $rounds rounds. A median whose 95 % interval is wider than
		  20 % of it is noise: this machine has other work to do. The wires are virtual,
		  so compare filter off with filter on, not the figures of two runs.$PLAIN
	END
}

FIRST_CPU=$(cpus | head -n 1) LAST_CPU=$(cpus | tail -n 1)

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
echo_server server 53 "$LAST_CPU"
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
