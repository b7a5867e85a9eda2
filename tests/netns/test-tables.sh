# Tables change while packets pass, without a load of rules; the longest match decides.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

echo "192.168.100.0/24" >"$WORK/clients"
filter gateway <<END
table <clients> persist file "$WORK/clients"
table <bad> persist
block all
pass inet6 proto icmp6
pass in on lan0 proto tcp from <clients>
pass out on wan0
block in quick from <bad>
END
same "in a table from a file" passed "$(probe_web client $SERVER4 80)"
same "not in it" "no answer" "$(probe_web client $SERVER6 80)"
pf gateway -q -t clients -T add 2001:db8:100::/64
same "added" passed "$(probe_web client $SERVER6 80)"
pf gateway -q -t bad -T add 192.168.0.0/16
pf gateway -q -F states
same "in the other table" "no answer" "$(probe_web client $SERVER4 80)"
pf gateway -q -t bad -T add '!192.168.100.2'
same "all but one address of it" passed "$(probe_web client $SERVER4 80)"
pf gateway -q -t bad -T delete '!192.168.100.2'
same "deleted" "no answer" "$(probe_web client $SERVER4 80)"
pf gateway -q -t bad -T flush
same "flushed" passed "$(probe_web client $SERVER4 80)"
same "what is in it" "192.168.100.0/24 2001:db8:100::/64" "$(pf gateway -t clients -T show | xargs)"
verdict
