# `pfctl -T`: matches of addresses, the messages and effects of each command, counters of addresses,
# tables of anchors, and tables that only rules mention.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server

# commanded EXPECTED ARGUMENT... - checks pfctl's output
commanded() {
	local expected=$1
	shift
	same "pfctl $*" "$expected" "$(pf gateway "$@" 2>&1 | xargs)"
}

filter gateway <<'END'
table <nets> { 10.0.0.0/8, !10.1.0.0/16, 10.1.2.0/24, !10.1.2.3, 2001:db8::/32, !2001:db8:1::/48, 2001:db8:1::1 }
table <counted> persist counters
table <pinned> const persist { 192.0.2.1 }
pass from <nets>
pass from <mentioned>
END

# matching addresses and others, one by one and all together
hit="10.0.0.1 10.2.0.0 10.255.255.255 10.1.2.0 10.1.2.255 2001:db8:: 2001:db8:2::1 2001:db8:1::1"
miss="9.255.255.255 11.0.0.0 10.1.0.0 10.1.1.255 10.1.2.3 10.1.3.0 2001:db9:: 2001:db8:1::2 ::"
for address in $hit; do
	holds "$address is in the table" pf gateway -q -t nets -T test "$address"
done
for address in $miss; do
	pf gateway -q -t nets -T test "$address"
	same "exit status for $address, which is not" 2 $?
done
# shellcheck disable=SC2086
commanded "8/8 addresses match." -t nets -T test $hit
# shellcheck disable=SC2086
commanded "0/9 addresses match." -t nets -T test $miss

# commands, and their effects
commanded "1 table created. 3/3 addresses added." -t work -T add 192.0.2.1 192.0.2.2 198.51.100.0/24
commanded "0/1 addresses added." -t work -T add 192.0.2.1
commanded "1/2 addresses deleted." -t work -T delete 192.0.2.2 192.0.2.3
commanded "192.0.2.1 198.51.100.0/24" -t work -T show
commanded "1 addresses added. 1 addresses deleted." -t work -T replace 192.0.2.1 192.0.2.7
printf '192.0.2.8 # a comment\n\n!192.0.2.9\n' >"$WORK/addresses"
commanded "2 addresses added. 2 addresses deleted." -t work -T replace -f "$WORK/addresses"
commanded "192.0.2.8 !192.0.2.9" -t work -T show
commanded "2 addresses deleted." -t work -T flush
commanded "" -t work -T show
seq 1 5000 | awk '{ printf "10.%d.%d.1\n", $1 / 250, $1 % 250 }' >"$WORK/many"
commanded "5000/5000 addresses added." -t work -T add -f "$WORK/many"
same "addresses in a large table" 5000 "$(pf gateway -t work -T show | wc -l)"
commanded "1 table deleted." -t work -T kill
commanded "pfctl: Table does not exist." -t work -T show
pf gateway -q -t pinned -T add 192.0.2.2 2>/dev/null
same "exit status of a change to a constant table" 255 $?
commanded "192.0.2.1" -t pinned -T show

# an entry keeps its time of insertion when the contents are replaced
commanded "1 table created. 2/2 addresses added." -t aged -T add 192.0.2.1 192.0.2.2
aged='192.0.2.1 !192.0.2.2 192.0.2.3'
sleep 2.1
# shellcheck disable=SC2086
commanded "1 addresses added. 1 addresses changed." -t aged -T replace $aged
commanded "1/1 addresses expired. D 192.0.2.1" -v -t aged -T expire 2
pf gateway -q -t aged -T add 192.0.2.1
sleep 2.1
printf 'table <aged> persist { %s 192.0.2.4 }\npass\n' "$aged" | pf gateway -q -f -
commanded "3/3 addresses expired. D 192.0.2.1 D !192.0.2.2 D 192.0.2.3" -v -t aged -T expire 2
commanded "192.0.2.4" -t aged -T show

filter gateway <<'END'
table <nets> { 10.0.0.0/8, !10.1.0.0/16, 10.1.2.0/24, !10.1.2.3, 2001:db8::/32, !2001:db8:1::/48, 2001:db8:1::1 }
table <counted> persist counters
table <pinned> const persist { 192.0.2.1 }
pass from <nets>
pass from <mentioned>
END
pf gateway -q -t aged -T kill

# flags: constant, persistent, active, referenced by rules, counters
commanded "-pa---C counted --a-r-- nets cpa---- pinned" -sT -v
commanded "-pa---C counted ----r-- mentioned --a-r-- nets cpa---- pinned" -g -sT -v
commanded "1 table created. 1/1 addresses added." -t mentioned -T add 192.0.2.5
commanded "-pa---C counted -pa-r-- mentioned --a-r-- nets cpa---- pinned" -sT -v
printf 'table <mentioned> { 192.0.2.6 }\npass from <mentioned>\n' | pf gateway -q -f -
commanded "-pa---C counted --a-r-- mentioned cpa---- pinned" -sT -v
commanded "192.0.2.6" -t mentioned -T show
pf gateway -q -F rules
commanded "-pa---C counted cpa---- pinned" -g -sT -v

# tables of anchors
printf 'table <inner> { 192.0.2.1 }\ntable <other> persist\nblock from <inner>\n' |
	pf gateway -q -a sub/one -f -
commanded "--a-r-- inner@sub/one -pa---- other@sub/one" -a sub/one -sT -v
commanded "inner@sub/one other@sub/one" -a 'sub/*' -sT
commanded "192.0.2.1" -a sub/one -t inner -T show
commanded "1/1 addresses added." -a sub/one -t inner -T add 192.0.2.2
commanded "192.0.2.1 192.0.2.2" -a sub/one -t inner -T show
pf gateway -q -a sub/one -F rules
pf gateway -q -a sub/one -F Tables
commanded "pfctl: Anchor does not exist." -a sub/one -sT

# a table without counters, which exists before its rules, gets counters from its definition
commanded "1 table created. 1/1 addresses added." -t early -T add $CLIENT4
filter gateway <<'END'
table <early> persist counters
pass
pass in on lan0 inet proto icmp from <early>
END
commanded "$CLIENT4" -t early -T show
same "ping $SERVER4" passed "$(probe_ping client $SERVER4)"
same "of its address" "In/Pass: 1 Out/Pass: 1" \
	"$(pf gateway -t early -T show -vv | awk '/Packets/ && $4 { print $1, $4 }' | xargs)"
pf gateway -q -F rules
pf gateway -q -t early -T kill

# rules that differ in an address become a table
filter gateway < <(
	echo "block in on lan0 inet proto icmp"
	printf 'pass in on lan0 inet proto icmp from %s\n' $CLIENT4 192.0.2.{1..7}
)
same "rules" 2 "$(pf gateway -sr | wc -l)"
same "ping from one of them" passed "$(probe_ping client $SERVER4)"
pf gateway -q -F states
on client ip address add 192.168.100.55/24 dev eth0
same "ping from another" "no answer" \
	"$(on client ping -n -q -c 1 -W 1 -I 192.168.100.55 $SERVER4 >/dev/null && echo passed ||
	echo "no answer")"

# counters of addresses
filter gateway <<'END'
table <lan> counters { 192.168.100.0/24, 192.168.101.0/24 }
table <wan> counters { 192.168.10.0/24, 2001:db8:10::/64 }
table <bad> counters { 192.168.10.0/24 }
pass all no state
match in on lan0 inet proto icmp from <lan>
pass in on lan0 from any to <wan>
pass out on wan0 inet from <lan> to any no state
pass in on wan0 inet from any to <lan> no state
block in on lan0 proto udp to <bad>
END
for _ in 1 2 3; do
	same "ping $SERVER4" passed "$(probe_ping client $SERVER4)"
done
same "ping $SERVER6" passed "$(probe_ping client $SERVER6)"
same "UDP to $SERVER4" "no answer" "$(probe_udp client $SERVER4 53)"

# counter TABLE ADDRESS NAME - prints packets and bytes of an address from `-T show -vv`
counter() {
	pf gateway -t "$1" -T show -vv | awk -v address="$2" -v name="$3:" \
		'NF == 1 { here = $1 == address } here && $1 == name { print $4, $6 }'
}
# a ping has 84 bytes over IPv4 and 104 over IPv6; without a state, each interface of the gateway
# counts it
same "from the client to the server" "3 252" "$(counter lan 192.168.100.0/24 Out/Pass)"
same "an address that nothing came from" "" "$(counter lan 192.168.101.0/24 Out/Pass)"
same "from the server to the client" "3 252" "$(counter lan 192.168.100.0/24 In/Pass)"
same "into the state of IPv4" "3 252" "$(counter wan 192.168.10.0/24 In/Pass)"
same "out of the state of IPv4" "3 252" "$(counter wan 192.168.10.0/24 Out/Pass)"
same "into the state of IPv6" "1 104" "$(counter wan 2001:db8:10::/64 In/Pass)"
same "out of the state of IPv6" "1 104" "$(counter wan 2001:db8:10::/64 Out/Pass)"
at_least 1 "blocked" "$(counter bad 192.168.10.0/24 In/Block | cut -d ' ' -f 1)"
same "passed, in the table of the block rule" "0 0" "$(counter bad 192.168.10.0/24 In/Pass)"

commanded "1/1 addresses cleared." -t wan -T zero 2001:db8:10::/64
same "one address cleared" "" "$(counter wan 2001:db8:10::/64 In/Pass)"
same "and not the other" "3 252" "$(counter wan 192.168.10.0/24 In/Pass)"
commanded "1 table/stats cleared." -t wan -T zero
same "all addresses cleared" "" "$(counter wan 192.168.10.0/24 In/Pass)"
same "and not those of other tables" "3 252" "$(counter lan 192.168.100.0/24 In/Pass)"
verdict
