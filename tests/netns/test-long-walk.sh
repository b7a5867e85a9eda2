# pfctl warns about rules whose evaluation for one packet may take longer than a millisecond, names
# a cure, and loads the rules.
. "$(dirname "$0")/lab.sh"
host gateway

# rules SETTING - prints 25,000 rules that trees can search
rules() {
	echo "$1"
	for network in $(seq 0 24999); do
		echo "pass in proto tcp from 10.$((network >> 8)).$((network & 255)).0/24 label \"n$network\""
	done
}
# said_of SETTING - prints pfctl's messages about these rules
said_of() {
	rules "$1" | pf gateway -q -f - 2>&1
}
warning="pfctl: warning: a packet may be tested against 25000 rules, and more than 20000 take over a"
warning="$warning millisecond: \`set evaluator compiled\` searches most rules instead of walking them"
same "rules that trees search" "" "$(said_of "")"
same "the same rules without trees" "$warning" "$(said_of "set evaluator linear")"
same "rules in force" 25000 "$(pf gateway -sr | wc -l)"
same "fragments, of which rules are asked" 1 \
	"$(said_of "set reassemble no" | grep -c "25000 rules.*\`set reassemble yes\`")"
rules "set evaluator linear" | sed -n 2,25001p >"$WORK/anchor.conf"
echo 'anchor "many"' | pf gateway -q -f -
same "rules of an anchor" "" "$(pf gateway -a many -q -f "$WORK/anchor.conf" 2>&1)"
verdict
