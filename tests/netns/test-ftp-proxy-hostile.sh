# Hostile clients of ftp-proxy, slow ones, and too many: each is served or disconnected, and others
# are served.
# long: 17 s of a processor, 62 s beside five others
. "$(dirname "$0")/ftpproxy.sh"
proxied

# as many sessions as the limit of open files allows, if it cannot be raised
MANY=$(($(ulimit -Hn) / 2 - 100))
[ $MANY -lt 10000 ] || MANY=10000
proxy proxy -m $((MANY + 60))
start naive server python3 "$HERE/naive_ftp.py" serve
await 10 listening server tcp 21 || die "no FTP server: $(cat "$WORK/naive.log")"

# naive ACT [NUMBER] - acts as a client of naive_ftp.py; prints the reply codes
naive() {
	on client python3 "$HERE/naive_ftp.py" "$1" "$SERVER4" "${2:--}"
}
# first, because the proxy ends these connections, and the same port pairs cannot be used again for
# a minute
same "$MANY sessions that nobody has logged in to, and another" "$MANY 200 226 425" \
	"$(naive idle $MANY)"
same "a data connection, and no second one" "200 226 425" "$(naive once)"
same "a port of services" " " "$(naive service)"
same "lines that are none" "" "$(naive malformed)"
same "50 clients that read nothing, and another" "50 200 226 425" "$(naive deaf)"
holds "no rules of hostile ones" await 2 no_rules_left
verdict
