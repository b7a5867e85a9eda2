# What the tests of ftpsesame share. Sourced by them, behind lab.sh.

command -v lftp >/dev/null || unable "no lftp here"
command -v tnftp >/dev/null || unable "no tnftp here"

# files - what is fetched
files() {
	local number
	mkdir -p "$WORK/ftp/many"
	head -c 5M /dev/urandom >"$WORK/ftp/large"
	WANTED=$(sha256sum <"$WORK/ftp/large")
	for number in $(seq 10); do echo "file $number" >"$WORK/ftp/many/$number"; done
}

# watched HOST INNER OUTER - filters there: FTP from the side of one interface to that of the other; starts ftpsesame
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

# sesame HOST [OPTION...]
sesame() {
	local host=$1
	shift
	FILTER=$host
	start sesame "$host" "$BIN/ftpsesame" -d -D 6 "$@"
	await 3 told "watching pflog1" || die "no ftpsesame: $(cat "$WORK/sesame.log")"
}

# told TEXT - whether ftpsesame said so
told() {
	grep -q -- "$1" "$WORK/sesame.log"
}

rules_left() {
	pf "$FILTER" -a '*' -sr | grep -c ' once'
}

no_rules_left() {
	[ "$(rules_left)" = 0 ]
}

rules_in_force() {
	! no_rules_left
}

# fetch ADDRESS CURL_OPTION... - of the large file, by curl
fetch() {
	local address=$1
	shift
	case $address in *:*) address="[$address]" ;; esac
	on client curl --silent --noproxy '*' --max-time 20 "$@" "ftp://$address/large" | sha256sum
}

# sessions WHERE - what clients do, in every way there is
sessions() {
	local address name passive flag
	for address in "$SERVER4" "$SERVER6"; do
		case $address in *:*) name="[$address]" ;; *) name=$address ;; esac
		same "$1: curl, passive, $address" "$WANTED" "$(fetch "$address")"
		same "$1: curl, active, $address" "$WANTED" "$(fetch "$address" --ftp-port -)"
		for flag in -p -A; do
			on client tnftp "$flag" -q 20 -o "$WORK/tnftp" "ftp://$name/large" >"$WORK/tnftp.log" 2>&1
			same "$1: tnftp $flag, $address" "$WANTED" "$(sha256sum <"$WORK/tnftp")"
			rm -f "$WORK/tnftp"
		done
	done
	same "$1: PASV" "$WANTED" "$(fetch "$SERVER4" --disable-epsv)"
	same "$1: PORT" "$WANTED" "$(fetch "$SERVER4" --ftp-port - --disable-eprt)"
	for passive in true false; do
		rm -rf "$WORK/many" "$WORK"/ftp/upload/*
		on client env -u ftp_proxy lftp -c "
			set ftp:passive-mode $passive; set net:timeout 5; set net:max-retries 2
			open ftp://$SERVER4
			ls
			mirror --parallel=2 many $WORK/many
			put -O upload $WORK/ftp/large -o large" >"$WORK/lftp.log" 2>&1
		same "$1: a listing, passive $passive" 1 "$(grep -c ' large$' "$WORK/lftp.log")"
		same "$1: many files, passive $passive" "" "$(diff -r "$WORK/ftp/many" "$WORK/many" 2>&1)"
		same "$1: an upload, passive $passive" "$WANTED" "$(sha256sum <"$WORK/ftp/upload/large")"
	done
	holds "$1: no rules after the sessions" await 2 no_rules_left
}

# both_servers WHERE - the sessions with each
both_servers() {
	ftp_server server
	sessions "$1, vsftpd"
	stop ftp-server
	ftp_server server pure-ftpd
	sessions "$1, pure-ftpd"
	stop ftp-server
}
