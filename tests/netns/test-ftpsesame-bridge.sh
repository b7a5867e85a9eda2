# FTP through a filtering bridge, which has no address for a proxy: ftpsesame watches control
# connections and opens the filter for the data connections. Real servers and clients are used, in
# both directions and both families.
. "$(dirname "$0")/ftpsesame.sh"
bridge_between_client_and_server
files
watched bridge port0 port1
both_servers "a bridge"
ftp_server server
stop sesame
same "nothing crosses without it" "$(sha256sum </dev/null)" "$(fetch "$SERVER4" --max-time 3)"
verdict
