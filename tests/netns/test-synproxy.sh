# synproxy state and syncookies with real programs: a server behind the gateway, and one on the
# gateway itself, in both families. Every transfer is complete.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80
web gateway 81
head -c 5M /dev/urandom >"$WORK/www/random"
want=$(sha256sum <"$WORK/www/random")
# try WHAT - fetches a large file from each server
try() {
	local a
	for a in "$SERVER4:80" "[$SERVER6]:80" "192.168.100.1:81" "[2001:db8:100::1]:81"; do
		same "$1 $a" "$want" \
			"$(on client curl --silent --noproxy '*' --max-time 15 "http://$a/random" |
			sha256sum)"
	done
}
filter gateway <<'END'
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp synproxy state
pass out on wan0
END
try synproxy
filter gateway <<'END'
set syncookies always
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp
pass out on wan0
END
try syncookies
at_least 4 "cookies that came back" \
	"$(pf gateway -si -v | awk '/syncookies validated/ { print $3 }')"
verdict
