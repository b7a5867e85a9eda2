# Common parts of the tests of agents: two machines with a router between them, and a third machine
# that reaches both by separate networks.
#
#            control ctl1 -------------------- ctl0 server
#               ctl0                                 |
#                |                                   |
#   client ctl0 -+- eth0 ---------- gateway ------ eth0
. "$(dirname "$0")/lab.sh"

# control_apart - makes the machines; $KEY names the file of the agents' key
control_apart() {
	gateway_between_client_and_server
	host control
	wire control ctl0 client ctl0
	wire control ctl1 server ctl0
	address control ctl0 10.9.1.1/24
	address client ctl0 10.9.1.2/24
	address control ctl1 10.9.2.1/24
	address server ctl0 10.9.2.2/24
	await 5 on control ping -n -q -c 1 -W 1 10.9.1.2 &&
		await 5 on control ping -n -q -c 1 -W 1 10.9.2.2 ||
		die "the agents' machines cannot be reached"
	KEY=$WORK/key
}

# agent HOST [KEY] - starts an agent
agent() {
	start "agent-$1" "$1" "$BIN/fwlab" agent --key "${2:-$KEY}" --listen "[::]:19818"
	await 5 grep -q ready "$WORK/agent-$1.log" || die "no agent: $(cat "$WORK/agent-$1.log")"
}

# watch_words - records the traffic on the control networks in $WORK/words
watch_words() {
	start words control python3 "$HERE/control-words.py" "$WORK/words"
	await 5 grep -q watching "$WORK/words" ||
		die "nobody watches the control network: $(cat "$WORK/words.log")"
}
