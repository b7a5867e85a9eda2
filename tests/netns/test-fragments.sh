# Fragments cannot be reassembled yet: they are dropped and counted, or matched one by one if asked.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
lab_begin
gateway_between_client_and_server

# large_ping ADDRESS - an echo request of three fragments
large_ping() {
	if on client ping -n -q -c 1 -W 1 -s 4000 "$1" >/dev/null 2>&1; then echo passed; else echo "no answer"; fi
}
same "fragments without a filter" passed "$(large_ping $SERVER4)"
filter gateway <<<"pass all"
for address in $SERVER4 $SERVER6; do
	same "whole packets to $address" passed "$(probe_ping client $address)"
	same "fragments to $address" "no answer" "$(large_ping $address)"
done
at_least 6 "packets counted as fragment" "$(reason gateway fragment)"

filter gateway <<'END'
set reassemble no
pass all no state
END
for address in $SERVER4 $SERVER6; do
	same "fragments to $address, one by one" passed "$(large_ping $address)"
done
filter gateway <<'END'
set reassemble no
pass all no state
block in on lan0 fragment
END
for address in $SERVER4 $SERVER6; do
	same "fragments to $address, which a rule blocks" "no answer" "$(large_ping $address)"
done
verdict
