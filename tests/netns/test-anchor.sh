# `pfctl -a` loads and flushes rules and tables of one anchor; other anchors stay unchanged.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

filter gateway <<'END'
pass
anchor "guests/*" in on lan0
END
same "web before" "passed" "$(probe_web client $SERVER4 80)"
pf gateway -a guests/bad -q -f - <<'END'
table <bad> persist { 192.0.2.1 }
block return quick proto tcp from <bad> label "bad"
END
same "web of a client that is not in the table" "passed" "$(probe_web client $SERVER4 80)"
same "-T add to the main table of that name" "1 table created. 1/1 addresses added." \
	"$(pf gateway -t bad -T add $CLIENT4 2>&1 | xargs)"
same "web of a client that only the main table has" "passed" "$(probe_web client $SERVER4 80)"
pf gateway -q -t bad -T kill
same "-T add" "1/1 addresses added." "$(pf gateway -a guests/bad -t bad -T add $CLIENT4 2>&1)"
same "web of one that is" "refused" "$(probe_web client $SERVER4 80)"
same "rules, with those of anchors" "$(printf '%s\n' 'pass all flags S/SA' \
	'anchor "guests/*" in on lan0 all {' '  anchor "bad" all {' \
	'    block return quick proto tcp from <bad> to any label "bad"' '  }' '}')" \
	"$(pf gateway -a '*' -sr)"
same "anchors" "guests guests/bad" "$(pf gateway -sA | xargs)"
same "tables" "bad@guests/bad" "$(pf gateway -a '*' -sT)"
same "packets the label counted" 1 "$(pf gateway -a guests/bad -sl | cut -d ' ' -f 3)"
same "an anchor that is not there" "pfctl: Anchor does not exist." \
	"$(pf gateway -a nowhere -sr 2>&1)"
pf gateway -q -f - <<<'anchor "guests/*"'
same "web under other main rules" "refused" "$(probe_web client $SERVER4 80)"
same "-a -F rules" "rules cleared" "$(pf gateway -a guests/bad -F rules 2>&1)"
same "web without the anchor's rules" "passed" "$(probe_web client $SERVER4 80)"
verdict
