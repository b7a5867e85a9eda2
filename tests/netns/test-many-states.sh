# Twenty thousand states are listed, each exactly once, while packets pass; a new state is listed,
# too.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
filter gateway <<'END'
set timeout { udp.first 600, adaptive.start 0, adaptive.end 0 }
block all
pass inet6 proto icmp6 no state
pass in on lan0 inet proto udp to port 5000:5001
pass in on lan0 inet proto icmp
pass out on wan0 inet proto icmp
END
# A packet without an answer makes one state on lan0 and is blocked on wan0.
on client python3 - "$SERVER4" <<'END'
import socket, sys
for port in range(20000, 30000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", port))
    for to in 5000, 5001:
        s.sendto(b"x", (sys.argv[1], to))
    s.close()
END
same "states in the status" 20000 "$(pf gateway -si | awk '/current entries/ { print $3; exit }')"
start pings client ping -n -i 0.01 "$SERVER4"
await 3 eval '[ "$(state_count gateway icmp)" = 2 ]' || die "no ping"
pf gateway -ss | grep udp >"$WORK/states"
same "states listed" 20000 "$(wc -l <"$WORK/states")"
same "different ones" 20000 "$(sort -u "$WORK/states" | wc -l)"
same "of the first port" 10000 "$(grep -c ":5000 <- " "$WORK/states")"
same "as JSON" 20000 "$(pf gateway -ss --json | grep -o '"udp"' | wc -l)"
stop pings INT
same "killed by port's key: one" "killed 1 states" \
	"$(pf gateway -k key -k "udp $CLIENT4:25000 -> $SERVER4:5000" 2>&1)"
same "flushed" 0 "$(pf gateway -q -F states; state_count gateway udp)"
verdict
