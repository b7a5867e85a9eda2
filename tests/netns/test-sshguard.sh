# sshguard blocks an attacker with its own backend for pf, unchanged: one command kills the states
# of the address and adds the address to the table.
#
#   client ----------------- gateway (sshguard) ----------------- server
#                  lan0                          wan0
. "$(dirname "$0")/lab.sh"
folder=$(unpacked sshguard)/usr/libexec/sshguard || unable "sshguard cannot be had here"
[ -x "$folder/sshg-fw-pf" ] || unable "this sshguard has no backend for pf"
gateway_between_client_and_server
GATEWAY4=192.168.100.1
web gateway 22
echo_server gateway 7
filter gateway <<-'END'
	set skip on lo
	table <sshguard> persist
	pass
	block in from <sshguard>
END

mkfifo "$WORK/messages"
# the pipeline of /usr/sbin/sshguard; a block lasts 1 s at least
start sshguard gateway env PATH="$BIN:$PATH" sh -c \
	'"$1/sshg-parser" <"$2" | "$1/sshg-blocker" -a 20 -p 1 -s 600 | "$1/sshg-fw-pf"' \
	sh "$folder" "$WORK/messages"
exec 7>"$WORK/messages"
# fails ADDRESS - reports a failed login to sshguard
fails() {
	echo "$(LC_ALL=C date '+%b %e %H:%M:%S') gateway sshd[7]: Failed password for root" \
		"from $1 port 4000 ssh2" >&7
}
blocked() {
	pf gateway -t sshguard -T show | grep -qw "$1"
}
released() {
	! blocked "$1"
}

same "before the attack" passed "$(probe_web client $GATEWAY4 22)"
same "a datagram before it" passed "$(probe_udp client $GATEWAY4 7)"
at_least 1 "states of the client" "$(state_count gateway $CLIENT4)"
for _ in 1 2 3; do
	fails $CLIENT4
done
await 10 blocked $CLIENT4 || die "no block: $(cat "$WORK/sshguard.log")"
same "states of the client, killed" 0 "$(state_count gateway $CLIENT4)"
same "after the attack" "no answer" "$(probe_web client $GATEWAY4 22)"
same "the table" "-pa-r-- sshguard" "$(pf gateway -sT -v | xargs)"
# sshguard looks for expired blocks at random times
await 20 released $CLIENT4 || die "no release: $(cat "$WORK/sshguard.log")"
same "after the block" passed "$(probe_web client $GATEWAY4 22)"
exec 7>&-
stop sshguard
same "messages of pfctl" "" "$(grep pfctl "$WORK/sshguard.log")"
verdict
