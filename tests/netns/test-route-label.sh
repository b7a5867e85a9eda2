# Labels of routes: realms, by name and by number, which skipstepd updates as routes change.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
on server ip address add 198.51.100.7/32 dev lo
on gateway ip route add 198.51.100.0/24 via "$SERVER4" realm 7

filter gateway <<'END_OF_RULES'
block
pass out on wan0 from any to any
pass in on lan0 inet proto icmp to route "7"
END_OF_RULES
daemon gateway
same "a route with the label" passed "$(probe_ping client 198.51.100.7)"
same "one without" "no answer" "$(probe_ping client "$SERVER4")"
on gateway ip route replace 198.51.100.0/24 via "$SERVER4" realm 8
# the states of earlier pings must not pass the next ones
unlabelled() {
	pf gateway -F states
	[ "$(probe_ping client 198.51.100.7)" = "no answer" ]
}
holds "the label goes with the route" await 5 unlabelled
on gateway ip route add 198.51.100.7/32 via "$SERVER4" realm 7
labelled() {
	[ "$(probe_ping client 198.51.100.7)" = passed ]
}
holds "a longer prefix has it" await 5 labelled
verdict
