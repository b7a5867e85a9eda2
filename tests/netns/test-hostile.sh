# Hostile frames from both sides of a gateway, many with the addresses and ports of connections
# through it. The connections continue: plain, modulated, with synproxy, translated, UDP. Neither
# skipstepd nor the kernel complains, and pfctl works as always.
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
daemon gateway
filter gateway <<'END'
set limit { states 2000, frags 200 }
block return log
pass in on lan0 proto { tcp, udp } to port 22
pass in on lan0 proto { tcp, udp } to port 80 modulate state
pass in on lan0 proto tcp to port 443 synproxy state
pass in on lan0 proto { icmp, icmp6 }
pass out on wan0
match out on wan0 inet proto { tcp, udp } nat-to 192.168.10.81
END
for port in 22 80 443; do
	echo_server server "$port"
done

complaints() {
	{
		dmesg --level=emerg,alert,crit,err
		dmesg | grep "WARNING: CPU"
	} | wc -l
}
before=$(complaints)
# A lost SYN would delay the connection.
await 5 on client ping -n -q -c 1 -W 1 $SERVER4
start talk client python3 "$HERE/hostile.py" talk "$WORK/ends" "$WORK/go" $SERVER4 $SERVER6
await 20 test -e "$WORK/ends" || die "nobody talks: $(cat "$WORK/talk.log")"

mac_of() { link_address gateway "$1"; }
on client python3 "$HERE/hostile.py" throw "$WORK/ends" eth0 "$(mac_of lan0)" client 6000 1
same "frames of the client's side are sent" 0 $?
on server python3 "$HERE/hostile.py" throw "$WORK/ends" eth0 "$(mac_of wan0)" server 6000 2 \
	192.168.10.81
same "frames of the server's side are sent" 0 $?
for name in short ip-option fragment normalize state-mismatch match; do
	at_least 1 "packets counted under $name" "$(reason gateway "$name")"
done

touch "$WORK/go"
wait "${PROCESSES[talk]}"
same "the conversations" "10 conversations go on" "$(tail -n 1 "$WORK/talk.log")"
unset "PROCESSES[talk]"
# skipstepd may still process hostile fragments, and drops fragments beyond its limit
holds "a datagram in fragments, after so many pieces of others" await 5 on client ping -n -q -c 1 \
	-W 1 -s 3000 $SERVER4
holds "the daemon runs" kill -0 "${PROCESSES[skipstepd-gateway]}"
same "what the daemon said besides that it is ready" "" \
	"$(grep -v "skipstepd: ready" "$WORK/skipstepd-gateway.log")"
same "what pfctl says besides what it is asked" "" "$(pf gateway -s all 2>&1 >/dev/null)"
same "complaints of the kernel" "$before" "$(complaints)"
verdict
