# `os` on real hosts: the SYNs of this Linux match Linux over IPv4 and IPv6, with skipstep's own
# fingerprints and with those of `set fingerprints`; `-s osfp` lists them.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

# rules NAME [FILE] - refuses packets of the operating system NAME
rules() {
	[ $# = 1 ] || echo "set fingerprints \"$2\""
	cat <<END
pass
block return in on lan0 proto tcp from any os "$1" to port 80
END
}
rules Windows | filter gateway
same "where Windows is refused" passed "$(probe_web client $SERVER4 80)"
same "the same over IPv6" passed "$(probe_web client $SERVER6 80)"
for name in Linux "Linux 6.18"; do
	rules "$name" | filter gateway
	same "where $name is refused" refused "$(probe_web client $SERVER4 80)"
	same "the same over IPv6" refused "$(probe_web client $SERVER6 80)"
done
holds "-s osfp" eval 'pf gateway -so | grep -Pq "^Linux\t6.18\t$"'

same "-F osfp" "pf.os fingerprints cleared" "$(pf gateway -F osfp 2>&1)"
same "none is listed any more" "" "$(pf gateway -so | grep Linux)"
same "and the rule about Linux matches no packet" passed "$(probe_web client $SERVER4 80)"
rules "Linux 6.18" | filter gateway
same "until rules are loaded again" refused "$(probe_web client $SERVER4 80)"
holds "which lists them again" eval 'pf gateway -so | grep -q "^Linux"'

echo '*:64:1:*:M*,S,T,N,W*:Penguin:2:x:as wide as can be' >"$WORK/pf.os"
rules Penguin "$WORK/pf.os" | filter gateway
same "where Penguin is refused, whose file says that it looks so" refused \
	"$(probe_web client $SERVER4 80)"
holds "-s osfp" eval 'pf gateway -so | grep -Pq "^Penguin\t2\tx\t$"'
rules Linux "$WORK/pf.os" | filter gateway
same "where Linux is refused, which that file does not know" passed \
	"$(probe_web client $SERVER4 80)"
holds "-vv tells of it" eval \
	'rules Linux "$WORK/pf.os" | pf gateway -nvvf - 2>&1 | grep -q "unknown .Linux. OS fingerprint"'
echo 'broken' >"$WORK/pf.os"
rules Linux "$WORK/pf.os" | pf gateway -f - 2>"$WORK/refused" && die "a broken file was loaded"
same "a broken file" "error loading fingerprints $WORK/pf.os:1: not a fingerprint" \
	"$(head -n 1 "$WORK/refused")"
verdict
