# SCTP through the gateway: ports in rules and states, translation, and errors, with packets that
# the test builds itself. If the kernel has SCTP, also associations of real hosts.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers
peer d4 lan0 client 192.168.100.10

# Packets have a tag and a chunk: 1 is INIT, 2 its answer, 10 and 11 the cookie and its answer.
packets() {
	rules <<-END
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass proto sctp from any port >= 1024 to any port 3868
	END
	converse <<-END
		# ports in rules and states
		client sends c4 s4 sctp 40000 3868 0 1
		server hears c4 s4 sctp 40000 3868 0 1
		server sends s4 c4 sctp 3868 40000 7 2
		client hears s4 c4 sctp 3868 40000 7 2
		client sends 5 times c4 s4 sctp 40000 3868 9 10
		server hears 5 times c4 s4 sctp 40000 3868 9 10
		server sends 5 times s4 c4 sctp 3868 40000 7 11
		client hears 5 times s4 c4 sctp 3868 40000 7 11
		client sends c6 s6 sctp 40000 3868 0 1
		server hears c6 s6 sctp 40000 3868 0 1
		server sends s6 c6 sctp 3868 40000 7 2
		client hears s6 c6 sctp 3868 40000 7 2
		# other ports
		client sends c4 s4 sctp 40000 3869 0 1
		client sends c4 s4 sctp 1000 3868 0 1
		client sends c4 s4 sctp 3868 1000 0 1
		client sends c6 s6 sctp 40000 3869 0 1
		server sends s4 c4 sctp 3868 40001 7 2
		server sends s6 c6 sctp 3868 40001 7 2
		# an error about an association, and about another
		server sends s4 c4 icmp 3 1 about c4 s4 sctp 40000 3868
		client hears s4 c4 icmp 3 1 about c4 s4 sctp 40000 3868
		server sends s4 c4 icmp 3 1 about c4 s4 sctp 40001 3868
		server sends s6 c6 icmp 1 3 about c6 s6 sctp 40000 3868
		client hears s6 c6 icmp 1 3 about c6 s6 sctp 40000 3868
		server sends s6 c6 icmp 1 3 about c6 s6 sctp 40001 3868
	END

	# addresses are translated, ports stay; scrub has no effect
	rules <<-END
		scrub in all
		nat on wan0 inet6 proto sctp from any to any port 3868 -> (wan0:0)
		match out on wan0 inet proto sctp from any to any port 3868 nat-to (wan0)
		match in on wan0 inet proto sctp to (wan0) port 3868 rdr-to 192.168.100.9 port 4321
		pass
	END
	converse <<-END
		# behind nat-to
		client sends c4 s4 sctp 40000 3868 0 1
		server hears w4 s4 sctp 40000 3868 0 1
		server sends s4 w4 sctp 3868 40000 7 2
		client hears s4 c4 sctp 3868 40000 7 2
		client sends 5 times c4 s4 sctp 40000 3868 9 10
		server hears 5 times w4 s4 sctp 40000 3868 9 10
		client sends c6 s6 sctp 40000 3868 0 1
		server hears w6 s6 sctp 40000 3868 0 1
		server sends s6 w6 sctp 3868 40000 7 2
		client hears s6 c6 sctp 3868 40000 7 2
		# another client with the same ports would have the same answers
		client sends d4 s4 sctp 40000 3868 0 1
		client sends d4 s4 sctp 40001 3868 0 1
		server hears w4 s4 sctp 40001 3868 0 1
		# an error gets back the client's address
		server sends s4 w4 icmp 3 1 about w4 s4 sctp 40001 3868
		client hears s4 d4 icmp 3 1 about d4 s4 sctp 40001 3868
		# redirected, to the same port
		server sends s4 w4 sctp 50000 3868 0 1
		client hears s4 c4 sctp 50000 3868 0 1
		client sends 5 times c4 s4 sctp 3868 50000 7 2
		server hears 5 times w4 s4 sctp 3868 50000 7 2
	END

	# without a port in any rule, ports are not compared
	rules <<-END
		block
		pass inet proto sctp
	END
	converse <<-END
		# no ports
		client sends c4 s4 sctp 40000 3868 0 1
		server hears c4 s4 sctp 40000 3868 0 1
		server sends s4 c4 sctp 1 2 7 2
		client hears s4 c4 sctp 1 2 7 2
	END
	same "$MODE: states without ports" 2 "$(state_count gateway ' sctp [0-9.]* \(<-\|->\) [0-9.]* ')"
}
in_every_mode packets

# Real hosts: a greeting from the server, and an echo.
cat >"$WORK/associate.py" <<'END_OF_PROGRAM'
import socket, sys
IPPROTO_SCTP = 132
def endpoint(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.socket(family, socket.SOCK_STREAM, IPPROTO_SCTP)
if sys.argv[1] == "serve":
    listener = endpoint(sys.argv[2])
    listener.bind((sys.argv[2], 3868))
    listener.listen()
    print("ready", flush=True)
    while True:
        peer, (address, *_) = listener.accept()
        peer.sendall(address.encode())
        peer.sendall(peer.recv(100))
        peer.recv(100) # until it ends
        peer.close()
s = endpoint(sys.argv[2])
s.settimeout(3)
s.bind((sys.argv[2], 0))
try:
    s.connect((sys.argv[3], int(sys.argv[4])))
    print(s.recv(100).decode(), end=" ")
    s.sendall(b"hello")
    print(s.recv(100).decode())
except TimeoutError:
    print("no answer")
except OSError as error:
    print(error.strerror)
END_OF_PROGRAM
on client python3 -c 'import socket; socket.socket(type=socket.SOCK_STREAM, proto=132)' \
	2>/dev/null || {
	echo "left out: associations, for this kernel has no SCTP"
	verdict
}
for address in "$SERVER4" "$SERVER6"; do
	start "associate-$address" server python3 "$WORK/associate.py" serve "$address"
	await 5 grep -q ready "$WORK/associate-$address.log" || die "no server of SCTP at $address"
done
# seen_by_server FROM TO PORT
seen_by_server() {
	on client python3 "$WORK/associate.py" associate "$@"
}
SETTINGS='' # SCTP takes the slow path
rules <<-END
	block
	pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
	pass proto sctp to port 3868
END
same "an association" "$CLIENT4 hello" "$(seen_by_server $CLIENT4 $SERVER4 3868)"
same "over IPv6" "$CLIENT6 hello" "$(seen_by_server $CLIENT6 $SERVER6 3868)"
same "to another port" "no answer" "$(seen_by_server $CLIENT4 $SERVER4 3869)"
rules <<-END
	pass
	match out on wan0 inet proto sctp to port 3868 nat-to (wan0)
	match out on wan0 inet6 proto sctp to port 3868 nat-to (wan0:0)
	match in on lan0 inet proto sctp to 192.168.10.77 port 3868 rdr-to $SERVER4
END
same "behind nat-to" "192.168.10.81 hello" "$(seen_by_server $CLIENT4 $SERVER4 3868)"
same "over IPv6" "2001:db8:10::81 hello" "$(seen_by_server $CLIENT6 $SERVER6 3868)"
same "redirected" "192.168.10.81 hello" "$(seen_by_server $CLIENT4 192.168.10.77 3868)"
verdict
