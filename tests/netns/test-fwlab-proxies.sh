# The proxies of fwlab serve, deny, and refuse a wrong configuration. They end with the run, also if
# the run was killed.
# alone
# long: 40 s of a processor, 255 s beside five others
. "$(dirname "$0")/lab.sh"

# prints if a kind of load is complete, all its values, and its systems
WHOLE='(run["complete"], all(s["value"] > 0 for s in run["series"][0]["points"][0]["samples"]), [s["id"] for s in run["systems"]][3:])'

PROXIES=ftp-gw,ftp-gw-transparent
for traffic in ftp ftp-bulk; do
	for ip in 4 6; do
		measure --topology bridge --traffic $traffic --systems nft-flat,$PROXIES --clients \
			2 --rules 3 --transport tcp --ip $ip --size 1000 \
			--json "$WORK/talk.json" >"$WORK/said" || cat "$WORK/said"
		same "sockets, $traffic, IPv$ip" \
			"(True, True, ['nft-flat@3', 'ftp-gw@3', 'ftp-gw-transparent@3'])" \
			"$(said "$WORK/talk.json" "$WHOLE")"
	done
done
if command -v haproxy >/dev/null; then
	for traffic in rr crr both http ftp; do
		measure --topology proxy --traffic $traffic --systems haproxy --rules 3 \
			--transport tcp --ip 6 --json "$WORK/talk.json" >"$WORK/said" ||
			cat "$WORK/said"
		same "sockets by way of haproxy, $traffic" "(True, True, ['haproxy@3'])" \
			"$(said "$WORK/talk.json" "$WHOLE")"
	done
	# the functional check detects a proxy that forgets its rules, and one that does not listen
	# on an allowed port
	mkdir "$WORK/lax"
	printf '#!/bin/sh\nsed "$SPOILT" >"$0.conf"\nexec "%s" -q -db -f "$0.conf"\n' \
		"$(command -v haproxy)" >"$WORK/lax/haproxy"
	chmod +x "$WORK/lax/haproxy"
	for case in '/reject/d|a session begins at port 20000, although a rule blocks it' \
		'/:19999/d|no session begins at port 19999'; do
		PATH="$WORK/lax:$PATH" SPOILT=${case%|*} measure --systems haproxy --traffic http \
			--transport tcp --rules 3 >"$WORK/said"
		same "haproxy without ${case%|*}" 1 $?
		holds "what is wrong is said" grep -q "haproxy: ${case#*|}" "$WORK/said"
	done
else
	echo "left out here: haproxy"
fi
# the same for both configurations of ftp-gw
mkdir "$WORK/lab"
ln -s "$(readlink -f "$BIN")/pfctl" "$(readlink -f "$BIN")/skipstepd" "$WORK/lab/"
cp "$BIN/fwlab" "$WORK/lab/"
printf '#!/bin/sh\nsed s/deny/allow/ >"$0.conf"\nexec "%s" -d -D 3 -f "$0.conf"\n' \
	"$(readlink -f "$BIN")/ftp-gw" >"$WORK/lab/ftp-gw"
chmod +x "$WORK/lab/ftp-gw"
for gateway in ftp-gw ftp-gw-transparent; do
	"$WORK/lab/fwlab" measure --rounds 1 --systems $gateway --traffic ftp --transport tcp \
		--rules 3 >"$WORK/said" 2>&1
	same "$gateway without what its rules deny" 1 $?
	holds "what is wrong is said" grep \
		-q "$gateway: a session begins at port 20000, although a rule blocks it" "$WORK/said"
done
measure --topology proxy --systems nft-flat --traffic ftp --transport tcp >"$WORK/said"
same "a filter is no proxy" 1 $?
holds "that is said" grep -q "nft-flat: not available in the topology proxy" "$WORK/said"
measure --systems ftp-gw --traffic http --transport tcp >"$WORK/said"
same "pages by way of ftp-gw" 1 $?
holds "that is said" grep -q "ftp-gw: does not forward http over tcp" "$WORK/said"

mkdir "$WORK/fake"
printf '#!/bin/sh\ncat >/dev/null\necho no such key >&2\nexit 1\n' >"$WORK/fake/haproxy"
chmod +x "$WORK/fake/haproxy"
PATH="$WORK/fake:$PATH" measure --systems haproxy --traffic http --transport tcp >"$WORK/said"
same "a proxy that refuses its configuration" 1 $?
holds "why is said" grep -q "haproxy: no such key" "$WORK/said"
"$BIN/fwlab" measure --rounds 1000 --systems $PROXIES --traffic ftp --transport tcp --json \
	"$WORK/cut.json" >"$WORK/cut" 2>&1 &
process=$!
await 20 grep -q '"incomplete_because": "[1-9]' "$WORK/cut.json" ||
	die "no round is done: $(cat "$WORK/cut")"
kill -KILL $process
wait $process 2>/dev/null
at_least 2 "gateways of a killed run" "$(ip netns list | grep -c "^fwlab-$process-ftp-gw.*-device")"
"$BIN/fwlab" raw --seconds 0.05 >/dev/null
same "after the next run" 0 "$(ip netns list | grep -c "^fwlab-$process-")"

verdict
