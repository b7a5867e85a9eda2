# A Kubernetes node, as docs/howto/kubernetes.md describes it: services behind the rules that
# kube-proxy writes for iptables and for nftables, marks, and a failsafe list of ports. The pods are
# hosts on the bridge cni0.
# long: 75 s
#
#   visitor                    host                          pod, other
#   eth0 --------------------- eth0   cni0 ----------------- eth0
#   192.0.2.1             192.0.2.2   10.244.0.1   10.244.0.10, 10.244.0.11
. "$(dirname "$0")/beside.sh"
visitor_and_host
PATIENCE=1
RESTORE=$(command -v iptables-restore) || unable "there is no iptables-restore here"
on host ip link add cni0 type bridge forward_delay 0
address host cni0 10.244.0.1/24
on host ip route add default via 192.0.2.1

# pod NAME NUMBER - makes a host with the address 10.244.0.NUMBER
pod() {
	host "$1"
	wire "$1" eth0 host "veth-$1"
	on host ip link set "veth-$1" master cni0
	on host ip link set "veth-$1" up
	address "$1" eth0 "10.244.0.$2/24"
	on "$1" ip route add default via 10.244.0.1
}
pod pod 10
pod other 11
on visitor ip route add 10.96.0.0/16 via 192.0.2.2
on visitor ip route add 203.0.113.9 via 192.0.2.2
witness pod 80
witness host 22 6443 8088
witness visitor 81 6443

# A service with a NodePort for the traffic policy Cluster, 30080, and one for Local, 30081
mode_iptables() {
	on host "$RESTORE" <<-'END'
		*filter
		:KUBE-FORWARD - [0:0]
		-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
		-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
		-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
		-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
		COMMIT
		*nat
		:KUBE-EXT-CLUSTER - [0:0]
		:KUBE-EXT-LOCAL - [0:0]
		:KUBE-MARK-MASQ - [0:0]
		:KUBE-NODEPORTS - [0:0]
		:KUBE-POSTROUTING - [0:0]
		:KUBE-SEP-POD - [0:0]
		:KUBE-SERVICES - [0:0]
		:KUBE-SVC-WEB - [0:0]
		:KUBE-SVL-WEB - [0:0]
		-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
		-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
		-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
		-A KUBE-SERVICES -d 10.96.0.20/32 -p tcp --dport 80 -j KUBE-SVC-WEB
		-A KUBE-SERVICES -d 203.0.113.9/32 -p tcp --dport 443 -j KUBE-EXT-CLUSTER
		-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
		-A KUBE-NODEPORTS -p tcp --dport 30080 -j KUBE-EXT-CLUSTER
		-A KUBE-NODEPORTS -p tcp --dport 30081 -j KUBE-EXT-LOCAL
		-A KUBE-EXT-CLUSTER -j KUBE-MARK-MASQ
		-A KUBE-EXT-CLUSTER -j KUBE-SVC-WEB
		-A KUBE-EXT-LOCAL -s 10.244.0.0/16 -j KUBE-SVC-WEB
		-A KUBE-EXT-LOCAL -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
		-A KUBE-EXT-LOCAL -m addrtype --src-type LOCAL -j KUBE-SVC-WEB
		-A KUBE-EXT-LOCAL -j KUBE-SVL-WEB
		-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
		-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
		-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
		-A KUBE-POSTROUTING -j MASQUERADE --random-fully
		-A KUBE-SVC-WEB ! -s 10.244.0.0/16 -d 10.96.0.20/32 -p tcp --dport 80 -j KUBE-MARK-MASQ
		-A KUBE-SVC-WEB -j KUBE-SEP-POD
		-A KUBE-SVL-WEB -j KUBE-SEP-POD
		-A KUBE-SEP-POD -s 10.244.0.10/32 -j KUBE-MARK-MASQ
		-A KUBE-SEP-POD -p tcp -j DNAT --to-destination 10.244.0.10:80
		COMMIT
	END
}
mode_nftables() {
	on host nft -f - <<-'END'
		table ip kube-proxy {
			set cluster-ips { type ipv4_addr; elements = { 10.96.0.20 }; }
			set nodeport-ips { type ipv4_addr; elements = { 192.0.2.2 }; }
			map service-ips {
				type ipv4_addr . inet_proto . inet_service : verdict
				elements = {
					10.96.0.20 . tcp . 80 : goto service-web,
					203.0.113.9 . tcp . 443 : goto external-cluster
				}
			}
			map service-nodeports {
				type inet_proto . inet_service : verdict
				elements = {
					tcp . 30080 : goto external-cluster,
					tcp . 30081 : goto external-local
				}
			}
			chain mark-for-masquerade { mark set mark or 0x4000; }
			chain endpoint-pod {
				ip saddr 10.244.0.10 jump mark-for-masquerade
				meta l4proto tcp dnat to 10.244.0.10:80
			}
			chain service-web {
				ip daddr 10.96.0.20 ip saddr != 10.244.0.0/16 \
					jump mark-for-masquerade
				numgen random mod 1 vmap { 0 : goto endpoint-pod }
			}
			chain external-cluster {
				jump mark-for-masquerade
				goto service-web
			}
			chain external-local {
				ip saddr 10.244.0.0/16 goto service-web
				fib saddr type local jump mark-for-masquerade
				fib saddr type local goto service-web
				numgen random mod 1 vmap { 0 : goto endpoint-pod }
			}
			chain masquerading {
				mark and 0x4000 == 0 return
				mark set mark xor 0x4000
				masquerade fully-random
			}
			chain services {
				ip daddr . meta l4proto . th dport vmap @service-ips
				ip daddr @nodeport-ips meta l4proto . th dport \
					vmap @service-nodeports
			}
			chain cluster-ips-check { ip daddr @cluster-ips reject; }
			chain filter-forward {
				type filter hook forward priority 0;
				ct state new jump cluster-ips-check
			}
			chain nat-prerouting {
				type nat hook prerouting priority -100
				jump services
			}
			chain nat-output {
				type nat hook output priority -100
				jump services
			}
			chain nat-postrouting {
				type nat hook postrouting priority 100
				jump masquerading
			}
		}
	END
}
load() { # LINE... - loads the page's core with further lines behind it
	{ page_rules kubernetes 1; printf '%s\n' "$@"; } | filter host
	pf host -q -F states
}
# visits - prints the visitor's addresses as the pod sees them, by Cluster and by Local
visits() {
	echo "$(seen_from visitor 192.0.2.2 30080), $(seen_from visitor 192.0.2.2 30081)"
}
rules_of_netfilter() {
	on host nft list ruleset 2>/dev/null
}

for mode in iptables nftables; do
	on host nft flush ruleset
	mode_$mode || die "no rules of $mode"
	pf host -q -F all 2>/dev/null
	same "$mode: without rules" "10.244.0.1, 192.0.2.1" "$(visits)"
	load
	same "$mode: NodePorts" "10.244.0.1, 192.0.2.1" "$(visits)"
	at_least 1 "$mode: its states" \
		"$(state_count host 'tcp 192.0.2.2:30080 <- 192.0.2.1:')"
	same "$mode: states of the pod" 0 "$(state_count host '10.244.0.10')"
	same "$mode: packets on the fast path" 0 \
		"$(pf host -si -v | awk '/^Fast Forward/ { here = 1 } here && $1 == "tc" { print $2 }')"
	same "$mode: an external address, and the ClusterIP" "no answer no answer" \
		"$(seen_from visitor 203.0.113.9 443) $(seen_from visitor 10.96.0.20 80)"
	load "pass in on eth0 proto tcp to 203.0.113.9 port 443"
	same "$mode: an external address with a rule" 10.244.0.1 "$(seen_from visitor 203.0.113.9 443)"
	load "block in on eth0" "pass in on eth0 proto tcp to 10.244.0.10"
	same "$mode: a rule for the pod's address" "no answer, no answer" "$(visits)"
	same "$mode: the ClusterIP from a pod, and from the node" "10.244.0.11 10.244.0.1" \
		"$(seen_from other 10.96.0.20 80) $(seen_from host 10.96.0.20 80)"

	# kube-proxy's mark and a tag are in different halves of the mark
	load "pass in on eth0 proto tcp to port 30000:32767 tag NODEPORT" \
		"block out on cni0 proto tcp to port 80" \
		"pass out on cni0 proto tcp to port 80 tagged NODEPORT no state"
	same "$mode: tagged" "10.244.0.1, 192.0.2.1" "$(visits)"
	on host nft "add table ip other; add chain ip other c { type filter hook prerouting priority -150; }"
	on host nft "add rule ip other c mark set mark and 0x0000ffff"
	same "$mode: tagged, and a program that clears the upper half" "no answer, no answer" "$(visits)"
	on host nft "flush chain ip other c; add rule ip other c mark set mark and 0xffffc00f"
	same "$mode: tagged, and a program that clears the bits 0x3ff0" "10.244.0.1, 192.0.2.1" "$(visits)"
	on host nft "flush chain ip other c; add rule ip other c mark set mark or 0x80000000"
	load "block out on cni0 proto tcp to port 80"
	same "$mode: block out, and a program that sets bit 31" "no answer, no answer" "$(visits)"
	on host nft "flush chain ip other c; add rule ip other c mark set mark or 0xffff0000"
	load "pass in on eth0 proto tcp to port 30000:32767" \
		"block out on cni0 proto tcp to port 80" \
		"pass out on cni0 proto tcp to port 80 tagged NODEPORT" \
		"match out on eth0 proto udp tag NODEPORT"
	same "$mode: a program that sets bits of tags" "no answer, no answer" "$(visits)"
	on host nft delete table ip other
	same "$mode: block out, without it" "no answer, no answer" "$(visits)"

	load
	rules_of_netfilter >"$WORK/netfilter"
	pf host -q -F all
	rules_of_netfilter >"$WORK/netfilter-after"
	holds "$mode: netfilter's rules after pfctl -F all" \
		cmp "$WORK/netfilter" "$WORK/netfilter-after"
done

# New pods
load
pod late 12
same "a new pod without skipstepd" "no answer" "$(seen_from late 10.96.0.20 80)"
at_least 1 "packets counted as unattached" "$(reason host unattached)"
load
same "after another load" 10.244.0.12 "$(seen_from late 10.96.0.20 80)"
daemon host
pod later 13
same "a new pod with skipstepd" 10.244.0.13 "$(seen_from later 10.96.0.20 80)"

# The failsafe list, by the page's rules and by the example
own_etc
failsafe() { # LINE... - loads the rules behind the list, with further lines behind the rules
	{ cat "$WORK/rules"; printf '%s\n' "$@"; } | filter host
	pf host -q -F states
}
# ports - how a visitor fares at ssh, the API server, another port, and a NodePort; and the node at
# another node's API server, and at another port
ports() {
	local port
	for port in 22 6443 8088 30080; do seen_from visitor 192.0.2.2 $port; done | xargs -d '\n'
	for port in 6443 81; do seen_from host 192.0.2.1 $port; done | xargs -d '\n'
}
# fate - prints the verdict of `explain` about a connection to ssh under the rules in $WORK/new
fate() {
	pf host explain -f "$WORK/new" 'in eth0 tcp 192.0.2.1:40000 > 192.0.2.2:22 S' |
		sed -n 's,^\(pass\|block\) by rule [^ ]* \(/etc.*\):.*,\1 \2,p'
}
CLOSED="192.0.2.1 192.0.2.1 no answer no answer 192.0.2.2 no answer"
for list in page example; do
	case $list in
	page)
		page_rules kubernetes 1 >"$WORK/rules"
		page_rules kubernetes 2 >"$ETC/pf.failsafe"
		;;
	example)
		cp "$ROOT/examples/kubernetes-node.conf" "$WORK/rules"
		cp "$ROOT/examples/pf.failsafe" "$ETC/pf.failsafe"
		;;
	esac
	failsafe
	same "$list" "192.0.2.1 192.0.2.1 no answer 10.244.0.1 192.0.2.2 192.0.2.2" \
		"$(ports | xargs -d '\n')"
	same "$list: states of ssh" 0 "$(state_count host '192.0.2.2:22')"
	failsafe "block quick"
	same "$list, and block quick" "$CLOSED" "$(ports | xargs -d '\n')"
	failsafe "table <banned> { 192.0.2.1 }" "block quick from <banned>"
	same "$list, and a table of banned addresses" "192.0.2.1 no answer" \
		"$(seen_from visitor 192.0.2.2 22) $(seen_from visitor 192.0.2.2 30080)"
	failsafe "set limit states 1" "pass in on eth0 proto tcp to port { 8088 30080 }"
	same "$list, the first state" 192.0.2.1 "$(seen_from visitor 192.0.2.2 8088)"
	same "$list, and a full state table" "192.0.2.1 no answer" \
		"$(seen_from visitor 192.0.2.2 22) $(seen_from visitor 192.0.2.2 30080)"
	{ echo "block quick"; cat "$WORK/rules"; } >"$WORK/new"
	same "$list: explain of a file" "pass /etc/pf.failsafe" "$(fate)"
	filter host <"$WORK/new"
	same "$list, and block quick on the first line" "$CLOSED" "$(ports | xargs -d '\n')"
	echo "block quick" | filter host
	same "$list, and a file with one rule" "$CLOSED" "$(ports | xargs -d '\n')"
	pf host -q -o basic -f "$WORK/new"
	for command in "-F rules" "-F all" "-f $WORK/new"; do
		# shellcheck disable=SC2086
		holds "$list: pfctl -a failsafe $command is refused" \
			eval '! pf host -q -a failsafe $command'
	done
	same "$list, after it" "$CLOSED" "$(ports | xargs -d '\n')"
	cp "$ETC/pf.failsafe" "$WORK/list"
	echo "block in" >>"$ETC/pf.failsafe"
	holds "$list with an error: the load is refused" eval '! pf host -q -f "$WORK/rules"'
	same "$list, after it" "$CLOSED" "$(ports | xargs -d '\n')"
	pf host -q -F rules
	same "$list, and flushed rules" "192.0.2.1 10.244.0.1" \
		"$(seen_from visitor 192.0.2.2 22) $(seen_from visitor 192.0.2.2 30080)"
	cp "$WORK/list" "$ETC/pf.failsafe"
	echo "block quick" | filter host
	same "$list, and the next load" "$CLOSED" "$(ports | xargs -d '\n')"
	rm "$ETC/pf.failsafe"
	same "$list that is removed" "192.0.2.1" "$(seen_from visitor 192.0.2.2 22)"
	holds "the next load prints a warning" \
		eval 'pf host -q -f "$WORK/new" 2>&1 | grep -q "there is no /etc/pf.failsafe any more"'
	same "and has no list" "no answer" "$(seen_from visitor 192.0.2.2 22)"
done
verdict
