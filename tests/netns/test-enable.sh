# `pfctl -e` attaches every interface that can be attached, and names the others.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

pf gateway -q -f - <<<"block all" || die "the rules were not loaded"
# this folder blocks the path at which the link of lan0 would be pinned
lan=$(on gateway ip -o link show lan0 | cut -d: -f1)
mkdir "${PINS[gateway]}/links/$lan-in" || die "nothing is in the way"

said=$(pf gateway -e 2>&1)
same "pfctl -e ends with" 0 $?
same "it names the interface" 1 "$(grep -c '^pfctl: warning: lan0: not filtered' <<<"$said")"
same "and no other" 1 "$(grep -c warning <<<"$said")"
same "and says that the filter is enabled" "pf enabled" "$(tail -n 1 <<<"$said")"
same "the others are attached" tc "$(pf gateway -sI -vv -i wan0 | sed -n 's/.*Hook: *//p')"
same "what leaves by them is blocked" "no answer" "$(probe_web client "$SERVER4" 80)"

# the second -e has nothing to enable, and attaches the interface that failed before
rmdir "${PINS[gateway]}/links/$lan-in"
said=$(pf gateway -e 2>&1)
same "pfctl -e of an enabled filter" "0 pfctl: pf already enabled" "$? $said"
said=$(pf gateway -q -e 2>&1)
same "with -q" "0 " "$? $said"
same "the interface is attached now" tc "$(pf gateway -sI -vv -i lan0 | sed -n 's/.*Hook: *//p')"
same "pfctl -d" "0 pf disabled" "$(pf gateway -d 2>&1 | sed 's/^/0 /')"
said=$(pf gateway -d 2>&1)
same "pfctl -d of a filter that is not enabled" "1 pfctl: pf not enabled" "$? $said"

# limits beyond the machine's memory do not prevent the load of other rules
pf gateway -q --remove
echo 'set limit states 4000000000' >"$WORK/large"
said=$(pf gateway -q --room-for "$WORK/large" -f - <<<"block all" 2>&1)
same "--room-for more than there is: pfctl ends with" 0 $?
same "and warns" 1 "$(grep -c 'warning: no memory for the limits of .*/large (4000000000' <<<"$said")"
same "the rules are loaded" "block drop all" "$(pf gateway -sr)"
verdict
