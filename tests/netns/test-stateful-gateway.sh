# A gateway passes connections from inside, and only answers from outside, in both families.
#
#   client (inside)             gateway            server (outside)
#   eth0 ------------------ lan0      wan0 ------------------ eth0
#   192.168.100.2                                     192.168.10.2
#   2001:db8:100::2                                2001:db8:10::2
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
web client 80
echo_server server 53
echo_server client 53

filter gateway <<'END'
block all
pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
pass in on lan0 proto { tcp udp icmp icmp6 }
pass out on wan0 proto { tcp udp icmp icmp6 } received-on lan0
END

for address in $SERVER4 $SERVER6; do
	same "web, inside to $address" passed "$(probe_web client $address 80)"
	same "UDP, inside to $address" passed "$(probe_udp client $address 53)"
	same "ping, inside to $address" passed "$(probe_ping client $address)"
done
for address in $CLIENT4 $CLIENT6; do
	same "web, outside to $address" "no answer" "$(probe_web server $address 80)"
	same "UDP, outside to $address" "no answer" "$(probe_udp server $address 53)"
	same "ping, outside to $address" "no answer" "$(probe_ping server $address)"
done

pf gateway -ss
# A forwarded connection has a state for each interface that it crosses.
at_least 4 "TCP states, closed by both sides" "$(state_count gateway 'tcp.*FIN_WAIT_2:FIN_WAIT_2')"
at_least 4 "UDP states" "$(state_count gateway 'udp')"

# A segment without a connection creates no state, though the rules pass its port.
before=$(state_count gateway tcp)
on client python3 - "$SERVER4" <<'END'
import socket, struct, sys
source, target = socket.inet_aton("192.168.100.2"), socket.inet_aton(sys.argv[1])
def summed(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff
header = struct.pack("!HHIIBBHHH", 4444, 80, 1, 1, 5 << 4, 0x10, 1024, 0, 0)
checksum = summed(source + target + struct.pack("!BBH", 0, 6, len(header)) + header)
header = header[:16] + struct.pack("!H", checksum) + header[18:]
socket.socket(socket.AF_INET, socket.SOCK_RAW, 6).sendto(header, (sys.argv[1], 0))
END
same "states after a stray ACK" "$before" "$(state_count gateway tcp)"
verdict
