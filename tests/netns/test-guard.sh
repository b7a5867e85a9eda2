# The guard closes interfaces without pf's programs, and drops packets that bypassed those programs.
# skipstepd does not run until the end.
#
#   peer                                     host
#   eth0 ---------------------------------- lan0   10.9.1.0/24, 2001:db8:1::/64
#   eth1 ---------------------------------- new0   10.9.2.0/24, 2001:db8:2::/64, appears later
. "$(dirname "$0")/lab.sh"

host peer host
wire peer eth0 host lan0
address peer eth0 10.9.1.2/24 2001:db8:1::2/64
address host lan0 10.9.1.1/24 2001:db8:1::1/64
holds "hosts see each other" on peer ping -n -q -c 1 -W 1 10.9.1.1

appears() {
	wire peer eth1 host new0
	address peer eth1 10.9.2.2/24 2001:db8:2::2/64
	address host new0 10.9.2.1/24 2001:db8:2::1/64
}
unattached() {
	reason host unattached || echo 0
}
counted() { # WHAT COMMAND... - checks that the guard drops and counts the packets
	local before
	before=$(unattached)
	shift
	"$@" >/dev/null
	echo $(($(unattached) > before))
}

# An interface appears, and no process attaches it.
filter host <<<"pass"
appears
same "nothing comes in, IPv4" "no answer" "$(probe_ping peer 10.9.2.1)"
same "nothing comes in, IPv6" "no answer" "$(probe_ping peer 2001:db8:2::1)"
at_least 2 "the guard counts them" "$(unattached)"
for address in 10.9.2.2 2001:db8:2::2; do
	same "nothing leaves to $address" "no answer" "$(probe_ping host $address)"
	same "the guard counts that, $address" 1 "$(counted "" probe_ping host $address)"
done
same "the interface that is attached goes on" "passed" "$(probe_ping peer 10.9.1.1)"
same "and loopback" "passed" "$(probe_ping host 127.0.0.1)"
same "-s Interfaces says so" "new0 (unattached)" "$(pf host -s Interfaces -v | grep new0)"
holds "and why" sh -c "nsenter --net=/run/netns/$LAB-host '$BIN/pfctl' -s Interfaces -vv -i new0 |
	grep -q 'Hook:  *none: unattached, the guard drops its packets'"
same "the guard is no reason to leave packets to netfilter" "" \
	"$(pf host -si -v | grep 'left to netfilter')"

# `set unattached pass`.
pf host -d -q
same "a disabled filter lets all by" "passed" "$(probe_ping peer 10.9.2.1)"
pf host -e -q
same "an enabled one attaches all that is there" "passed" "$(probe_ping peer 10.9.2.1)"
on host ip link delete new0
filter host <<<"set unattached pass
block"
appears
same "set unattached pass: the new interface is open" "passed" "$(probe_ping peer 10.9.2.1)"
filter host <<<"block"
same "a load attaches it" "no answer" "$(probe_ping peer 10.9.2.1)"
filter host <<<"set skip on new0
block"
same "set skip on: nobody judges it" "passed" "$(probe_ping peer 10.9.2.1)"

# Another program accepts packets before pf's program sees them.
filter host <<<"pass"
same "all passes" "passed" "$(probe_ping peer 10.9.1.1)"
start first host python3 "$HERE/another-program.py" lan0 ingress accept
await 10 grep -q ready "$WORK/first.log" || die "no program: $(cat "$WORK/first.log")"
daemon host
same "a program that accepts packets first opens nothing" "no answer" \
	"$(probe_ping peer 10.9.1.1)"
same "nor for IPv6" "no answer" "$(probe_ping peer 2001:db8:1::1)"
await 5 sh -c "tcpdump -n -e -r '$WORK/host-pflog0' 2>/dev/null | grep -q 'in on lan0.*echo request'" ||
	FAILED=1
holds "dropped packets are logged" sh -c \
	"tcpdump -n -e -r '$WORK/host-pflog0' 2>/dev/null | grep -q 'in on lan0.*10.9.1.2 > 10.9.1.1: ICMP echo request'"
stop first
same "all passes again" "passed" "$(probe_ping peer 10.9.1.1)"


# A clsact filter accepts packets, and writes to the field of the stamp.
on host tc qdisc add dev lan0 clsact
on host tc filter add dev lan0 ingress protocol all u32 match u32 0 0 classid 1:7
same "a filter of clsact that accepts all takes no packet away" "passed" \
	"$(probe_ping peer 10.9.1.1)"
verdict
