# A table of 100,000 addresses: each command reports its effect, its time does not grow with the
# square of the number of addresses, and packets meanwhile see either the old contents or the new
# ones.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server

# addresses FIRST LAST - prints the addresses of these numbers
addresses() {
	seq "$1" "$2" | awk '{ printf "10.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }'
}
addresses 0 99999 >"$WORK/old"
addresses 50000 149999 >"$WORK/new"
printf '%s\n' 192.168.0.0/16 2001:db8::/32 | tee -a "$WORK/old" >>"$WORK/new"

# commanded EXPECTED ARGUMENT... - checks pfctl's output, within 20 seconds on a busy machine
commanded() {
	local expected=$1
	shift
	same "-T $*" "$expected" \
		"$(on gateway timeout 20 "$BIN/pfctl" -t large -T "$@" 2>&1 | xargs)"
}

filter gateway <<END
set limit table-entries 300000
table <large> persist
table <another> persist { 192.0.2.1 }
block quick inet proto icmp from ! <large>
block quick inet6 proto icmp6 from ! <large> icmp6-type { echoreq, echorep }
pass no state
END
commanded "100002/100002 addresses added." add -f "$WORK/old"
start ping4 client ping -n -q -i 0.005 $SERVER4
start ping6 client ping -n -q -i 0.005 $SERVER6
commanded "0/100002 addresses added." add -f "$WORK/old"
commanded "100002/100002 addresses cleared." zero -f "$WORK/old"
commanded "50000 addresses added. 50000 addresses deleted." replace -f "$WORK/new"
commanded "no changes." replace -f "$WORK/new"
addresses 0 99999 >"$WORK/hosts"
commanded "50000/100000 addresses match." test -f "$WORK/hosts"
commanded "50000/100000 addresses deleted." delete -f "$WORK/hosts"
commanded "0/0 addresses expired." expire 3600
same "addresses shown" 50002 "$(pf gateway -t large -T show | wc -l)"
same "addresses counted" 50002 \
	"$(pf gateway -sT -vv | awk '/large/ { here = 1 } here && /Addresses:/ { print $2; exit }')"
same "what another table says" "1/1 addresses added." \
	"$(pf gateway -t another -T add 192.0.2.2 2>&1)"
for name in ping4 ping6; do
	stop $name INT
	at_least 50 "packets of $name" \
		"$(grep -o '^[0-9]* packets' "$WORK/$name.log" | grep -o '^[0-9]*')"
	holds "none of $name was lost" grep -q ' 0% packet loss' "$WORK/$name.log"
done
commanded "50002 addresses deleted." flush
same "a client that is in the table no more" "no answer" "$(probe_ping client $SERVER4)"
same "over IPv6 too" "no answer" "$(probe_ping client $SERVER6)"

addresses 0 299999 >"$WORK/many"
commanded \
	'pfctl: 300002 table entries exceed the limit of 300000: write `set limit table-entries 300002`' add -f "$WORK/many"
commanded "" show
verdict
