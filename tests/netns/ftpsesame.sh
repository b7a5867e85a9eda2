# Common parts of the tests of ftpsesame.
. "$(dirname "$0")/ftp.sh"
RULE=' once'

# watched HOST INNER OUTER - filters on HOST: FTP from the side of one interface to the side of the
# other; starts ftpsesame
watched() {
	filter "$1" <<-END_OF_RULES
		block
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		anchor "ftpsesame/*"
		# clients are so near here that they would connect before there is a rule
		pass in log (all, to pflog1) on $2 proto tcp to port 21 set delay 40
		pass out on $3 proto tcp to port 21
	END_OF_RULES
	daemon "$1"
	sesame "$1"
}

# sesame HOST [OPTION...] - starts ftpsesame
sesame() {
	local host=$1
	shift
	FILTER=$host
	start sesame "$host" "$BIN/ftpsesame" -d -D 6 "$@"
	await 3 told "watching pflog1" || die "no ftpsesame: $(cat "$WORK/sesame.log")"
	holds "system calls of the worker are filtered" await 3 \
		confined "$(pgrep --parent "${PROCESSES[sesame]}")"
}

# told TEXT - true if ftpsesame has printed TEXT
told() {
	grep -q -- "$1" "$WORK/sesame.log"
}
