# The command lines of tools for pf, as docs/reference/compat.md lists the tools: output and exit
# status must be those of OpenBSD's pfctl, and of macOS's and FreeBSD's for their flags.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
GATEWAY4=192.168.100.1

# says TOOL STATUS OUTPUT ARGUMENT... - checks exit status and output of pfctl on the gateway; lines
# are joined. pfctl reads the standard input of this function
says() {
	local tool=$1 expected="$2 $3" said status
	shift 3
	said=$(pf gateway "$@" 2>&1 | tr -s ' \n' ' ')
	status=$?
	said=${said# }
	same "$tool: pfctl $*" "$expected" "$status ${said% }"
}

filter gateway <<-'END'
	set skip on lo0
	table <spamd> persist
	table <bouncer> persist
	table <wazuh_fwtable> persist
	rdr-anchor "rdr/*"
	rdr-anchor "zapret"
	block in on lan0 proto tcp to port { 22, 24 }
	pass out
	pass in proto { icmp, icmp6, udp }
	pass in proto tcp to port 80
	block in from <bouncer> to any label "bouncer"
	block in from <wazuh_fwtable>
	anchor "authpf/*"
	anchor "blocklistd/*" in
	anchor "fwknop"
	anchor "zapret"
END
web gateway 22 80
web server 8080

# spamd, spamd-setup
says spamd-setup 0 "" -q -t spamd -T replace -f- <<<$'192.0.2.1\n198.51.100.0/24'
says spamd 0 "" -p /dev/pf -q -t spamd-white -T replace -f- <<<192.0.2.7
says spamd 0 192.0.2.7 -t spamd-white -T show

# authpf, which opens the device itself
# shellcheck disable=SC2016
printf 'pass in quick on lan0 proto tcp from $user_ip to port 24 label $user_id\n' >"$WORK/authpf"
web gateway 24
same "before authpf" "no answer" "$(probe_web client $GATEWAY4 24)"
says authpf 0 "" -p /dev/fd/9 -q -a "authpf/alice(123)" -D user_id=alice -D "user_ip=$CLIENT4" \
	-f "$WORK/authpf" 9</dev/null
says authpf 0 "pass in quick on lan0 inet proto tcp from $CLIENT4 to any port = 24 flags S/SA \
label \"alice\"" -a "authpf/alice(123)" -sr
same "with authpf" passed "$(probe_web client $GATEWAY4 24)"
says authpf 0 "rules cleared" -a "authpf/alice(123)" -F rules
says authpf 0 "killed 1 states from 1 sources and 0 destinations" -k $CLIENT4

# Salt compares standard error
says Salt 0 "pfctl: pf already enabled" -e
says Salt 0 "debug level set to 'err'" -x err
says Salt 0 "" -f "$WORK/authpf" -n -D user_id=alice -D user_ip=192.0.2.1
holds "Salt: pfctl -v -F states" grep -qx '[0-9]* states cleared' \
	<<<"$(pf gateway -v -F states 2>&1)"
says Salt 0 "source tracking entries cleared" -v -F Sources
says Salt 0 "pf: statistics cleared" -v -F info
says Salt 0 "1 table created. 2/2 addresses added." -t hosts -T add 192.0.2.1 192.0.2.2
says Salt 0 "1/1 addresses match." -t hosts -T test 192.0.2.1
says Salt 2 "1/2 addresses match." -t hosts -T test 192.0.2.1 192.0.2.3
says Salt 0 "0/0 addresses expired." -t hosts -T expire 1000
says Salt 0 "1 table/stats cleared." -t hosts -T zero
says Salt 0 "no changes." -t hosts -T replace 192.0.2.1 192.0.2.2
says Salt 0 "2 addresses deleted." -t hosts -T flush
says Salt 0 "1 table deleted." -t hosts -T kill
says Salt 255 "pfctl: Table does not exist." -t hosts -T show
says Salt 0 "pf disabled" -d
says Salt 1 "pfctl: pf not enabled" -d
says Salt 0 "pf enabled" -e

# Telegraf reads the lines of the section
table=$(pf gateway -s info | sed -n '/^State Table/,/^[A-Z]/s/^  \(.*[^ ]\)  *[0-9][0-9]* .*/\1/p')
for line in "current entries" searches inserts removals; do
	holds "Telegraf: line '$line'" grep -qx "$line" <<<"$table"
done

# exporters and OPF
probe_udp client "$SERVER4" 53 >"$WORK/udp" # makes states
for line in "-vvs info" "-vvs Interfaces" "-vvs Tables" "-Pvs rules" "-vv -s states" \
	"-vv -s rules" "-s memory" "-sa"; do
	# shellcheck disable=SC2086
	said=$(pf gateway $line 2>"$WORK/error")
	same "exporters: pfctl $line" "0 ''" "$? '$(cat "$WORK/error")'"
	at_least 5 "its lines" "$(wc -l <<<"$said")"
done
id=$(pf gateway -vv -s states | awk '$1 == "id:" { print $2; exit }')
says OPF 0 "killed 1 states" -k id -k "$id"
says OPF 0 "killed 0 states" -k id -k "$id"

# Wazuh
says Wazuh 0 "1/1 addresses added." -t wazuh_fwtable -T add 192.0.2.1
says Wazuh 0 "killed 0 states from 1 sources and 0 destinations" -k 192.0.2.1
says Wazuh 0 "1/1 addresses deleted." -t wazuh_fwtable -T delete 192.0.2.1

# CrowdSec reads tables, and the counters of rules with a label
holds "CrowdSec: the table exists" grep -qw bouncer <<<"$(pf gateway -s Tables)"
says CrowdSec 0 "0 addresses deleted." -t bouncer -T flush
pf gateway -q -F states
same "before CrowdSec" passed "$(probe_web client $GATEWAY4 80)"
says CrowdSec 0 "1/1 addresses added." -t bouncer -T add $CLIENT4
said=$(pf gateway -s states | awk 'NF >= 6 { print $3; print $5 }' | sed 's/:.*//')
holds "CrowdSec: the address is in the list of states" grep -qx $CLIENT4 <<<"$said"
says CrowdSec 0 "killed 1 states from 1 sources and 0 destinations" -k $CLIENT4
says CrowdSec 0 "killed 0 states from 1 sources and 1 destinations" -k 0.0.0.0/0 -k $CLIENT4
same "with CrowdSec" "no answer" "$(probe_web client $GATEWAY4 80)"
at_least 1 "CrowdSec: packets of its rule" "$(pf gateway -v -sr |
	sed -n '/^block .* from <bouncer> .*"$/{n;s/.*Packets: \([0-9]*\).*/\1/p}')"
says CrowdSec 0 $CLIENT4 -T show -t bouncer
says CrowdSec 0 "1/1 addresses deleted." -t bouncer -T delete $CLIENT4
printf 'table <bouncer6> persist\nblock in from <bouncer6>\n' | pf gateway -q -a bouncer -f -
says CrowdSec 0 "bouncer6@bouncer" -a bouncer -s Tables

# blocklistd: the table comes after the rule that names it
same "before blocklistd" passed "$(probe_web client $GATEWAY4 80)"
pf gateway -q -a blocklistd/80 -f - <<<"block in quick proto tcp from <port80> to any port 80"
holds "blocklistd: its rule" grep -q "<port80>" <<<"$(pf gateway -a blocklistd/80 -sr)"
says blocklistd 0 "" -qa blocklistd/80 -t port80 -T add $CLIENT4/32
says blocklistd 0 "" -qk $CLIENT4
same "with blocklistd" "no answer" "$(probe_web client $GATEWAY4 80)"
says blocklistd 0 "blocklistd/80" -a blocklistd -s Anchors
says blocklistd 0 "" -qa blocklistd/80 -t port80 -T delete $CLIENT4/32
same "after blocklistd" passed "$(probe_web client $GATEWAY4 80)"
says blocklistd 0 "0 addresses deleted." -a blocklistd/80 -t port80 -T flush
says blocklistd 0 "rules cleared" -a blocklistd/80 -F rules
same "its table" "-pa---- port80@blocklistd/80" "$(pf gateway -a blocklistd/80 -sT -v | xargs)"

# fwknop
holds "fwknop: its anchor" grep -q '^  fwknop$' <<<"$(pf gateway -s Anchor)"
same "before fwknop" "no answer" "$(probe_web client $GATEWAY4 22)"
says fwknop 0 "" -a fwknop -s rules
says fwknop 0 "" -a fwknop -f - \
	<<<"pass in quick proto 6 from $CLIENT4 to any port 22 keep state label _exp_1796000000"
says fwknop 0 "pass in quick inet proto tcp from $CLIENT4 to any port = 22 flags S/SA label \
\"_exp_1796000000\"" -a fwknop -s rules
same "with fwknop" passed "$(probe_web client $GATEWAY4 22)"
pf gateway -a fwknop -s rules | sed 's/\(pass.*\)/\1/' >"$WORK/fwknop"
says fwknop 0 "" -a fwknop -f - <"$WORK/fwknop"
says fwknop 0 "rules cleared 0 tables deleted." -a fwknop -F all

# Bastille appends to the printed rules
holds "Bastille: its anchor" grep -q 'rdr/\*' <<<"$(pf gateway -sn | grep rdr-anchor)"
# redirect PORT PORT - adds a redirection
redirect() {
	(
		pf gateway -a rdr/web -Psn 2>/dev/null
		# shellcheck disable=SC2016
		printf '%s\nrdr pass on $%s inet proto %s from %s to %s port %s -> %s port %s\n' \
			'ext_if="lan0"' ext_if tcp any any "$1" "$SERVER4" "$2"
	) | pf gateway -a rdr/web -f-
}
says Bastille 1 "pfctl: Anchor does not exist." -a rdr/web -Psn
same "the first" "0 " "$? $(redirect 8081 8080 2>&1)"
same "the second" "0 " "$? $(redirect 80 8080 2>&1)"
says Bastille 0 "rdr pass on lan0 inet proto tcp from any to any port = 8081 -> $SERVER4 port 8080 \
rdr pass on lan0 inet proto tcp from any to any port = 80 -> $SERVER4 port 8080" -a rdr/web -sn
same "with Bastille" passed "$(probe_web client $GATEWAY4 8081)"
says Bastille 0 "nat cleared" -a rdr/web -Fn
same "after Bastille" refused "$(probe_web client $GATEWAY4 8081)"

# zapret: anchors that call others by their whole path
cat >"$WORK/zapret" <<-'END'
	table <nozapret> persist
	rdr-anchor "/zapret-v4" inet to !<nozapret>
	anchor "/zapret-v4" inet to !<nozapret>
END
cat >"$WORK/zapret-v4" <<-'END'
	rdr on lo0 inet proto tcp from !127.0.0.0/8 to any port {80,443} -> 127.0.0.1 port 988
	pass out route-to (lo0 127.0.0.1) inet proto tcp from !127.0.0.0/8 to any port {80,443} \
		user { >root }
END
says zapret 0 "" -qa zapret -f "$WORK/zapret"
says zapret 0 "" -qa zapret-v4 -f "$WORK/zapret-v4"
says zapret 0 "rdr-anchor \"/zapret-v4\" inet from any to ! <nozapret>" -a zapret -sn
says zapret 0 "" -qTl -a zapret -f "$WORK/zapret"
says zapret 0 "" -qTl -a zapret-v4 -f "$WORK/zapret-v4"
same "its rules name lo" 2 "$(pf gateway -a zapret-v4 -sr | grep -c 'route-to (lo 127.0.0.1)')"
says zapret 0 "" -qa zapret-v4 -F all
says zapret 0 "" -qa zapret -F all
says zapret 0 "" -qe

# sshuttle on macOS, FreeBSD and OpenBSD
pf gateway -q -d
holds "sshuttle: the filter is off" grep -q '^Status: Disabled' \
	<<<"$(pf gateway -s all | grep -A 1 '^INFO:$')"
for interface in lo lo0; do
	holds "sshuttle: $interface is skipped" grep -q skip \
		<<<"$(pf gateway -s Interfaces -i $interface -v)"
done
says sshuttle 0 "" -f /dev/stdin <<<"match on lo"
same "sshuttle: lo is not skipped" 0 "$(pf gateway -s Interfaces -i lo -v | grep -c skip)"
token=$(pf gateway -E 2>&1 | sed -n 's/^Token : //p')
says "sshuttle (FreeBSD)" 0 "" -a sshuttle-12300 -f /dev/stdin <<-'END'
	table <dns_servers> {192.0.2.53}
	rdr pass on lo0 inet proto tcp from ! 127.0.0.1 to 10.0.0.0/8 -> 127.0.0.1 port 12300
	rdr pass on lo0 inet proto udp to <dns_servers> port 53 -> 127.0.0.1 port 12299
	pass out route-to lo0 inet proto tcp to 10.0.0.0/8 keep state
	pass out inet proto tcp to 10.1.0.0/16
	pass out route-to lo0 inet proto udp to <dns_servers> port 53 keep state
END
same "its rules read back" "$(pf gateway -a sshuttle-12300 -sr)" \
	"$(pf gateway -a sshuttle-12300 -sr | pf gateway -o none -nvf -)"
says "sshuttle (OpenBSD)" 0 "" -a sshuttle-12300 -f /dev/stdin <<-'END'
	table <dns_servers> {192.0.2.53}
	pass in on lo0 inet proto tcp to 10.0.0.0/8 divert-to 127.0.0.1 port 12300
	pass in on lo0 inet proto udp to <dns_servers> port 53 rdr-to 127.0.0.1 port 12299
	pass out inet proto tcp to 10.0.0.0/8 route-to lo0 keep state
END
says sshuttle 0 "rules cleared 0 tables deleted." -a sshuttle-12300 -F all
says sshuttle 0 "pf disabled" -X "$token"
verdict
