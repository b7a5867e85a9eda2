# ftpsesame opens the filter for a data connection once, between the two hosts of the session, and
# for a short time. The test has a server without checks, and peers that try to open the filter for
# other connections.
# long: 19 s of a processor, 100 s beside five others
. "$(dirname "$0")/ftpsesame.sh"
gateway_between_client_and_server
watched gateway lan0 wan0

# "another host" is a second address of the client's
OTHER4=192.168.100.9
on client ip address add "$OTHER4/24" dev eth0
start naive server python3 "$HERE/naive_ftp.py" serve
await 10 listening server tcp 21 || die "no FTP server: $(cat "$WORK/naive.log")"

# naive ACT... - acts as a client of naive_ftp.py; prints the reply codes
naive() {
	on client python3 "$HERE/naive_ftp.py" "$1" "$SERVER4" "$OTHER4"
}

same "a data connection, and no second one" "200 226 425" "$(naive once)"
same "the server is not sent to another host" "200 425" "$(naive bounce)"
holds "that is told of" told "not opened for $OTHER4:20000: another host's address"
same "nor to a port of services" "200 425" "$(naive service)"
holds "that is told of, too" told "not opened for $CLIENT4:22: a port of services"
same "a segment that says something else in the same place" "200 425" "$(naive replay)"
holds "ends the watch" told "given up: two segments disagree"
same "a command that somebody slips in, of the same connection" "" "$(naive slip)"
holds "opens nothing for another host" told "not opened for $OTHER4:20001: another host's address"
same "and ends the watch" 2 "$(grep -c "given up: two segments disagree" "$WORK/sesame.log")"
same "EPSV ALL is taken at its word" "200 200 425" "$(naive all)"
holds "that is told of as well" told "not opened for $CLIENT4:20000: after EPSV ALL"
same "lines that are none" "" "$(naive malformed)"
holds "end the watch" told "given up: a CR within a line"
same "a data connection after them" "200 226 425" "$(naive once)"
holds "no rules after all that" await 2 no_rules_left

# the filter is open as long as the session, or the configured time
hold() {
	start hold client python3 "$HERE/naive_ftp.py" hold "$SERVER4" "$OTHER4"
	await 5 rules_in_force
	same "rules for a connection that does not come" 2 "$(rules_left)"
}
hold
stop hold
holds "no rules after their session" await 2 no_rules_left
hold
on gateway pkill -KILL --parent "${PROCESSES[sesame]}"
holds "no rules after the worker was killed" await 1 no_rules_left
wait "${PROCESSES[sesame]}"
same "and its guardian has given up" 1 $?
unset "PROCESSES[sesame]"
stop hold
sesame gateway
hold
stop sesame KILL
holds "no rules after the guardian was killed" await 1 no_rules_left
stop hold
sesame gateway -e 1
hold
holds "no rules after their time" await 4 no_rules_left
stop hold
stop sesame

# more connections without an answer than ftpsesame keeps
sesame gateway
naive flood
holds "those that were silent longest are let go" await 10 told "more than 10000 connections"
same "a data connection behind them" "200 226 425" "$(naive once)"
stop sesame

# more answered connections than a machine has, and clients that do not read: no packet is held back
# for them
MANY=$(($(ulimit -Hn) - 1000))
[ $MANY -lt 10000 ] || MANY=10000
filter gateway <<'END_OF_RULES'
block
anchor "ftpsesame/*"
pass in log (all, to pflog1) on lan0 inet proto tcp to port 21
pass out on wan0 inet proto tcp to port 21
END_OF_RULES
sesame gateway -m $((MANY + 60))
crowd() {
	on client python3 "$HERE/naive_ftp.py" "$1" "$SERVER4" "$2"
}
same "a data connection beside $MANY sessions" "$MANY 200 226 425" "$(crowd idle $MANY)"
same "all of them were watched" "" "$(grep "were dropped" "$WORK/sesame.log")"
same "a data connection beside 50 clients that read nothing" "50 200 226 425" "$(crowd deaf -)"
# none, except on a machine that is too busy to read the log
echo "records of the log that were lost: $(pf gateway --json -si | grep -o '"log_lost": *[0-9]*' |
	grep -o '[0-9]*$')"
verdict
