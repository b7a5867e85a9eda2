# Clients of ftp-proxy that are hostile, slow, or too many: each is heard out or cut off, and others
# are served.
# long: 17 s of a processor, 62 s beside five others
. "$(dirname "$0")/lab.sh"
. "$HERE/ftpproxy.sh"
lab_begin
proxied

# as many sessions as it can have files for, on a machine that will not have it raise that
MANY=$(($(ulimit -Hn) / 2 - 100))
[ $MANY -lt 10000 ] || MANY=10000
proxy proxy -m $((MANY + 60))
start naive server python3 "$HERE/naive_ftp.py" serve
await 10 listening server tcp 21 || die "no FTP server: $(cat "$WORK/naive.log")"

# naive ACT [NUMBER] - a client's part in naive_ftp.py; what it hears
naive() {
	on client python3 "$HERE/naive_ftp.py" "$1" "$SERVER4" "${2:--}"
}
# first, since of connections that the proxy has ended the same two ends cannot begin another for a
# minute
same "$MANY sessions that nobody has logged in to, and another" "$MANY 200 226 425" \
	"$(naive idle $MANY)"
same "a data connection, and no second one" "200 226 425" "$(naive once)"
same "a port of services" " " "$(naive service)"
same "lines that are none" "" "$(naive malformed)"
same "50 clients that read nothing, and another" "50 200 226 425" "$(naive deaf)"
holds "no rules of hostile ones" await 2 no_rules_left
verdict
