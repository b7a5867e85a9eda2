# Common parts of the tests of FTP: sessions with real servers and clients. A test sets $FILTER to
# the host of the filter, and $RULE to a pattern that a rule of a data connection matches.
. "$(dirname "$0")/lab.sh"

command -v lftp >/dev/null || unable "no lftp here"
command -v tnftp >/dev/null || unable "no tnftp here"

# files - makes the files to fetch
files() {
	local number
	mkdir -p "$WORK/ftp/many"
	head -c 8M /dev/urandom >"$WORK/ftp/large"
	WANTED=$(sha256sum <"$WORK/ftp/large")
	for number in $(seq 10); do echo "file $number" >"$WORK/ftp/many/$number"; done
}

rules_left() {
	pf "$FILTER" -a '*' -sr | grep -c -- "$RULE"
}

no_rules_left() {
	[ "$(rules_left)" = 0 ]
}

rules_in_force() {
	! no_rules_left
}

# fetch ADDRESS CURL_OPTION... - fetches the large file by curl
fetch() {
	local address=$1
	shift
	case $address in *:*:*) address="[$address]" ;; esac
	on client curl --silent --noproxy '*' --max-time 30 "$@" "ftp://$address/large" | sha256sum
}

# sessions WHERE - checks each kind of session of clients
sessions() {
	local address name passive flag
	for address in "$SERVER4" "$SERVER6"; do
		case $address in *:*) name="[$address]" ;; *) name=$address ;; esac
		same "$1: curl, passive, $address" "$WANTED" "$(fetch "$address")"
		same "$1: curl, active, $address" "$WANTED" "$(fetch "$address" --ftp-port -)"
		for flag in -p -A; do
			on client tnftp "$flag" -q 30 -o "$WORK/tnftp" "ftp://$name/large" \
				>"$WORK/tnftp.log" 2>&1
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
		same "$1: many files, passive $passive" "" \
			"$(diff -r "$WORK/ftp/many" "$WORK/many" 2>&1)"
		same "$1: an upload, passive $passive" "$WANTED" \
			"$(sha256sum <"$WORK/ftp/upload/large")"
	done
	head -c 3M "$WORK/ftp/large" >"$WORK/part"
	on client curl --silent --noproxy '*' --max-time 30 -C - -o "$WORK/part" \
		"ftp://$SERVER4/large"
	same "$1: a download that goes on where it was" "$WANTED" "$(sha256sum <"$WORK/part")"
	holds "$1: no rules after the sessions" await 2 no_rules_left
}

# aborts WHERE - aborts a transfer and begins another one. Not for pure-ftpd without a proxy that
# rewrites: if it sees an ABOR with an urgent last byte in time, it discards the ABOR and does not
# answer.
aborts() {
	same "$1: a transfer that is aborted, and the next" "file 1" \
		"$(on client python3 "$HERE/naive_ftp.py" abort "$SERVER4" -)"
}

# huge WHERE - fetches a file of FTP_BYTES bytes (1G on a machine with the time), sparse, with data
# at both ends
huge() {
	local size=${FTP_BYTES:-100M}
	head -c 1M /dev/urandom >"$WORK/ftp/huge"
	truncate --size "$size" "$WORK/ftp/huge"
	head -c 1M /dev/urandom >>"$WORK/ftp/huge"
	same "$1: a download of $size" "whole" \
		"$(on client curl --silent --noproxy '*' --max-time 300 "ftp://$SERVER4/huge" |
		cmp - "$WORK/ftp/huge" && echo whole)"
	rm "$WORK/ftp/huge"
}

# both_servers WHERE - runs the sessions with each server
both_servers() {
	ftp_server server
	sessions "$1, vsftpd"
	aborts "$1, vsftpd"
	stop ftp-server
	ftp_server server pure-ftpd
	sessions "$1, pure-ftpd"
	stop ftp-server
}
