# Hosts on one machine hand each other TCP packets of up to 64 kB (GSO). They are counted as the
# segments they would be on a wire.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
lab_begin
gateway_between_client_and_server
start iperf3 server iperf3 --server --port 5001
await 3 listening server tcp 5001 || die "no iperf3 server"

filter gateway <<'END'
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp to port 5001 label "in"
pass out on wan0 proto tcp to port 5001 label "out"
END
for address in $SERVER4 $SERVER6; do
	pf gateway -q -z
	on client iperf3 --client "$address" --port 5001 --bytes 100M --connect-timeout 1000 \
		>/dev/null || die "iperf3 failed"
	# label evaluations packets bytes packets-in bytes-in packets-out bytes-out states
	for label in in out; do
		read -r packets bytes \
			< <(pf gateway -sl | awk -v l=$label '$1 == l { print $3, $4 }')
		at_least 104857600 "bytes to and from $address, $label" "$bytes"
		at_least $((bytes / 1500)) "packets to and from $address, $label" "$packets"
	done
done
verdict
