# pfctl doctor finds faults that this script makes, and proposes commands that mend them.
#
#   peer                                     host
#   eth0 ---------------------------------- lan0   10.9.1.0/24
#   eth1 ---------------------------------- wan0   10.9.2.0/24
#   eth2 ---------------------------------- new0   10.9.3.0/24, appears later
. "$(dirname "$0")/lab.sh"

command -v nft >/dev/null || unable "nft is not installed"
host peer
router host
wire peer eth0 host lan0
address peer eth0 10.9.1.2/24
address host lan0 10.9.1.1/24
wire peer eth1 host wan0
address peer eth1 10.9.2.2/24
address host wan0 10.9.2.1/24
# the defaults of a new namespace may be those of the first one
# shellcheck disable=SC2016
on host sh -c 'for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$file; done'
# the proposed commands are those of this build
export PATH="$BIN:$PATH"

RULES=$WORK/pf.conf

doctor() {
	pf host doctor -f "$RULES" "$@"
}

# findings [ARGUMENT...] - prints a line for each finding of the JSON
findings() {
	doctor --json "$@" | python3 -c '
import json, sys
for found in json.load(sys.stdin):
    print(found["level"], found["subject"], found["finding"], "run:", found["command"] or "")'
}

# faults SUBJECT PATTERN - prints the faults of an object that match
faults() {
	findings -q | grep "^[a-z]* $1 " | grep -- "$2"
}

# named SUBJECT LEVEL PATTERN - checks that doctor names a fault
named() {
	local found
	found=$(faults "$1" "$3" | head -n 1)
	same "$1: $3" "$2" "${found%% *}"
	command=${found##* run: }
}

# fault SUBJECT LEVEL PATTERN - checks that doctor names a fault, and that the command which it
# proposes removes the fault
fault() {
	local command
	named "$@"
	holds "$1: there is a command" test -n "$command"
	holds "$1: the command runs: $command" on host sh -c "$command"
	same "$1: the fault is gone" "" "$(faults "$1" "$3")"
}

# rules - writes standard input to the file, and loads it
rules() {
	cat >"$RULES"
	pf host -q -f "$RULES" || die "the rules were not loaded"
}

# datagrams FIRST COUNT - sends datagrams from COUNT ports of the peer
datagrams() {
	on peer python3 -c '
import socket, sys
first, count = map(int, sys.argv[1:])
for port in range(first, first + count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("10.9.1.2", port))
        s.sendto(b"x", ("10.9.1.1", 9))' "$1" "$2"
}

# The filter and its daemon.
echo "pass" >"$RULES"
fault filter fail "no rules are loaded"
pf host -q -d
fault filter fail "disabled: all packets pass"
command=
named skipstepd fail "does not run"
same "the command starts it" "skipstepd" "$command"
daemon host
same "skipstepd: the fault is gone" "" "$(faults skipstepd .)"
holds "an attached interface is described" grep -q \
	"^ok lan0 tcx ingress: pf_ingress; egress: pf_egress.*driver veth" <(findings -i lan0)
doctor -q -i lan0 >"$WORK/out"
same "the exit status without faults" 0 $?
same "the faults of lan0" "" "$(cat "$WORK/out")"
same "a text for people" "OK    lan0    tcx ingress: pf_ingress; egress: pf_egress; no XDP: \`set xdp on\`" \
	"$(doctor -i lan0 | grep lan0)"
same "no line is longer than 80 columns" "" "$(doctor | grep -v run: | grep '.\{81\}')"
doctor -i no-such >"$WORK/out" 2>&1
same "an interface that does not exist is an error" 1 $?

# An interface that nobody attaches.
daemon_stop host
wire peer eth2 host new0
address peer eth2 10.9.3.2/24
address host new0 10.9.3.1/24
doctor -i new0 >/dev/null
same "the exit status of a failure" 2 $?
fault new0 fail "not attached: the guard drops its packets"
same "packets of the interface pass" passed "$(probe_ping peer 10.9.3.1)"

# A program in front of the filter.
start first host python3 "$HERE/another-program.py" lan0 ingress accept
await 10 grep -q ready "$WORK/first.log" || die "no program: $(cat "$WORK/first.log")"
named lan0 warn "in front of the filter on tcx ingress: the guard drops packets"
holds "the command detaches its link: $command" grep -q "^bpftool link detach id [0-9]*$" \
	<<<"$command"
stop first
same "the program is gone" "" "$(faults lan0 .)"
start out host python3 "$HERE/another-program.py" lan0 egress accept
await 10 grep -q ready "$WORK/out.log" || die "no program: $(cat "$WORK/out.log")"
named lan0 warn "in front of the filter on tcx egress: packets leave unfiltered"
stop out
same "that program is gone" "" "$(faults lan0 .)"

# Limits that are reached or near.
rules <<-END
	set limit states 20
	set limit table-entries 10
	table <t> persist { 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 \
		10.0.0.8 10.0.0.9 }
	pass
END
fault table-entries warn "9 of 10 in use, 90 %"
pf host -q -F states
datagrams 2000 17
fault states warn "of 20 in use, [89][05] %"
datagrams 3000 60
fault states fail "new entries are refused"

# Marks of other programs.
on host nft 'table inet t { chain c { type filter hook prerouting priority mangle; meta mark set meta mark | 0x10000; }; }'
fault mark fail "chain c of table inet t sets bits 0x00010000"
on host nft 'add rule inet t c meta mark set 7'
fault mark warn "chain c of table inet t writes bits 0xffff0000: tags and priorities are lost"
holds "the table itself is no fault" grep -q \
	"^ok netfilter table inet t filters, too, on prerouting" <(findings)
on host nft 'delete table inet t'
on host ip rule add priority 99 fwmark 7 table 100
fault mark warn "compares fwmark 0x7/0xffffffff"
same "the rule has the mask of the free half" "99: from all fwmark 0x7/0xffff lookup 100" \
	"$(on host ip rule list priority 99 | tr '\t' ' ')"

# Settings that the rules need otherwise.
rules <<-END
	pass
	pass in on lan0 inet route-to 10.9.2.2
END
on host sh -c 'echo 1 >/proc/sys/net/ipv4/conf/wan0/rp_filter'
fault rp_filter warn "strict on wan0, and rules have route-to or reply-to"
rules <<-END
	pass
	pass out on wan0 inet nat-to (wan0)
END
on host sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
fault forwarding warn "rules have nat-to, and the host does not forward IPv4"

# Records of the log that nobody reads.
rules <<<"block log proto udp"
datagrams 10000 50000
fault log warn "log records were lost"
verdict
