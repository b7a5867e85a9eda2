# Time until skipstepd notices a new address of an interface. The test pings the new address until
# the rule about (wan0) covers it, and prints the time. It checks only that the rule covers the
# address in the end.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
# long: 7 s of a processor, 60 s beside five others, as it waits for 2,500 pings
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
filter gateway <<'END'
pass no state
block in on lan0 proto icmp to (wan0)
END
daemon gateway
# while the address does not exist, the gateway sends no ICMP errors about it
on gateway ip route add blackhole 203.0.113.0/24
INTERVAL=2 # milliseconds

# answered ADDRESS - prints the number of answers to a hundred pings
answered() {
	on client ping -n -q -i 0.00$INTERVAL -c 100 -W 0.5 "$1" | awk '/received/ { print $4 }'
}

for number in 1 2 3 4 5; do
	address=203.0.113.$number
	start pings client ping -n -i 0.00$INTERVAL -c 500 -W 0.5 $address
	sleep 0.2
	on gateway ip address add $address/32 dev wan0
	wait "${PROCESSES[pings]}"
	unset "PROCESSES[pings]"
	count=$(grep -c 'bytes from' "$WORK/pings.log")
	echo "$address came, known within $((count * INTERVAL + INTERVAL)) ms"
	same "pings to it a second later" 0 "$(answered $address)"
done
verdict
