# FTP with NAT, without a proxy that rewrites addresses: ftpsesame opens the filter where it can,
# and rules translate each data connection by its tag. Either the clients or the server are behind
# NAT.
. "$(dirname "$0")/ftpsesame.sh"
gateway_between_client_and_server
on server ip route del default
files
daemon gateway

# transfers WHERE ADDRESS - fetches the large file in passive mode
transfers() {
	same "$1: EPSV" "$WANTED" "$(fetch "$2")"
	same "$1: PASV" "$WANTED" "$(fetch "$2" --disable-epsv)"
	on client curl --silent --noproxy '*' --max-time 30 --upload-file "$WORK/ftp/large" \
		"ftp://$2/upload/$3"
	same "$1: an upload" "$WANTED" "$(sha256sum <"$WORK/ftp/upload/$3")"
	holds "$1: no rules after them" await 2 no_rules_left
}

filter gateway <<'END_OF_RULES'
block
anchor "ftpsesame/*" in on lan0
pass in log (all, to pflog1) on lan0 inet proto tcp to port 21 set delay 40
pass out on wan0 inet proto tcp to port 21 nat-to (wan0)
pass out on wan0 inet proto tcp tagged ftp nat-to (wan0)
END_OF_RULES
sesame gateway -t ftp
for server in vsftpd pure-ftpd; do
	ftp_server server "$server"
	transfers "clients behind NAT, $server" "$SERVER4" "hidden-$server"
	stop ftp-server
done
stop sesame

# The server is behind NAT: clients use the gateway's address. The server sees its clients'
# addresses.
on server ip route add default via 192.168.10.81
filter gateway <<END_OF_RULES
block
match in on lan0 inet proto tcp to 192.168.100.1 rdr-to $SERVER4
anchor "ftpsesame/*" in
pass in on lan0 inet proto tcp to $SERVER4 port 21
pass out log (all, to pflog1) on wan0 inet proto tcp to $SERVER4 port 21 set delay 40
pass out on wan0 inet proto tcp to $SERVER4 tagged ftp
pass out on lan0 inet proto tcp from $SERVER4 tagged ftp nat-to 192.168.100.1
END_OF_RULES
sesame gateway -t ftp
for server in vsftpd pure-ftpd; do
	ftp_server server "$server"
	transfers "a server behind NAT, $server" 192.168.100.1 "found-$server"
	same "a server behind NAT, $server: EPRT" "$WANTED" "$(fetch 192.168.100.1 --ftp-port -)"
	same "a server behind NAT, $server: PORT" "$WANTED" \
		"$(fetch 192.168.100.1 --ftp-port - --disable-eprt)"
	stop ftp-server
done
verdict
