# Options and chains of headers on real packets: IGMP and MLD with a router alert, from the link
# itself only; 19 authentication headers at most.
#
#   client ----------------- gateway ----------------- server
#   c4, c6         lan0                wan0        s4, s6
# long: in every mode, one of which loads the programs for XDP
. "$(dirname "$0")/conversation.sh"
between_peers

# packets LABEL - prints the packets of the rules with a label
packets() {
	pf gateway -sl | awk -v label="$1" '$1 == label { sum += $3 } END { print sum }'
}

chains() {
	local before
	rules <<-END
		block
		pass in on lan0 inet proto igmp from 192.168.100.9 no state label "igmp"
		pass in on lan0 inet6 proto icmp6 from { fe80::9, 2001:db8:100::9, :: } \
			no state label "mld"
		pass proto udp to port 53 label "udp"
	END
	before=$(reason gateway ip-option)
	converse <<-END
		# IGMP and MLD end at the gateway
		client sends c4 224.0.0.1 ttl 1 options 94040000 igmp 17 0.0.0.0
		client sends c4 239.1.2.3 ttl 1 options 94040000 igmp 22 239.1.2.3
		client sends c4 239.1.2.3 ttl 1 igmp 22 239.1.2.3
		client sends fe80::9 ff02::1 ttl 1 hop-by-hop 050200000100 icmp 130 0 0 0 len 16
		client sends fe80::9 ff02::1 ttl 1 hop-by-hop 050200000100 icmp 131 0 0 0 len 16
		client sends fe80::9 ff02::16 ttl 1 hop-by-hop 050200000100 icmp 143 0 0 0 len 16
	END
	same "$MODE: IGMP with a router alert, and without" 3 "$(packets igmp)"
	same "$MODE: MLD with a router alert" 3 "$(packets mld)"
	same "$MODE: dropped for their options" 0 $(($(reason gateway ip-option) - before))
	converse <<-END
		# another TTL, other options
		client sends c4 224.0.0.1 ttl 2 options 94040000 igmp 17 0.0.0.0
		client sends c4 224.0.0.1 ttl 1 options 0707040000000000 igmp 17 0.0.0.0
		client sends c4 224.0.0.1 ttl 1 options 940400000707040000000000 igmp 17 0.0.0.0
	END
	same "$MODE: IGMP with another TTL or other options" 3 "$(packets igmp)"
	same "$MODE: dropped for their options" 3 $(($(reason gateway ip-option) - before))
	converse <<-END
		# another hop limit, an address that is not of the link
		client sends fe80::9 ff02::1 ttl 2 hop-by-hop 050200000100 icmp 130 0 0 0 len 16
		client sends c6 ff02::1 ttl 1 hop-by-hop 050200000100 icmp 130 0 0 0 len 16
		client sends :: ff02::16 ttl 1 hop-by-hop 050200000100 icmp 143 0 0 0 len 16
		client sends fe80::9 ff02::1 ttl 1 hop-by-hop 050200001e00 icmp 130 0 0 0 len 16
	END
	same "$MODE: MLD that is not of the link" 3 "$(packets mld)"

	before=$(reason gateway ip-option)
	converse <<-END
		# 19 authentication headers
		client sends 3 times c4 s4 ah 19 udp 1000 53
		server hears 3 times c4 s4 ah 19 udp 1000 53
		client sends 3 times c6 s6 ah 19 udp 1000 53
		server hears 3 times c6 s6 ah 19 udp 1000 53
		# their ports count
		client sends c4 s4 ah 19 udp 1000 54
		client sends c6 s6 ah 19 udp 1000 54
	END
	same "$MODE: dropped for their headers" 0 $(($(reason gateway ip-option) - before))
	converse <<-END
		# 20 authentication headers
		client sends 3 times c4 s4 ah 20 udp 1000 53
		client sends 3 times c6 s6 ah 20 udp 1000 53
		# a router alert, where nobody asks for options
		client sends c4 s4 options 94040000 udp 1000 53
		client sends c6 s6 hop-by-hop 050200000100 udp 1000 53
	END
	same "$MODE: dropped for their headers" 8 $(($(reason gateway ip-option) - before))
}
in_every_mode chains
verdict
