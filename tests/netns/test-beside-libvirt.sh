# Networks of libvirt, as docs/howto/libvirt.md describes them. libvirtd and its dnsmasq are
# Debian's; the guest is a host on a port of the network's bridge. The rules of newer versions of
# libvirt take the place of those of this libvirtd at the end.
# long: 32 s
#
#   visitor                         host                      guest
#   eth0 -------------------------- eth0  virbr0 --- vnet0 ---- eth0
#   192.0.2.1  2001:db8::1     192.0.2.2  192.168.122.1   192.168.122.10
. "$(dirname "$0")/beside.sh"
visitor_and_host
PATIENCE=1
furnish host libvirt-daemon libvirt-clients libvirt0 libparted2 libssh-4 libyajl2 dnsmasq-base
inside host mkdir -p /var/log/libvirt /var/lib/libvirt/dnsmasq
system_bus host
start_inside libvirtd host libvirtd
virsh() {
	inside host virsh --quiet --connect network:///system "$@" 2>&1
}
await 10 virsh net-list || unable "no libvirtd here: $(tail -n 1 "$WORK/libvirtd.log")"

# network MODE - makes the network, and a guest that has got its address from it
network() {
	on host sysctl -q net.ipv4.ip_forward=0
	cat >"$WORK/network.xml" <<-END
		<network>
			<name>default</name>
			<forward mode='$1'/>
			<bridge name='virbr0' stp='off' delay='0'/>
			<ip address='192.168.122.1' netmask='255.255.255.0'>
				<dhcp>
					<range start='192.168.122.10' end='192.168.122.10'/>
				</dhcp>
			</ip>
		</network>
	END
	virsh net-create "$WORK/network.xml" >"$WORK/virsh" || die "no network: $(cat "$WORK/virsh")"
	same "$1: the host forwards" 1 "$(on host sysctl -n net.ipv4.ip_forward)"
	host guest
	wire guest eth0 host vnet0
	on host ip link set vnet0 master virbr0
	on host ip link set vnet0 up
	on guest ip link set eth0 up
}
no_network() {
	virsh net-destroy default >/dev/null
	ip netns pids "$LAB-guest" | xargs -r kill
	ip netns delete "$LAB-guest"
}
cat >"$WORK/lease" <<'END'
#!/bin/sh
[ "$1" = bound ] || exit 0
ip address add "$ip/24" dev "$interface"
ip route replace default via "$router"
END
chmod +x "$WORK/lease"
# lease - prints the address that the guest gets, and its name server's answer to a question
lease() {
	on guest ip address flush dev eth0
	on guest timeout 8 busybox udhcpc -i eth0 -n -q -t 4 -T 1 -s "$WORK/lease" >/dev/null 2>&1
	on guest ip -o -4 address show eth0 | grep -o '192[0-9.]*/' | tr -d / || echo "no address"
}
load() { # LINE...
	printf '%s\n' "$@" | filter host
	pf host -q -F states
}
page() { # NUMBER [LINE...] - loads a rule set of the page with further lines behind it
	local number=$1
	shift
	{ page_rules libvirt "$number"; printf '%s\n' "$@"; } | filter host
	pf host -q -F states
}
witness visitor 25 80
witness host 22 8088
rules_of_libvirt() {
	inside host iptables-save | grep -v '^#'
}

# The rules first, then the network
daemon host
page 1
network nat
same "the guest's address" 192.168.122.10 "$(lease)"
witness guest 80
rules_of_libvirt >"$WORK/before"
same "the guest, as seen outside" 192.0.2.2 "$(seen_from guest 192.0.2.1 80)"
same "its states" 1 "$(state_count host 'tcp 192.0.2.2:[0-9]* -> 192.0.2.1:80')"
same "the host" "192.0.2.1 no answer" \
	"$(seen_from visitor 192.0.2.2 22) $(seen_from visitor 192.0.2.2 8088)"
at_least 1 "packets left to netfilter" \
	"$(pf host -si -v | awk '/left to netfilter/ { print $4 }')"
page 1 "block return in on virbr0 proto tcp from 192.168.122.10 to port smtp"
same "a rule on the bridge" "no answer 192.0.2.2" \
	"$(seen_from guest 192.0.2.1 25) $(seen_from guest 192.0.2.1 80)"
page 1 "block return out on eth0 proto tcp from 192.168.122.10 to port smtp"
same "a rule for the guest's address on the way out" 192.0.2.2 "$(seen_from guest 192.0.2.1 25)"
page 2
same "block all: the guest's address" 192.168.122.10 "$(lease)"
same "block all: the guest, as seen outside" 192.0.2.2 "$(seen_from guest 192.0.2.1 80)"
load "block all" "pass on eth0"
same "without pass on ! eth0" "no address" "$(lease)"
page 2
same "again" 192.168.122.10 "$(lease)"

redirect="pass in on eth0 inet proto tcp to (eth0) port 8080 rdr-to 192.168.122.10 port 80"
page 1 "$redirect"
same "rdr-to a guest of a NAT network" refused "$(probe_web visitor 192.0.2.2 8080)"
same "the state of this connection" 1 \
	"$(state_count host '192.168.122.10:80 (192.0.2.2:8080) <- 192.0.2.1:')"
pf host -q -F all
rules_of_libvirt >"$WORK/after"
holds "libvirt's rules after pfctl -F all" cmp "$WORK/before" "$WORK/after"
holds "libvirt sets no marks" eval '! grep -q "j \(CONN\)*MARK" "$WORK/before"'
no_network

# A route network: rules see the guest's address
network route
page 1
same "route: the guest's address" 192.168.122.10 "$(lease)"
witness guest 80
on visitor ip route add 192.168.122.0/24 via 192.0.2.2
same "route: the guest, as seen outside" 192.168.122.10 "$(seen_from guest 192.0.2.1 80)"
same "route: to the guest" "no answer" "$(seen_from visitor 192.168.122.10 80)"
page 1 "pass in on eth0 proto tcp to 192.168.122.10 port 80"
same "route: to the guest, with a rule" 192.0.2.1 "$(seen_from visitor 192.168.122.10 80)"
on visitor ip route del 192.168.122.0/24
no_network

# An open network: skipstep translates
page 3
pf host -sr >"$WORK/rules"
network open
same "open: the guest's address" 192.168.122.10 "$(lease)"
witness guest 80
same "open: the guest, as seen outside" 192.0.2.2 "$(seen_from guest 192.0.2.1 80)"
same "open: to the guest" 192.0.2.1 "$(seen_from visitor 192.0.2.2 8080)"
same "open: rules of libvirt for the network" "" "$(rules_of_libvirt | grep virbr0)"
no_network
pf host -sr >"$WORK/rules-after"
holds "libvirt changes nothing of ours" cmp "$WORK/rules" "$WORK/rules-after"

# Since version 10.4: nftables
network nat
on host nft flush ruleset
on host nft -f - <<'END' || die "no rules of a newer libvirt"
table ip libvirt_network {
	chain guest_cross {
		iifname "virbr0" oifname "virbr0" counter accept
	}
	chain guest_input {
		oifname "virbr0" ip daddr 192.168.122.0/24 ct state established,related counter accept
		oifname "virbr0" counter reject
	}
	chain guest_output {
		ip saddr 192.168.122.0/24 iifname "virbr0" counter accept
		iifname "virbr0" counter reject
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		counter jump guest_cross
		counter jump guest_input
		counter jump guest_output
	}
	chain guest_nat {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 192.168.122.0/24 ip daddr 224.0.0.0/24 counter return
		ip saddr 192.168.122.0/24 ip daddr 255.255.255.255 counter return
		meta l4proto tcp ip saddr 192.168.122.0/24 ip daddr != 192.168.122.0/24 \
			counter masquerade to :1024-65535
		meta l4proto udp ip saddr 192.168.122.0/24 ip daddr != 192.168.122.0/24 \
			counter masquerade to :1024-65535
		ip saddr 192.168.122.0/24 ip daddr != 192.168.122.0/24 counter masquerade
	}
}
END
page 1
same "nftables: the guest's address" 192.168.122.10 "$(lease)"
same "nftables: the guest, as seen outside" 192.0.2.2 "$(seen_from guest 192.0.2.1 80)"
page 1 "$redirect"
same "nftables: rdr-to a guest" refused "$(probe_web visitor 192.0.2.2 8080)"
verdict
