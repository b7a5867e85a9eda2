# Ports of a kernel's bridge with `set skip`, while br_netfilter calls netfilter's hooks for frames
# on the bridge, as Docker and Kubernetes have it: the guard passes packets that came in by such a
# port. Also states that see each SYN twice, on the bridge and on its port.
# long: 12 s
#
#   visitor               host                      guest
#   eth0 ---------------- eth0 (br0) vnet0 -------- eth0
#   192.0.2.1           br0: 192.0.2.2              192.0.2.3
. "$(dirname "$0")/lab.sh"
host visitor host guest
wire visitor eth0 host eth0
wire guest eth0 host vnet0
on host ip link add br0 type bridge forward_delay 0
for port in eth0 vnet0; do
	on host ip link set $port master br0
	on host ip link set $port up
done
address visitor eth0 192.0.2.1/24 2001:db8::1/64
address host br0 192.0.2.2/24 2001:db8::2/64
address guest eth0 192.0.2.3/24 2001:db8::3/64
on host sysctl -q net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1 ||
	unable "this kernel has no br_netfilter"
await 5 on visitor ping -n -q -c 1 -W 1 2001:db8::3 || die "the hosts do not reach each other"
web host 80 8080
web guest 80

# fates - how a visitor fares at the ports 80 and 8080 of the host, and at the guest
fates() {
	echo "$(probe_web visitor 192.0.2.2 80) $(probe_web visitor 2001:db8::2 80)," \
		"$(probe_web visitor 192.0.2.2 8080)," \
		"$(probe_web visitor 192.0.2.3 80) $(probe_web visitor 2001:db8::3 80)"
}
filter host <<'END'
block in on br0 proto tcp to port 8080
END
same "without set skip" "passed passed, no answer, passed passed" "$(fates)"
filter host <<'END'
set skip on { eth0 vnet0 }
block in on br0 proto tcp to port 8080
END
same "set skip on the ports" "passed passed, no answer, passed passed" "$(fates)"
same "packets counted as unattached" "" "$(reason host unattached)"
filter host <<'END'
set skip on eth0
block in on vnet0
END
same "set skip on one port" "passed passed, passed, no answer no answer" "$(fates)"

# Rules keep a state on the bridge and on its port: the state sees each SYN twice. The server's
# first sequence numbers are random, and some are far from 0.
filter host <<'END'
pass
END
witness host 81
same "connections by a bridge whose states see each SYN twice" "400 of 400" "$(on visitor python3 -c '
import socket
good = 0
for _ in range(400):
    with socket.socket() as s:
        s.settimeout(0.9)  # a repeated SYN comes after 1 s
        try:
            s.connect(("192.0.2.2", 81))
            good += s.recv(100) == b"192.0.2.1\n"
        except OSError:
            pass
print(good, "of 400")')"
same "packets counted as state-mismatch" 0 "$(reason host state-mismatch)"

# An interface without skipstep's programs is closed as before, also as a port.
pf host -q -f - <<'END'
pass
END
host late
wire late eth0 host vnet1
on host ip link set vnet1 master br0
on host ip link set vnet1 up
address late eth0 192.0.2.4/24
same "a port without programs" "no answer" "$(probe_ping late 192.0.2.2)"
at_least 1 "packets counted as unattached" "$(reason host unattached)"
verdict
