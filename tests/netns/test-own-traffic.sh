# A host that filters its own traffic, loopback included.
#
#   visitor                                host (filters)
#   eth0 ------------------------------------------- eth0
#   192.0.2.1  2001:db8::1         192.0.2.2  2001:db8::2
. "$(dirname "$0")/lab.sh"
lab_begin
host visitor host
wire visitor eth0 host eth0
address visitor eth0 192.0.2.1/24 2001:db8::1/64
address host eth0 192.0.2.2/24 2001:db8::2/64
await 5 on visitor ping -n -q -c 1 -W 1 2001:db8::2 || die "the hosts do not reach each other"
web host 80 8080
web visitor 80 8080

rules() {
	cat <<'END'
block all
pass inet6 proto icmp6
pass in on eth0 proto tcp to (eth0) port 80
pass out on eth0 proto tcp from (eth0) to port 80
END
}

filter host < <(rules)
for address in 192.0.2.2 2001:db8::2; do
	same "in to port 80 of $address" passed "$(probe_web visitor $address 80)"
	same "in to port 8080 of $address" "no answer" "$(probe_web visitor $address 8080)"
done
for address in 192.0.2.1 2001:db8::1; do
	same "out to port 80 of $address" passed "$(probe_web host $address 80)"
	same "out to port 8080 of $address" "no answer" "$(probe_web host $address 8080)"
done
same "loopback is filtered as any interface" "no answer" "$(probe_web host 127.0.0.1 80)"
same "loopback is filtered as any interface, IPv6" "no answer" "$(probe_web host ::1 80)"
same "so is what it sends to its own address" "no answer" "$(probe_web host 192.0.2.2 80)"

filter host < <(echo "set skip on lo"; rules)
same "unless it is skipped" passed "$(probe_web host 127.0.0.1 80)"
same "unless it is skipped, IPv6" passed "$(probe_web host ::1 80)"
same "which changes nothing for others" "no answer" "$(probe_web visitor 192.0.2.2 8080)"
verdict
