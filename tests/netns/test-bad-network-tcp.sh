# Two real TCP stacks with impairment on both sides of a gateway that takes part in their
# connections: every transfer is complete, in both directions.
# long: 17 s
. "$(dirname "$0")/bad-network.sh"
bad_network_begin

rules <<'END'
pass in on lan0 proto tcp modulate state label "modulate"
pass out on wan0 proto tcp modulate state
END
same "modulate state" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with modulate state" "$(made modulate)"

rules <<'END'
pass in on lan0 proto tcp synproxy state label "synproxy"
pass out on wan0
END
same "synproxy state" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with synproxy state" "$(made synproxy)"

rules <<'END'
set syncookies always
pass in on lan0 proto tcp label "syncookies"
pass out on wan0
END
same "syncookies" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with syncookies" "$(made syncookies)"

rules <<'END'
match proto tcp scrub (reassemble tcp, random-id, no-df, max-mss 1300)
pass in on lan0 proto tcp label "scrub"
pass out on wan0
END
same "reassemble tcp" "16 equal" "$(transfers $SERVER4 $SERVER6 7)"
at_least 16 "states with reassemble tcp" "$(made scrub)"

rules <<'END'
match out on wan0 proto tcp scrub (reassemble tcp) nat-to (wan0)
pass in on lan0 inet proto tcp to port 70 rdr-to 192.168.10.2 port 7 modulate state
pass in on lan0 inet6 proto tcp to port 70 rdr-to 2001:db8:10::2 port 7 modulate state
pass out on wan0 modulate state label "all"
END
same "all of it" "16 equal" "$(transfers 192.168.100.1 2001:db8:100::1 70)"
at_least 16 "states with all of it" "$(made all)"

bad_network_end
