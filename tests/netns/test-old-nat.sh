# A router with the legacy rules of FreeBSD's handbook only: nat, rdr, binat, their anchors, and
# filter rules that see the translated packets. The test makes real connections in both directions,
# and checks pfctl's counters of the rules.
#
#   client, dmz (inside)        gateway            server (outside)
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   192.168.100.2                192.168.10.81     192.168.10.2
. "$(dirname "$0")/lab.sh"
gateway_with_dmz
# the outer address of the dmz does not belong to the gateway, which answers ARP for it
on gateway ip address add 192.168.10.90/32 dev wan0
web server 80
web dmz 80
web client 80
echo_server server 53
# Outside hosts have no routes to the inside networks.
on server ip route del default

filter gateway <<'END_OF_RULES'
ext_if = "wan0"
int_if = "lan0"
localnet = $int_if:network

scrub in all
nat-anchor "proxy/*"
nat on $ext_if inet from $localnet to any -> ($ext_if:0)
rdr-anchor "proxy/*"
no rdr on $ext_if inet proto tcp from any to ($ext_if:0) port 8081
rdr pass on $ext_if inet proto tcp from any to ($ext_if:0) port 8080:8089 -> 192.168.200.2 port 80
rdr on $ext_if inet proto tcp from any to ($ext_if:0) port 9090 -> 192.168.100.2 port 80
binat on $ext_if inet from 192.168.200.2 to any -> 192.168.10.90

block all
pass from { self, $localnet, 192.168.200.2 } to any
pass in on $ext_if inet proto tcp to 192.168.100.2 port 80
pass out on { $int_if, dmz0 } inet proto tcp to { 192.168.100.2, 192.168.200.2 } port 80
END_OF_RULES

same "web from inside" passed "$(probe_web client "$SERVER4" 80)"
same "UDP from inside" passed "$(probe_udp client "$SERVER4" 53)"
same "ping from inside" passed "$(probe_ping client "$SERVER4")"
pf gateway -ss
at_least 3 "states with the address of the gateway" \
	"$(pf gateway -ss | grep -c '192.168.10.81[: ].*(192.168.100.2')"

# rdr pass skips the filter rules; without pass they see the inside host.
same "web from outside, rdr pass" passed "$(probe_web server 192.168.10.81 8080)"
same "web from outside, rdr" passed "$(probe_web server 192.168.10.81 9090)"
same "web from outside, no rdr" "no answer" "$(probe_web server 192.168.10.81 8081)"
same "web from outside, no rule" "no answer" "$(probe_web server 192.168.10.81 7070)"

# binat: outbound with its own outer address, and inbound to that address.
same "web from the dmz" passed "$(probe_web dmz "$SERVER4" 80)"
at_least 1 "states with the address of the dmz" \
	"$(pf gateway -ss | grep -c '192.168.10.90:[0-9]* (192.168.200.2:')"

# Rules of a proxy are loaded into an anchor and flushed.
pf gateway -q -a proxy/1 -f - <<'END_OF_RULES'
rdr pass on wan0 inet proto tcp from any to 192.168.10.81 port 7070 -> 192.168.200.2 port 80
END_OF_RULES
same "web by a rule of an anchor" passed "$(probe_web server 192.168.10.81 7070)"
same "the anchor's rules" \
	"rdr pass on wan0 inet proto tcp from any to 192.168.10.81 port = 7070 -> 192.168.200.2 port 80" \
	"$(pf gateway -a proxy/1 -sn)"
pf gateway -q -a proxy/1 -F rules
same "web when the rule is gone" "no answer" "$(probe_web server 192.168.10.81 7070)"

# The rules have counters.
pf gateway -sn -vv
same "rules" 7 "$(pf gateway -sn | wc -l)"
packets=$(pf gateway -sn -v | grep -A1 '^nat on' | sed -n 's/.*Packets: \([0-9]*\).*/\1/p')
at_least 6 "packets of nat" "$packets"

# Log records of a legacy rule have its action.
filter gateway <<'END_OF_RULES'
rdr pass log on wan0 inet proto tcp from any to 192.168.10.81 port 8080 -> 192.168.200.2 port 80
nat on wan0 inet from lan0:network to any -> (wan0:0)
block in on wan0
pass out
pass in on lan0
END_OF_RULES
daemon gateway
same "web from outside" passed "$(probe_web server 192.168.10.81 8080)"
await 5 has_records 1 "$WORK/gateway-pflog0" 'rdr in on wan0'
tcpdump -n -e -r "$WORK/gateway-pflog0" 2>&1 | tee "$WORK/tcpdump"
holds "one record, of rdr" grep \
	-Eq 'rule 0/0\(match\): rdr in on wan0: .* > 192.168.10.81.8080: Flags \[S\]' \
	"$WORK/tcpdump"

# Without the legacy rules nothing is translated; all other rules keep their counters.
filters=$(pf gateway -sr | wc -l)
pf gateway -F nat
same "translation rules" "" "$(pf gateway -sn)"
same "other rules" "$filters" "$(pf gateway -sr | wc -l)"
at_least 1 "states that go on" "$(state_count gateway)"
at_least 1 "states that pass out had made" \
	"$(pf gateway -sr -v | grep -A2 '^pass out' |
	sed -n 's/.*State Creations: \([0-9]*\).*/\1/p')"
same "web from outside without rdr" "no answer" "$(probe_web server 192.168.10.81 8080)"
verdict
