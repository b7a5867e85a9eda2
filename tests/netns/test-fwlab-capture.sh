# A client and a server communicate while tcpdump captures. The workload that fwlab makes from the
# capture transfers the same bytes at the same times.
. "$(dirname "$0")/lab.sh"
command -v tcpdump >/dev/null || unable "no tcpdump"
gateway_between_client_and_server

start answer server "$BIN/fwlab" answer 80 5353
await 5 grep -q ready "$WORK/answer.log" || die "nobody answers: $(cat "$WORK/answer.log")"
# capture NAME - captures the server's packets
capture() {
	start "$1" server tcpdump -n --immediate-mode -U -s 96 -i eth0 -w "$WORK/$1.pcap" \
		'tcp or udp'
	await 5 grep -q "listening on" "$WORK/$1.log" || die "no capture: $(cat "$WORK/$1.log")"
}
# derived NAME [ARGUMENT...] - prints the workload of a capture
derived() {
	"$BIN/fwlab" workload --from "$WORK/$1.pcap" "${@:2}"
}

capture first
on client "$BIN/fwlab" converse tcp "$SERVER4:80" --sends 3000 --gets 200000 --stays 0.3 ||
	die "no conversation"
sleep 1.2
on client "$BIN/fwlab" converse udp "$SERVER4:5353" --sends 90 --gets 3000 --datagrams 3 ||
	die "no datagrams"
on client "$BIN/fwlab" converse tcp "$SERVER4:80" || die "no connection"
sleep 0.2
stop first
derived first >"$WORK/workload"
same "conversations" 3 "$(grep -c converse "$WORK/workload")"
holds "bytes of TCP both ways, though packets were cut off" \
	grep -q "converse tcp $SERVER4:80 --stays 0.3[0-9]* --sends 3000 --gets 200000\"" \
	"$WORK/workload"
holds "datagrams" grep -q "converse udp $SERVER4:5353 .*--sends 90 --gets 3000 --datagrams 3\"" \
	"$WORK/workload"
holds "a connection without a word, in the second after" grep \
	-q "converse tcp $SERVER4:80 --after 0\.[0-9]*\( --stays [0-9.]*\)\?\"" "$WORK/workload"
holds "who answers" grep -q "^# Their server is: fwlab answer 80 5353" "$WORK/workload"

capture again
ln -s "$BIN/fwlab" "$WORK/fwlab"
PATH=$WORK:$PATH on client "$BIN/fwlab" workload --json "$WORK/workload" >"$WORK/outcome.json"
same "it is run" 0 $?
sleep 0.2
stop again
# bytes WORKLOAD - its conversations without their times, and in no order: two begin within 0.1 s
bytes() {
	grep -o 'converse [a-z]* [^"]*' "$1" | sed 's/ --\(after\|stays\) [0-9.]*//g' | sort
}
derived again >"$WORK/second"
same "and what it says is the same" "$(bytes "$WORK/workload")" "$(bytes "$WORK/second")"
same "the second one began a second later" 1 \
	"$(python3 \
	-c 'import json, sys; one = json.load(open(sys.argv[1]))["executed"]; print(round(one[-1]["start"] - one[0]["start"]))' "$WORK/outcome.json")"
same "another server" 3 "$(derived first --server 192.0.2.9 | grep -c " 192.0.2.9:")"

head -c 300 /dev/urandom >"$WORK/noise.pcap"
derived noise >"$WORK/said" 2>&1
same "what is no capture" 1 $?
holds "is said" grep -q "noise.pcap: not a pcap file" "$WORK/said"
verdict
