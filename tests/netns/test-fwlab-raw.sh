# The frames of fwlab cross each of its networks, are well-formed and are counted. The networks are
# removed for every end of the program.
# alone
# long: 13 s of a processor, 28 s beside five others
. "$(dirname "$0")/lab.sh"

# frames per second that a router forwards even on a busy CPU
RATE=20000

# lost ARGUMENT... - sends frames through a network for a tenth of a second; prints loss counters
lost() {
	"$BIN/fwlab" raw --seconds 0.1 "$@" 2>&1 |
		sed -n 's/^received .*, lost \([0-9]*\) .*twice \([0-9]*\), overtaken \([0-9]*\),.*/\1 \2 \3/p'
}

# between LOW HIGH WHAT NUMBER - checks that a number lies between two others
between() {
	same "$3: $4, between $1 and $2" yes \
		"$(awk -v it="$4" -v low="$1" -v high="$2" \
		'BEGIN { if (it >= low && it <= high) print "yes" }')"
}

# ours PROCESS - prints the number of network namespaces of a process
ours() {
	ip netns list | grep -c "^fwlab-$1-"
}

for topology in direct router bridge three-legged; do
	for load in "--size 64" "--transport tcp --size 128" "--ip 6 --size imix" \
		"--ip 6 --transport tcp --size 96"; do
		# shellcheck disable=SC2086
		same "lost, twice, overtaken: $topology $load" "0 0 0" \
			"$(lost --rate $RATE --topology $topology $load)"
	done
done
for load in "--size 64 --destinations 7" "--transport tcp --ip 6 --size imix --rate 5000" \
	"--size 9018 --mtu 9000"; do
	# shellcheck disable=SC2086
	same "by a packet socket: $load" "0 0 0" "$(lost --engine packet --topology router $load)"
done
for extension in hop-by-hop destination routing fragment chain; do
	same "frames with the extension headers $extension" "0 0 0" \
		"$(lost --rate $RATE --topology router --ip 6 --size 124 --extension $extension)"
done
"$BIN/fwlab" raw --topology router --ip 6 --size 124 --extension chain --rate 200 --seconds 20 \
	>/dev/null 2>&1 &
process=$!
await 5 ip -n "fwlab-$process-raw-server" route get 198.18.0.2 || die "no network"
nsenter --net="/run/netns/fwlab-$process-raw-device" -- timeout 5 tcpdump -nn -vv -c 5 -i wan0 ip6 \
	>"$WORK/seen" 2>/dev/null
kill -TERM $process
wait $process
same "a chain, as tcpdump reads it" 5 \
	"$(grep -cE 'RT6 .*type=2.*DSTOPT .*frag .* 9: .*UDP, length 18' "$WORK/seen")"
same "to the third network" "0 0 0" "$(lost --rate $RATE --topology three-legged --to dmz)"
same "from one, to many at random" "0 0 0" \
	"$(lost --rate $RATE --topology router --sources random:60000 --destinations 60000 \
	--source-ports 40000)"

# The device drops frames for half a second. fwlab reports the number of consecutive losses, their
# duration and their end. The device counts the dropped frames, so a slow machine, which sends fewer
# frames, gives the same result.
"$BIN/fwlab" raw --topology router --rate 2000 --seconds 2 >"$WORK/gap" 2>&1 &
process=$!
await 5 ip netns exec "fwlab-$process-raw-device" ip route get 198.19.0.2 || die "no network"
await 5 grep -q "offloads" "$WORK/gap" || die "no frames"
in_device() {
	ip netns exec "fwlab-$process-raw-device" "$@"
}
# forwarded - true if frames cross the device
forwarded() {
	[ "$(in_device cat /sys/class/net/wan0/statistics/tx_packets)" -gt 100 ]
}
await 5 forwarded || die "no frames"
begin=$EPOCHREALTIME
in_device nft 'add table ip x; add counter ip x dropped
	add chain ip x f { type filter hook forward priority 0; }
	add rule ip x f counter name dropped drop'
sleep 0.5 # the length of the gap
in_device nft 'flush chain ip x f'
end=$EPOCHREALTIME
dropped=$(in_device nft list counter ip x dropped | sed -n 's/.*packets \([0-9]*\) .*/\1/p')
wait $process
length=$(awk -v a="$begin" -v b="$end" 'BEGIN { print b - a }')
at_least 100 "dropped frames" "$dropped"
between 0.4 "$length" "seconds of a gap" "$(sed -n 's/^gap .* at most, \(.*\) s$/\1/p' "$WORK/gap")"
same "frames in it" "$dropped" "$(sed -n 's/^gap *\([0-9]*\) frames.*/\1/p' "$WORK/gap")"
between 0.4 2 "the last one's time" "$(sed -n 's/^last loss *\([0-9.]*\) s .*/\1/p' "$WORK/gap")"

printf '198.18.7.7\n198.18.7.8 # the other\n' >"$WORK/list"
for ip in 4 6; do
	for transport in udp tcp; do
		engine=xdp
		[ $ip$transport != 4tcp ] && [ $ip$transport != 6udp ] || engine=packet
		"$BIN/fwlab" raw --engine $engine --topology router --ip $ip --transport \
			$transport --size 200 --sources "list:$WORK/list" \
			--source-ports fixed --rate 500 --seconds 20 >"$WORK/raw.log" 2>&1 &
		process=$!
		await 5 ip -n "fwlab-$process-raw-server" route get 198.18.0.2 ||
			die "no network: $(cat "$WORK/raw.log")"
		nsenter --net="/run/netns/fwlab-$process-raw-device" -- timeout 10 tcpdump \
			-nn -vv -c 60 -i lan0 "$transport" \
			>"$WORK/seen" 2>/dev/null
		at_least 50 "right checksums, IPv$ip $transport" \
			"$(grep -cE 'udp sum ok|\(correct\)' "$WORK/seen")"
		# a right one may read 0x1bad
		same "wrong ones" "" \
			"$(grep -E 'bad (udp )?cksum|incorrect' "$WORK/seen" | head -3)"
		[ $ip = 6 ] || same "sources" "198.18.7.7 198.18.7.8" \
			"$(grep -oE '198\.18\.[0-9]+\.[0-9]+' "$WORK/seen" | sort -u | xargs)"
		kill -TERM $process
		wait $process
		same "hosts of a run that was told to end" 0 "$(ours $process)"
	done
done

"$BIN/fwlab" raw --topology router --rate 1000 --seconds 60 >/dev/null 2>&1 &
process=$!
await 5 test -e "/run/netns/fwlab-$process-raw-device" || die "no network"
kill -KILL $process
wait $process 2>/dev/null
at_least 1 "hosts of a killed run" "$(ours $process)"
"$BIN/fwlab" raw --seconds 0.05 >/dev/null
same "after the next run" 0 "$(ours $process)"

"$BIN/fwlab" raw --size 64 --ip 6 >"$WORK/refused" 2>&1
same "a frame without room for the tag" 1 $?
holds "it says how large it has to be" grep -q "has 84" "$WORK/refused"

setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/fwlab" raw >"$WORK/refused" 2>&1
same "without root" 1 $?
same "nothing but why is said" \
	"fwlab: must run as root, to make network namespaces" "$(cat "$WORK/refused")"
verdict
