# `pfctl -e` attaches every interface that can be attached, and names the others. `pfctl -E` and
# `-X` count references.
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

# macOS's references: the filter stays enabled until the last one is released
references() {
	pf gateway -s References | awk 'NR > 2 { print $2, $3 }' | xargs
}
disabled() {
	pf gateway -si | grep -q '^Status: Disabled'
}
token() {
	pf gateway -E 2>&1 | sed -n 's/^Token : //p'
}
same "nothing holds a reference" "No pf starter references held" "$(pf gateway -s References)"
first=$(token)
second=$(token)
same "the references, the latest first" "pfctl $second pfctl $first" "$(references)"
said=$(pf gateway -X "$first" 2>&1)
same "pfctl -X of the first" "0 disable request successful. 1 more pf enable reference(s) \
remaining, pf still enabled." "$? $said"
said=$(pf gateway -X "$first" 2>&1)
same "and once more" "1 pfctl: pf: token invalid" "$? $said"
pf gateway -q -f - <<<"block all"
same "a load keeps references" "pfctl $second" "$(references)"
same "the filter is enabled" 1 "$(pf gateway -si | grep -c '^Status: Enabled')"
said=$(pf gateway -X "$second" 2>&1)
same "pfctl -X of the last" "0 pf disabled" "$? $said"
said=$(pf gateway -X "$second" 2>&1)
same "of a disabled filter" "1 pfctl: pf not enabled" "$? $said"
# -e counts as a reference without a token
pf gateway -q -e
third=$(token)
same "pfctl -X after -e" 1 "$(pf gateway -X "$third" 2>&1 | grep -c '1 more pf enable reference')"
fourth=$(token)
same "pfctl -d voids tokens" "pf disabled" "$(pf gateway -d 2>&1)"
same "no reference is left" "No pf starter references held" "$(pf gateway -s References)"
pf gateway -q -e
said=$(pf gateway -X "$fourth" 2>&1)
same "a token from before -d" "1 pfctl: pf: token invalid" "$? $said"
same "-q prints no token" "" "$(pf gateway -q -E 2>&1)"
same "but it holds" 1 "$(references | wc -w | awk '{ print $1 / 2 }')"
pf gateway -q -d
# processes that come at once
processes=() failed=0
for _ in 1 2 3 4 5 6 7 8; do
	pf gateway -q -X "$(token)" &
	processes+=($!)
done
for process in "${processes[@]}"; do
	wait "$process" || failed=$((failed + 1))
done
same "8 processes take and release a reference at once: failures" 0 $failed
holds "the last of them has disabled the filter" disabled
# a load on trial that fails disables the filter again, and the reference ends with it
echo "block all" >"$WORK/rules"
fifth=$(pf gateway -Ef "$WORK/rules" --confirm 4 2>&1 | sed -n 's/^Token : //p')
same "a reference during a trial" "pfctl $fifth" "$(references)"
await 10 disabled || die "the trial does not end"
pf gateway -q -e
same "the references after it" "No pf starter references held" "$(pf gateway -s References)"
said=$(pf gateway -X "$fifth" 2>&1)
same "the token after it" "1 pfctl: pf: token invalid" "$? $said"
pf gateway -q -d

# limits beyond the machine's memory do not prevent the load of other rules
pf gateway -q --remove
echo 'set limit states 4000000000' >"$WORK/large"
said=$(pf gateway -q --room-for "$WORK/large" -f - <<<"block all" 2>&1)
same "--room-for more than there is: pfctl ends with" 0 $?
same "and warns" 1 "$(grep -c 'warning: no memory for the limits of .*/large (4000000000' <<<"$said")"
same "the rules are loaded" "block drop all" "$(pf gateway -sr)"
verdict
