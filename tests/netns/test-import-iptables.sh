# Rule sets that `pfctl import iptables` makes from random iptables rules treat random packets like
# real iptables. import_iptables.py has the rules, the packets and the comparison.
#
#   world                gateway
#   lan1 ------------------ lan0 10.0.1.1
#   wan1 ------------------ wan0 10.0.2.1
. "$(dirname "$0")/lab.sh"
RESTORE=$(command -v iptables-legacy-restore) || unable "there is no iptables-legacy-restore here"
SEED=${SEED:-1}
host world
router gateway
wire world lan1 gateway lan0
wire world wan1 gateway wan0
address gateway lan0 10.0.1.1/24
address gateway wan0 10.0.2.1/24
on world ip link set lan1 up
on world ip link set wan1 up
for host in 5 6 7; do
	on gateway ip neighbor replace 10.0.1.$host lladdr 02:00:00:00:00:01 dev lan0 nud permanent
	on gateway ip neighbor replace 10.0.2.$host lladdr 02:00:00:00:00:02 dev wan0 nud permanent
done
on gateway sh -c 'echo 0 >/proc/sys/net/ipv4/icmp_ratelimit
	for file in /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv4/conf/*/send_redirects; do echo 0 >$file; done'
modprobe nf_conntrack 2>/dev/null
LOOSE=/proc/sys/net/netfilter/nf_conntrack_tcp_loose
# As in pf, a connection begins with its SYN.
on gateway sh -c "echo 0 >$LOOSE" || unable "there is no connection tracking here"
echo '*filter
COMMIT' | on gateway "$RESTORE" || unable "iptables does not work here"

# compare SETS PACKETS [--states] - compares SETS rule sets from $SEED on, with PACKETS packets each
compare() {
	echo "seeds from $SEED: $*"
	on world python3 "$HERE/import_iptables.py" "/run/netns/$LAB-gateway" "$BIN/pfctl" "$SEED" \
		"$@" || FAILED=1
}
compare 5 300
compare 5 300 --states
verdict
