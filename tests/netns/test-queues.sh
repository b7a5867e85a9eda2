# Queues share a slow link: bulk traffic does not displace traffic with its own queue. An inbound or
# an outbound rule chooses the queue.
#
#   client                gateway                server
#   eth0 ------------ lan0      wan0 ------------ eth0
#                               10 Mbit/s
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53
web server 80

# sent QUEUE - prints the number of packets of a queue
sent() {
	pf gateway -s queue -v | awk -v name="$1" \
		'$1 == "queue" { here = $2 == name } here && /pkts:/ { print $3; exit }'
}

# classes - prints the number of the kernel's classes on the outer interface
classes() {
	on gateway tc class show dev wan0 | grep -c 'class htb'
}

filter gateway <<'END'
queue line on wan0 bandwidth 10M max 10M
queue bulk parent line bandwidth 8M default
queue prompt parent line bandwidth 2M min 1M burst 4M for 100ms qlimit 20
queue other parent line bandwidth 1M max 1M
match in on lan0 proto udp set queue prompt
match out on wan0 inet6 proto tcp set queue other
pass
END
same "a class for each queue" 4 "$(classes)"
same "and they are told as they were written" \
	"queue prompt parent line bandwidth 2M, min 1M burst 4M for 100ms qlimit 20" \
	"$(pf gateway -s queue | grep prompt)"
for i in 1 2 3; do
	probe_udp client $SERVER4 53 >"$WORK/answer"
	same "UDP, IPv4" passed "$(cat "$WORK/answer")"
done
at_least 3 "packets in the queue that the way in chose" "$(sent prompt)"
before=$(sent prompt)
same "UDP, IPv6" passed "$(probe_udp client $SERVER6 53)"
at_least $((before + 1)) "packets of IPv6 as well" "$(sent prompt)"

same "a page over IPv4" passed "$(probe_web client $SERVER4 80)"
at_least 4 "packets in the default queue" "$(sent bulk)"
same "a page over IPv6" passed "$(probe_web client $SERVER6 80)"
at_least 4 "packets in the queue that the way out chose" "$(sent other)"

# rate ADDRESS - prints the kbit/s of requests of 8 kB, one after the other
rate() {
	on client "$BIN/fwlab" rr tcp "$1:53" --size 8000 --seconds 3 |
		sed -n 's/^rate=\([0-9.]*\).*/\1/p' | awk '{ printf "%d", $1 * 64 }'
}
slow=$(rate "[$SERVER6]")
at_least 100 "kbit/s through the queue of 1M" "$slow"
holds "which is not much more than it may" [ "${slow:-0}" -lt 2500 ]

filter gateway <<'END'
queue line on wan0 bandwidth 20M
queue rest parent line bandwidth 20M default
pass
END
same "other rules, other queues" 2 "$(classes)"
holds "counted anew" [ "$(sent rest)" -lt 4 ]
pf gateway -q -f - <<<"queue a on wan0 bandwidth 1M
queue b parent a bandwidth 1M flows 16 default
pass" 2>"$WORK/error"
if [ -s "$WORK/error" ]; then
	same "no fq_codel: a message with the queue" 1 \
		"$(grep -c 'queue b: fq_codel' "$WORK/error")"
	same "and the queues before are still there" 2 "$(classes)"
else
	same "queues with flows" 2 "$(classes)"
fi
filter gateway <<<'pass'
same "no queues, no classes" 0 "$(classes)"
verdict
