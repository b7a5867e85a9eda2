# route-to and reply-to with af-to: a next hop sends translated packets, or their answers, where the
# gateway has no route.
. "$(dirname "$0")/lab.sh"
gateway_between_families
# beyond the server and beyond the client
on server ip address add 203.0.113.9/32 dev lo
on client ip address add 2001:db8:300::2/128 dev lo nodad
BEYOND64=64:ff9b::203.0.113.9
web server 80

# echo FROM TO - prints the number of answers to three echo requests
echoes() {
	on client ping -n -c 3 -i 0.2 -W 1 -I "$1" "$2" | sed -n 's/.* \([0-9]*\) received.*/\1/p'
}
rules() {
	filter gateway <<-END_OF_RULES
		block all
		pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
		pass in on lan0 $1 inet6 to 64:ff9b::/96 af-to inet from (wan0:0)
	END_OF_RULES
}
rules ""
same "no way to the server's other address" 0 "$(echoes 2001:db8:100::2 $BEYOND64)"
same "no way back to the client's other address" 0 "$(echoes 2001:db8:300::2 "$SERVER64")"

rules "route-to (wan0 192.168.10.2)"
same "by the next hop behind" 3 "$(echoes 2001:db8:100::2 $BEYOND64)"
same "TCP, too" passed "$(probe_web client $BEYOND64 80)"

rules "reply-to (lan0 2001:db8:100::2)"
same "back by the next hop in front" 3 "$(echoes 2001:db8:300::2 "$SERVER64")"
verdict
