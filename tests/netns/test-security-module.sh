# A kernel's security module has netfilter hooks in every namespace (AppArmor and SELinux do). The
# hooks do nothing with forwarded packets, so the fast path stays active. An nftables rule disables
# the fast path.
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
filter gateway <<-'END'
	block
	pass inet6 proto icmp6 icmp6-type { neighbrsol, neighbradv } no state
	pass proto tcp to port 7
END
echo_server server 7

# talk - sends 20 small segments to an echo server; $past is the number of packets on the fast path
talk() {
	local before answers
	before=$(by tc)
	answers=$(on client timeout 10 bash -c "exec 3<>/dev/tcp/$1/7
		for number in {1..20}; do
			echo \$number >&3 && read -r -u 3 answer && [ \$answer = \$number ] && echo \$answer
		done" | wc -l)
	past=$(($(by tc) - before))
	same "all is answered from $1" 20 "$answers"
}
for address in "$SERVER4" "$SERVER6"; do
	talk "$address"
	at_least 30 "packets went past the kernel" "$past"
done
for hook in prerouting forward postrouting; do
	on gateway nft "table inet t { chain c { type filter hook $hook priority 0; }; }" ||
		die "cannot hook $hook"
	for address in "$SERVER4" "$SERVER6"; do
		talk "$address"
		same "none with a chain of $hook" 0 "$past"
	done
	on gateway nft delete table inet t
done
talk "$SERVER4"
at_least 30 "packets went past the kernel with no chain any more" "$past"
verdict
