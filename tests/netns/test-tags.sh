# A tag set by an inbound rule is known to rules on the outbound interface; so is the inbound
# interface.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80 81 82
web client 80

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp to port { 80 82 } tag OUTBOUND
pass in on lan0 proto tcp to port 81
pass out on wan0 proto tcp to port { 80 81 } tagged OUTBOUND
pass in on wan0 proto tcp
pass out on lan0 proto tcp received-on lo
END
for address in $SERVER4 $SERVER6; do
	same "tagged, and its tag is asked for, $address" passed "$(probe_web client $address 80)"
	same "not tagged, though its port is right, $address" "no answer" \
		"$(probe_web client $address 81)"
	same "tagged, though its port is not right, $address" "no answer" \
		"$(probe_web client $address 82)"
done
same "received on another interface than the rule says" "no answer" \
	"$(probe_web server $CLIENT4 80)"

# a match rule between two equal rules
filter gateway <<'END'
block in on lan0
pass in on lan0 tagged SEEN
match in on lan0 proto tcp to port 80 tag SEEN
pass in on lan0 tagged SEEN
pass inet6 proto icmp6
END
same "a rule that the optimizer must leave" passed "$(probe_web client $SERVER4 80)"
same "without its tag" "no answer" "$(probe_web client $SERVER4 81)"
verdict
