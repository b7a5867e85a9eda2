# `pfctl -k` ends exactly one running connection.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp to port 80
pass out on wan0 proto tcp to port 80
END
for family in 4 6; do
	server=SERVER$family
	address=${!server}
	case $address in *:*) address="[$address]" ;; esac
	start "transfer$family" client curl --silent --output /dev/null --limit-rate 20M \
		--speed-time 2 --speed-limit 1000 \
		--write-out '%{size_download}' "http://$address/large"
done
await 2 eval '[ "$(state_count gateway ESTABLISHED:ESTABLISHED)" = 4 ]' ||
	die "the transfers do not start"
holds "pfctl -k" pf gateway -k $CLIENT4
same "states that are left" 2 "$(state_count gateway ESTABLISHED:ESTABLISHED)"
wait "${PROCESSES[transfer6]}"
same "curl's exit status for the other connection" 0 $?
same "its bytes" 67108864 "$(cat "$WORK/transfer6.log")"
wait "${PROCESSES[transfer4]}"
same "curl's exit status for the one killed" 28 $?
unset "PROCESSES[transfer4]" "PROCESSES[transfer6]"
verdict
