# Very many states are restored and listed in all formats, while new connections are made. Prints
# time and memory; STATES is the number of states.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
STATES=${STATES:-20000}

filter gateway <<END
set limit states $((STATES + 100000))
set timeout { udp.first 3600, udp.single 3600 }
pass
END
web_works() { probe_web client $SERVER4 80; }
same "a connection" passed "$(web_works)"
pf gateway -q -S "$WORK/states"
# states without packets, up to the limit
python3 - "$WORK/states" "$STATES" <<'END'
import json, sys
path, count = sys.argv[1], int(sys.argv[2])
with open(path) as file:
    head, *states = file.read().splitlines()
state = json.loads(states[0])
state.update(protocol=17, timeout="udp.first", interface=None, matches=[])
for side in ("source", "destination"):
    state[side].update(state=1, seqlo=0, seqhi=0, seqdiff=0, window=0, wscale=0)
with open(path, "w") as file:
    print(head, file=file)
    for number in range(count):
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        key = [["10.200.0.1", 1 + number % 60000], [address, 53]]
        state.update(id=0x1000000000 + number, family="Inet", wire=key, stack=key)
        print(json.dumps(state), file=file)
END
pf gateway -L "$WORK/states" || die "pfctl -L fails"
at_least "$STATES" "states" "$(pf gateway -si | awk '$1 == "current" { print $3; exit }')"

for form in -ss -vvss "--json -ss"; do
	before=${EPOCHREALTIME/[.,]/}
	# shellcheck disable=SC2086
	start list gateway python3 -c 'import os, sys
_, _, usage = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)
print(usage.ru_maxrss)' "$BIN/pfctl" $form
	answers=0
	while kill -0 "${PROCESSES[list]}" 2>/dev/null; do
		[ "$(web_works)" != passed ] || answers=$((answers + 1))
	done
	stop list
	took=$(((${EPOCHREALTIME/[.,]/} - before) / 1000))
	at_least 1 "connections meanwhile" "$answers"
	at_least "$STATES" "states that $form lists" "$(grep -c '10\.200\.0\.1' "$WORK/list.log")"
	echo "$form: $took ms, $(stat -c %s "$WORK/list.log") bytes, $(tail -1 \
		"$WORK/list.log") KiB, $answers connections meanwhile"
done
verdict
