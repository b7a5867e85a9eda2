# A new interface is attached at once, also while pfctl loads 100,000 rules repeatedly and holds the
# instance's lock most of the time.
# alone
# long: 30 s
. "$(dirname "$0")/lab.sh"
host gateway
seq 100000 | awk '{ printf "block in proto udp from 10.%d.%d.%d to port %d\n",
	$1 / 65536, $1 / 256 % 256, $1 % 256, $1 % 60000 + 1 }' >"$WORK/rules"
pf gateway -q --room-for "$WORK/rules" -f - <<<"block all" || die "the rules were not loaded"
pf gateway -q -e || die "the filter is not enabled"
daemon gateway

# latency COUNT - prints milliseconds until interfaces are attached in both directions, and of a
# grace period: the medians, then the 99th percentiles
latency() {
	on gateway python3 "$HERE/late-links.py" "${PINS[gateway]}/links" "$1" >"$WORK/times" ||
		die "interfaces were not attached"
	for number in $(seq 0 $(($1 - 1))); do
		on gateway ip link delete "late$number"
	done
	for part in 0.5 0.99; do
		for column in 1 2 3; do
			awk -v column=$column '{ print $column }' "$WORK/times" | sort -n |
				awk -v part=$part '{ at[NR] = $1 } END { print at[int(NR * part + 0.99)] }'
		done
	done | xargs
}
# told WHEN MEDIANS MOST - prints medians and percentiles
told() {
	echo "milliseconds $1: median: in $2, out $3; 99 of 100: in $5, out $6;" \
		"a grace period, of which there is one in the first and two in the second: $4, $7"
}
# shellcheck disable=SC2046
told "with nothing beside" $(latency 50)

start reload gateway sh -c 'while "$1" -q -o none -f "$2"; do echo loaded; done' sh "$BIN/pfctl" \
	"$WORK/rules"
await 30 grep -q loaded "$WORK/reload.log" || die "100,000 rules are not loaded"
before=$(wc -l <"$WORK/reload.log")
read -r in out grace most_in most_out most_grace <<<"$(latency 100)"
after=$(wc -l <"$WORK/reload.log")
told "beside loads" "$in" "$out" "$grace" "$most_in" "$most_out" "$most_grace"
at_least 2 "loads meanwhile" $((after - before))
# 5 are enough on an idle machine; this machine may be busy, and a load that meets the interface
# attaches it as well
at_most 20 "milliseconds beside grace periods, in, median" $((${in%.*} - ${grace%.*}))
at_most 20 "milliseconds beside grace periods, out, median" $((${out%.*} - 2 * ${grace%.*}))
at_most 150 "milliseconds beside grace periods, out, 99 of 100" \
	$((${most_out%.*} - 2 * ${most_grace%.*}))
stop reload
verdict
