# A rule set with a mistake, a user without root's rights, and rules for a missing interface.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

filter gateway <<<"block all"
printf 'pass all\n\nblock in on lan0 frmo any\n' >"$WORK/bad.conf"
said=$(pf gateway -f "$WORK/bad.conf" 2>&1)
same "exit status" 1 $?
same "first line" "$WORK/bad.conf:3: syntax error" "$(head -n 1 <<<"$said")"
same "the running rules" "block drop all" "$(pf gateway -sr)"
same "the running rules, asked with a packet" "no answer" "$(probe_web client $SERVER4 80)"

said=$(pf gateway -f "$WORK/none.conf" 2>&1)
same "exit status for a missing file" 1 $?
holds "it is named" grep -q "none.conf: No such file or directory" <<<"$said"

said=$(on gateway setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/pfctl" \
	-f "$ROOT/examples/gateway.conf" 2>&1)
same "exit status without root" 1 $?
holds "the message says so" grep -qi "permi\|root" <<<"$said"
echo "$said"

# OpenBSD loads rules for a missing interface; they match nothing until the interface appears.
filter gateway <<'END'
block all
pass on nosuch0
END
same "rules on an interface that is not there" "no answer" "$(probe_web client $SERVER4 80)"
verdict
