# pfctl commands on a running filter change only their own part: -T load, -o profile, -r, -F Reset,
# -k gateway, and a load. A load keeps weights, and with set keepcounters counters.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

rules() {
	cat <<-END
		set limit states 5000
		set optimization aggressive
		table <clients> persist { $CLIENT4 }
		table <weights> persist { 10.0.0.1 weight 5, 10.0.0.2 }
		block all
		pass inet6 proto icmp6
		pass in on lan0 proto tcp from <clients> to port 80
		pass out on wan0 proto tcp to port 80
	END
}
rules | filter gateway
same "a connection" passed "$(probe_web client $SERVER4 80)"

# only the tables of a text
before=$(pf gateway -sr)
rules | sed "s/{ $CLIENT4 }/{ 198.51.100.7 }/; s/^pass out.*/block out/" >"$WORK/other.conf"
holds "pfctl -T load" pf gateway -T load -f "$WORK/other.conf"
same "what is in the table" 198.51.100.7 "$(pf gateway -t clients -T show | xargs)"
same "the rules" "$before" "$(pf gateway -sr)"
same "a new connection" "no answer" "$(probe_web client $SERVER4 80)"
rules >"$WORK/rules.conf"
holds "pfctl -T load of the first" pf gateway -T load -f "$WORK/rules.conf"
same "a new connection" passed "$(probe_web client $SERVER4 80)"

# addresses that are already in a table keep their weights
sed 's/10.0.0.1 weight 5, 10.0.0.2 /10.0.0.1 weight 9, 10.0.0.2 weight 3, 10.0.0.3 weight 7 /' \
	"$WORK/rules.conf" >"$WORK/weights.conf"
holds "a load with other weights" pf gateway -f "$WORK/weights.conf"
same "the weights" "10.0.0.1 Weight: 5 10.0.0.2 10.0.0.3 Weight: 7" \
	"$(pf gateway -t weights -vT show | grep -v Cleared | xargs)"

# `-o profile` sorts rules without skip steps by their number of matches
cat >"$WORK/profile.conf" <<-END
	block all
	pass inet6 proto icmp6
	pass quick proto udp to port 1:100
	pass quick proto tcp to port 1:100
END
holds "a rule set" pf gateway -o none -f "$WORK/profile.conf"
for _ in 1 2 3; do probe_web client $SERVER4 80 >/dev/null; done
pf gateway -q -F states
at_least 1 "packets of the last rule" \
	"$(pf gateway -vsr -R 3 | grep -o 'Packets: [0-9]*' | grep -o '[0-9]*')"
holds "pfctl -o profile" pf gateway -o profile -f "$WORK/profile.conf"
same "rules" "$(pf gateway -nvf "$WORK/profile.conf" -o none | sort)" "$(pf gateway -sr | sort)"
same "a connection" passed "$(probe_web client $SERVER4 80)"

# addresses as names
pf gateway -q -t hosts -T add 127.0.0.1
same "an address" 127.0.0.1 "$(pf gateway -t hosts -T show | xargs)"
same "pfctl -r" "127.0.0.1 (localhost)" "$(pf gateway -r -t hosts -T show | xargs)"

# options are reset; rules, tables and states stay
rules | pf gateway -q -f -
same "a connection" passed "$(probe_web client $SERVER4 80)"
states=$(state_count gateway tcp)
same "a timeout" "tcp.established 18000s" "$(pf gateway -st | grep established | xargs)"
holds "pfctl -F Reset" pf gateway -F Reset
same "the timeout" "tcp.established 86400s" "$(pf gateway -st | grep established | xargs)"
same "the limit" 100000 "$(pf gateway -sm | awk '$1 == "states" { print $NF }')"
same "rules" "$(pf gateway -nvf "$WORK/rules.conf" | grep -c '^pass\|^block')" \
	"$(pf gateway -sr | wc -l)"
same "states" "$states" "$(state_count gateway tcp)"
same "a connection" passed "$(probe_web client $SERVER4 80)"

# counters survive a load with set keepcounters
counted() {
	pf gateway -vsr | grep -A 1 '^pass in on lan0' | grep -o 'Packets: [0-9]*' |
		grep -o '[0-9]*'
}
(echo set keepcounters; rules) | filter gateway
same "a connection" passed "$(probe_web client $SERVER4 80)"
packets=$(counted)
at_least 5 "packets of a rule" "$packets"
(echo set keepcounters; rules; echo pass out proto udp) | pf gateway -q -f -
at_least "$packets" "its packets after set keepcounters" "$(counted)"
rules | pf gateway -q -f -
same "its packets without" 0 "$(counted)"

# states are killed by the next hop that route-to gave them
rules | sed 's/^pass in on lan0.*/& route-to 192.168.10.2/' | filter gateway
pf gateway -q -F states
same "a connection" passed "$(probe_web client $SERVER4 80)"
same "states" 2 "$(state_count gateway tcp)"
same "of another gateway" "killed 0 states" "$(pf gateway -k gateway -k 192.168.10.3 2>&1)"
same "of this gateway" "killed 1 states" "$(pf gateway -k gateway -k 192.168.10.0/24 2>&1)"
same "states that are left" 1 "$(state_count gateway tcp)"
verdict
