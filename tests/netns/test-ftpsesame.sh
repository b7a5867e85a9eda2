# FTP through a filter without NAT: ftpsesame watches control connections and opens the filter for
# the data connections. Real servers and clients are used, active and passive, in both families.
. "$(dirname "$0")/ftpsesame.sh"
gateway_between_client_and_server
files
watched gateway lan0 wan0
both_servers "a router"
ftp_server server
huge "a router"
verdict
