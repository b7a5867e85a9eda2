# In a queue with `flows` packets of a small flow overtake packets of a large flow, unlike in a FIFO
# queue.
#
#   client 10.0.1.2 ------- lan0 10.0.1.1 [gateway] wan0 10.0.2.1 ------- 10.0.2.2 server
#                                                 1 Mbit/s
. "$(dirname "$0")/lab.sh"
router gateway
host client server
wire client eth0 gateway lan0
wire server eth0 gateway wan0
address gateway lan0 10.0.1.1/24
address gateway wan0 10.0.2.1/24
address client eth0 10.0.1.2/24
address server eth0 10.0.2.2/24
on client ip route add default via 10.0.1.1
on server ip route add default via 10.0.2.1
await 5 on client ping -n -q -c 1 -W 1 10.0.2.2 || die "no way to the server"
on gateway tc qdisc add dev lan0 root fq_codel 2>/dev/null || unable "this kernel has no fq_codel"
on gateway tc qdisc del dev lan0 root

# A packet on the fast path stays charged to the socket of its sender, which is on this machine.
# That socket waits while its buffer is full, so no long queue would form.
filter gateway <<'END'
set fast-forward no
queue line on wan0 bandwidth 1M
queue rest parent line bandwidth 1M flows 16 default
pass
END
same "it is told as it was written" "queue rest parent line flows 16 bandwidth 1M default" \
	"$(pf gateway -s queue | grep parent)"
same "packets wait by flows" 1 \
	"$(on gateway tc qdisc show dev wan0 | grep -c 'fq_codel.* flows 16 ')"

# half a minute of the link's rate; a FIFO queue would hold fifty of these packets
on client bash \
	-c 'exec 3>/dev/udp/10.0.2.2/9; for ((i = 0; i < 3000; i++)); do printf %1000s x >&3; done' \
	2>/dev/null # the server has no such port
answers=$(on client ping -n -i 0.2 -c 5 -W 5 10.0.2.2 | grep -c 'bytes from')
waiting=$(pf gateway -s queue -v |
	awk '$1 == "queue" { here = $2 == "rest" } here && /qlength:/ { print $3; exit }')
at_least 5 "answers of 5" "$answers"
at_least 500 "packets that they have passed by" "${waiting%/*}"
verdict
