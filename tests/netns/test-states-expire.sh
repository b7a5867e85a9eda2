# States expire on time without any process of skipstep.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
echo_server server 53
web server 80

filter gateway <<'END'
set timeout { interval 1, udp.first 2, udp.single 2, udp.multiple 2, tcp.closed 2, tcp.finwait 2 }
pass all
END
same "UDP" passed "$(probe_udp client $SERVER4 53)"
same "UDP, IPv6" passed "$(probe_udp client $SERVER6 53)"
same "TCP, opened and closed" passed "$(probe_web client $SERVER4 80)"
at_least 6 "states" "$(state_count gateway)"
are_gone() {
	[ "$(state_count gateway 'udp\|tcp')" = 0 ]
}
holds "states go after their time" await 10 are_gone
at_least 6 "removals counted" "$(reason gateway removals)"
verdict
