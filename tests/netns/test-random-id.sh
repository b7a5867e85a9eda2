# The values of `random-id` cannot be computed from earlier values: the low bits of the
# identifications of 400 packets obey no linear recurrence. Those of the kernel's own generator do.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
filter client <<'END'
pass
match out on eth0 inet proto udp scrub (random-id)
END
start ear server tcpdump --immediate-mode -n -l -v -i eth0 -Q in udp port 9
await 3 grep -q "listening on" "$WORK/ear.log"
# the kernel's generator has a state for each CPU
on client taskset -c 0 python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(400):
    s.sendto(b"x", (sys.argv[1], 9))
    time.sleep(0.001)' $SERVER4
await 3 eval '[ "$(grep -c ", id " "$WORK/ear.log")" -ge 400 ]'
stop ear
read -r packets different complexity < <(sed -n 's/.*, id \([0-9]*\),.*/\1/p' "$WORK/ear.log" |
	python3 -c '
import sys
ids = [int(line) for line in sys.stdin]

def linear_complexity(bits):
    """The length of the shortest linear recurrence over GF(2) (Berlekamp and Massey)."""
    c, b, length, m, window = 1, 1, 0, 1, 0
    for n, bit in enumerate(bits):
        window = window << 1 | bit
        if bin(c & window & ((1 << length + 1) - 1)).count("1") & 1:
            was, c = c, c ^ b << m
            if 2 * length <= n:
                length, b, m = n + 1 - length, was, 0
        m += 1
    return length

shortest = min(linear_complexity([i >> bit & 1 for i in ids]) for bit in range(16))
print(len(ids), len(set(ids)), shortest)')
# a busy tcpdump loses some packets
at_least 390 "packets seen" "$packets"
at_least 380 "different identifications" "$different"
# about 200 for 400 random bits; the kernel's generator has a state of 113 bits
at_least 180 "terms of the shortest linear recurrence of a bit" "$complexity"
verdict
