# Interfaces change while the filter runs: they get and lose addresses, join and leave a group, and
# are renamed. Rules, dynamic addresses and skipped groups follow.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 81
filter gateway <<END
block all
pass inet6 proto icmp6
pass out on wan0
pass in on lan0 proto tcp to port 80
pass in on lan0 proto tcp from any to port 81
block in on lan0 proto tcp from (lan0:network) to port 81
pass in on inner0 proto tcp to port 81
END
daemon gateway
# becomes EXPECTED COMMAND... - waits until the command prints EXPECTED, for three seconds at most
becomes() {
	local expected=$1
	shift
	await 3 eval '[ "$('"$*"')" = "'"$expected"'" ]'
}
same "port 80" passed "$(probe_web client $SERVER4 80)"
same "port 81, from the network of the interface" "no answer" "$(probe_web client $SERVER4 81)"

# The client uses an address outside the gateway's networks, and then the gateway gets an address in
# that network.
on client ip address add 192.168.102.2/32 dev eth0
on client ip route replace default via 192.168.100.1 dev eth0 src 192.168.102.2
on gateway ip route add 192.168.102.0/24 dev lan0
same "port 81, from another network" passed "$(probe_web client $SERVER4 81)"
on gateway ip address add 192.168.102.1/24 dev lan0
holds "an address that comes is known" becomes "no answer" probe_web client $SERVER4 81
on gateway ip address delete 192.168.102.1/24 dev lan0
on gateway ip route replace 192.168.102.0/24 dev lan0
holds "an address that went is forgotten" becomes passed probe_web client $SERVER4 81
on client ip route replace default via 192.168.100.1 dev eth0

on gateway ip link set lan0 down
on gateway ip link set lan0 name inner0
on gateway ip link set inner0 up
holds "the rule of its new name holds for a renamed interface" becomes passed probe_web client \
	$SERVER4 81
same "the rule of its old name does not" "no answer" "$(probe_web client $SERVER4 80)"
same "interfaces that are there, and that rules name" "all inner0 lan0 lo wan0" \
	"$(pf gateway -sI | sort | xargs)"
on gateway ip link set inner0 down
on gateway ip link set inner0 name lan0
on gateway ip link set lan0 up
holds "renamed back" becomes passed probe_web client $SERVER4 80

# The group egress contains the interfaces of the default routes.
filter gateway <<'END'
set skip on egress
block all
pass in on lan0
pass inet6 proto icmp6
END
same "not in the group" "no answer" "$(probe_web client $SERVER4 80)"
on gateway ip route add default via $SERVER4
holds "in the group, which is skipped" becomes passed probe_web client $SERVER4 80
holds "pfctl -sI lists the group" eval 'pf gateway -sI | grep -qx egress'
on gateway ip route del default
holds "out of it again" becomes "no answer" probe_web client $SERVER4 80
filter gateway <<'END'
block all
pass in on lan0
pass inet6 proto icmp6
END
on gateway ip route add default via $SERVER4
same "a rule set that skips nothing" "no answer" "$(probe_web client $SERVER4 80)"
verdict
