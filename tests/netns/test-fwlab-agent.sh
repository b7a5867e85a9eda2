# Two agents with a router between them, and a third machine that measures by them. The test checks
# the results, the silence of the control connections during a trial, and the loss of an agent.
# alone
# long: 17 s of a processor, 42 s beside five others
. "$(dirname "$0")/agents.sh"
control_apart

# between SECONDS ROUNDS ARGUMENT... - measures with $KEY to the server's address $TO; prints the
# output
TO=$SERVER4
between() {
	local seconds=$1 rounds=$2
	shift 2
	on control timeout 30 "$BIN/fwlab" measure --seconds "$seconds" --rounds "$rounds" \
		--client-agent 10.9.1.2 --server-agent 10.9.2.2:19818 \
		--server-address "$TO" --key "$KEY" "$@" 2>&1
}
# controller - prints the process number of the controller
controller() {
	on control ss -Htnp 'dport = :19818' | grep -o 'pid=[0-9]*' | head -n 1 | cut -d = -f 2
}
# serves HOST - true if sockets of a load are open
serves() {
	[ -n "$(on "$1" ss -Hlnt 'sport < 100')" ]
}

"$BIN/fwlab" agent --make-key "$KEY" >/dev/null
same "a new key is its owner's" 600 "$(stat --format %a "$KEY")"
same "it is not made anew" 1 "$("$BIN/fwlab" agent --make-key "$KEY" >/dev/null 2>&1; echo $?)"
cp "$KEY" "$WORK/open"
chmod 644 "$WORK/open"
"$BIN/fwlab" agent --key "$WORK/open" --listen 127.0.0.1:0 >"$WORK/said" 2>&1
same "a key that others can read" 1 $?
holds "what to do is said" grep -q "chmod 600 $WORK/open" "$WORK/said"

start agent-control control "$BIN/fwlab" agent --key "$KEY"
await 5 grep -q ready "$WORK/agent-control.log" || die "no agent: $(cat "$WORK/agent-control.log")"
same "an agent listens on loopback unless told otherwise" 127.0.0.1:19818 \
	"$(on control ss -Hlnt 'sport = :19818' | awk '{ print $4 }')"
stop agent-control
agent client
agent server
watch_words
between 0.3 1 --traffic rr --transport tcp --json "$WORK/rr.json" >"$WORK/said" || cat "$WORK/said"
same "requests and answers" "('wire', True, True)" \
	"$(said "$WORK/rr.json" \
	'(run["mode"], run["complete"], all(s["value"] > 0 and s["latency"] for s in run["series"][0]["points"][0]["samples"]))')"
same "both machines are described" "[('client', True), ('server', True)]" \
	"$(said "$WORK/rr.json" \
	'[(a["end"], a["environment"]["kernel"] == run["environment"]["kernel"]) for a in run["agents"]]')"
same "and the way" "('wire', 1500, True)" \
	"$(said "$WORK/rr.json" \
	'[(t["name"], t["mtu"], "client eth0" in str(t["offloads"])) for t in run["topologies"]][0]')"
holds "the result can be compared" "$BIN/fwlab" compare "$WORK/rr.json" "$WORK/rr.json"
holds "and reported" sh \
	-c "'$BIN/fwlab' report --markdown '$WORK/rr.json' | grep -q 'Machine of the server'"
between 0.1 1 --traffic both --transport tcp --json "$WORK/load.json" >"$WORK/said" ||
	cat "$WORK/said"
same "bytes both ways" "(True, True)" \
	"$(said "$WORK/load.json" \
	'(run["complete"], run["series"][0]["points"][0]["samples"][0]["value"] > 0)')"
if command -v iperf3 >/dev/null; then
	between 1 1 --traffic iperf3 --transport tcp --json "$WORK/load.json" >"$WORK/said" ||
		cat "$WORK/said"
	same "iperf3 at both ends" "(True, True)" \
		"$(said "$WORK/load.json" \
		'(run["complete"], "iperf3" in run["agents"][1]["environment"]["programs"])')"
fi
TO=$SERVER6 between 0.1 1 --traffic ping --transport udp --size 8 --ip 6 --json "$WORK/load.json" \
	>"$WORK/said" || cat "$WORK/said"
same "datagrams, over IPv6" "(True, 'inet6')" \
	"$(said "$WORK/load.json" '(run["complete"], run["series"][0]["load"]["family"])')"
# Frames have benchmark addresses, so the gateway needs routes for them.
on gateway ip route add 198.19.0.0/16 via "$SERVER4"
on gateway ip route add 198.18.0.0/16 via "$CLIENT4"
NEXT=$(link_address gateway lan0)
frames() {
	between "$@" --engine packet --client-if eth0 --server-if eth0 --next-link "$NEXT"
}
frames 0.2 1 --rate 2000 --json "$WORK/frames.json" >"$WORK/said" || cat "$WORK/said"
same "frames" "('raw', True, True)" \
	"$(said "$WORK/frames.json" \
	'(run["series"][0]["load"]["kind"], run["complete"], run["series"][0]["points"][0]["samples"][0]["counts"]["received"] > 0)')"
same "no clock says how long they were under way" None \
	"$(said "$WORK/frames.json" 'run["series"][0]["points"][0]["samples"][0]["latency"]')"
# searching TEST ARGUMENT... - runs a search with frames between the agents
searching() {
	on control timeout 60 "$BIN/fwlab" search "$@" --client-agent 10.9.1.2 --server-agent \
		10.9.2.2 --key "$KEY" \
		--engine packet --client-if eth0 --server-if eth0 --next-link "$NEXT" --link 1e6 \
		--no-pauses --json 2>&1
}
searching throughput --size 64,512 --seconds 0.3 --result "$WORK/search.run" >"$WORK/search"
same "a search between agents, with frames of two sizes" \
	"[('wire', 64, True), ('wire', 512, True)]" \
	"$(said "$WORK/search" \
	'[(one["mode"], one["setting"]["size"], sum(trial["received"] for trial in one["trials"]) > 0) for one in run]')"
same "both machines are in its file" "['client', 'server']" \
	"$(said "$WORK/search.run" '[agent["end"] for agent in run["agents"]]')"
searching system-recovery --throughput 1000 --seconds 0.3 >"$WORK/search"
same "a rate that changes within a trial" "(True, 3)" \
	"$(said "$WORK/search" '(run["complete"], len(run["result"]["times"]))')"
searching latency >"$WORK/said"
same "no latency by two clocks" 1 $?
holds "why is said" grep -q "does not compare the clocks of two machines" "$WORK/said"
stop words
same "trials of sockets and frames, what was said in them, and that it was heard besides" \
	"True 0 True" \
	"$(python3 "$HERE/control-words.py" "$WORK/words" "$WORK/agent-client.log")"
on gateway ip route del 198.19.0.0/16
frames 0.2 1 >"$WORK/said"
same "frames that do not come through" 1 $?
holds "that is said" grep -q "none of [0-9]* frames came through: --next-link" "$WORK/said"
same "nothing listens between measurements" "" "$(serves server && echo it does)"

# a stranger sends as much as a controller: a hello of 64 bytes and a proof of 48
head -c 112 /dev/urandom | on control timeout 3 nc -w 1 10.9.1.2 19818 >"$WORK/heard"
same "a stranger receives a hello, 64 bytes, and a refusal, 49 bytes" 113 \
	"$(stat --format %s "$WORK/heard")"
"$BIN/fwlab" agent --make-key "$WORK/wrong" >/dev/null
KEY=$WORK/wrong between 0.1 1 --traffic rr --transport tcp >"$WORK/said"
same "with another key" 1 $?
holds "the controller is told" grep \
	-q "client agent 10.9.1.2: the peer has another key" "$WORK/said"
holds "and so is the agent" grep -q "10.9.1.1:[0-9]* refused: the peer has another key" \
	"$WORK/agent-client.log"

# Peers of one host that are silent, or send single bytes slowly: they do not keep a controller out.
start silent server python3 -c 'import socket, sys, time
address = (sys.argv[1], 19818)
silent = [socket.create_connection(address) for _ in range(200)]
drip = socket.create_connection(address)
drip.settimeout(0.001)
begun = time.monotonic()
print("ready", flush=True)
while True:
    try:
        drip.sendall(b"x")
        while drip.recv(4096):
            pass
        break
    except TimeoutError:
        time.sleep(0.09)
    except OSError:
        break
print("dripped for", round(time.monotonic() - begun), flush=True)
time.sleep(60)' "$CLIENT4"
await 10 grep -q ready "$WORK/silent.log" || die "no strangers: $(cat "$WORK/silent.log")"
between 0.1 1 --traffic rr --transport tcp --json "$WORK/rr.json" >"$WORK/said" || cat "$WORK/said"
same "200 strangers keep no controller out" True "$(said "$WORK/rr.json" 'run["complete"]')"
holds "a handshake has a deadline for bytes that drip, too" \
	await 8 grep -q "dripped for [45]$" "$WORK/silent.log"
stop silent

between 0.2 200 --traffic rr --transport tcp --json "$WORK/lost.json" >"$WORK/lost" &
measuring=$!
await 15 grep -q '"incomplete_because": "[1-9]' "$WORK/lost.json" ||
	die "no round is done: $(cat "$WORK/lost")"
between 0.1 1 --traffic rr --transport tcp >"$WORK/said"
same "another controller meanwhile" 1 $?
holds "it is told who is served" grep \
	-q "client agent 10.9.1.2: the agent serves another controller, 10.9.1.1:[0-9]*: try again" \
	"$WORK/said"
stop agent-server KILL
wait $measuring
same "an agent that is killed in a trial" 1 $?
holds "which one is said" grep -q "fwlab: server agent 10.9.2.2:19818: the connection was closed" \
	"$WORK/lost"
same "what was measured before is kept" "(False, True, True)" \
	"$(said "$WORK/lost.json" \
	'(run["complete"], "server agent" in run["incomplete_because"], len(run["series"][0]["points"][0]["samples"]) > 0)')"

on gateway ip route add 198.19.0.0/16 via "$SERVER4"
agent server
searching mlr --seconds 30 >"$WORK/lost" &
measuring=$!
await 10 grep -q "trial 2 from\|is the controller now" "$WORK/agent-server.log"
sleep 2
stop agent-server KILL
wait $measuring
same "an agent that is killed in a search" 1 $?
holds "the search says which one" grep -q "server agent 10.9.2.2: the connection was closed" \
	"$WORK/lost"

if command -v iperf3 >/dev/null; then
	agent server
	between 30 1 --traffic iperf3 --transport tcp >"$WORK/said" &
	measuring=$!
	await 10 sh -c "ip netns exec $LAB-server ss -Hlnt 'sport = :5201' | grep -q ." ||
		die "no server of iperf3: $(cat "$WORK/said")"
	stop agent-server KILL
	wait $measuring
	same "an agent that is killed leaves no server of iperf3" "" \
		"$(await 5 sh \
		-c "! ip netns exec $LAB-server ss -Hlnt 'sport = :5201' | grep -q ." ||
		echo it does)"
fi

agent server
between 30 1 --traffic send --transport tcp >"$WORK/gone" &
measuring=$!
await 10 serves server
sleep 0.6
kill -KILL "$(controller)"
wait $measuring
holds "a controller that is killed is missed" await 10 grep \
	-q "connection ended: the connection was closed\|has disconnected" "$WORK/agent-server.log"
await 10 grep -q "trial 2 from" "$WORK/agent-client.log"
same "the server's sockets are gone" "" \
	"$(await 10 sh -c "! ip netns exec $LAB-server ss -Hlnt 'sport < 100' | grep -q ." ||
	echo they are not)"

between 0.2 200 --traffic rr --transport tcp --json "$WORK/cut.json" >"$WORK/said" &
measuring=$!
await 15 grep -q '"incomplete_because": "[1-9]' "$WORK/cut.json" ||
	die "no round is done, as if the one before were still served: $(cat "$WORK/said")"
kill -INT "$(controller)"
wait $measuring
same "a controller that is interrupted" 1 $?
same "keeps what there is" "(False, 'interrupted', True)" \
	"$(said "$WORK/cut.json" \
	'(run["complete"], run["incomplete_because"], len(run["series"][0]["points"][0]["samples"]) > 0)')"

between 30 1 --traffic rr --transport tcp >"$WORK/said" &
measuring=$!
await 10 serves server
sleep 0.6
stop agent-client INT
same "an agent that is interrupted ends well" 0 $?
wait $measuring
same "its controller" 1 $?
holds "is told" grep -q "client agent 10.9.1.2: the agent was interrupted" "$WORK/said"

printf 'fwlab-a\002' >"$WORK/hello"
printf '9.9.9' >>"$WORK/hello"
head -c 51 /dev/zero >>"$WORK/hello"
start other client python3 -c 'import socket, sys
listener = socket.create_server(("", 19818)); print("ready", flush=True)
agent, _ = listener.accept(); agent.sendall(open(sys.argv[1], "rb").read()); agent.recv(1000)' \
	"$WORK/hello"
await 5 grep -q ready "$WORK/other.log"
between 0.1 1 --traffic rr --transport tcp >"$WORK/said"
same "an agent of another version" 1 $?
holds "both versions are said" grep \
	-q "client agent 10.9.1.2: the peer is fwlab 9.9.9, this is fwlab [0-9.]*: install" "$WORK/said"
verdict
