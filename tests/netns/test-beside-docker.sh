# Docker's published ports, as docs/howto/docker.md describes them: rules see the host's address and
# the published port, and `block in` blocks the port. dockerd is Debian's, and the containers are
# real. The rules of newer versions of Docker take the place of those of this dockerd at the end.
# long: 24 s
#
#   visitor                 host                     web
#   eth0 ------------------ eth0   docker0 --------- eth0
#   192.0.2.1          192.0.2.2   172.17.0.1        172.17.0.2
. "$(dirname "$0")/beside.sh"
visitor_and_host
furnish host docker.io containerd runc tini

docker() {
	inside host docker -H unix:///run/docker.sock "$@" 2>&1
}
# run NAME ARGUMENT... - starts a container with a web server at port 80
run() {
	docker run --detach --name "$@" web /bin/busybox httpd -f -p 80 -h /www >"$WORK/run" ||
		die "no container: $(cat "$WORK/run")"
}
start_inside dockerd host dockerd -H unix:///run/docker.sock --storage-driver vfs \
	--cgroup-parent "$LAB"
await 20 docker version || unable "no dockerd here: $(tail -n 1 "$WORK/dockerd.log")"
mkdir -p "$WORK/image/bin" "$WORK/image/www"
cp "$(command -v busybox)" "$WORK/image/bin"
head -c 16384 /dev/zero >"$WORK/image/www/index.html"
tar -C "$WORK/image" -c . | inside host docker -H unix:///run/docker.sock import - web >/dev/null ||
	die "no image"
run web --publish 8443:80
witness visitor 25 81

# published [PORT] - how a visitor fares at a published port, over IPv4 and IPv6
published() {
	echo "$(probe_web visitor 192.0.2.2 "${1:-8443}"), $(probe_web visitor 2001:db8::2 "${1:-8443}")"
}
# address_out PORT - the address of the container as a server outside sees it
address_out() {
	docker exec web /bin/busybox timeout 2 /bin/busybox nc -w 2 192.0.2.1 "$1" </dev/null |
		grep -o '^[0-9.]*$' || echo "no answer"
}
# page_and LINE... - loads the page's first rule set with further lines behind it
page_and() {
	{ page_rules docker 1; printf '%s\n' "$@"; } | filter host
	pf host -q -F states
}
netfilter() {
	inside host iptables-save | grep -v '^#'
	inside host ip6tables-save | grep -v '^#'
}
left_to_netfilter() {
	pf host -si -v | awk '/left to netfilter/ { print $4 }' | grep . || echo 0
}

same "the port without a filter" "passed, passed" "$(published)"
netfilter >"$WORK/netfilter"
page_and
same "the port with the rules of the page" "no answer, no answer" "$(published)"
at_least 2 "packets of the block rule" \
	"$(pf host -vsr | awk '/^block/ { getline; print $5 }')"
same "programs of the host at the port" "passed passed" \
	"$(probe_web host 127.0.0.1 8443) $(probe_web host 192.0.2.2 8443)"
same "the container's address outside" 192.0.2.2 "$(address_out 81)"

page_and "pass in on eth0 proto tcp to port 80" "pass in on eth0 proto tcp to 172.17.0.2"
same "rules for the container's address and port" "no answer, no answer" "$(published)"
page_and "pass in on eth0 proto tcp to port 8443"
same "a rule for the host's port" "passed, passed" "$(published)"
same "its state names the host" 1 "$(state_count host 'tcp 192\.0\.2\.2:8443 <- 192\.0\.2\.1:')"
same "no state names the container" 0 "$(state_count host '172\.17\.')"
at_least 4 "packets that the fast path leaves to netfilter" "$(left_to_netfilter)"
for option in "synproxy state" "modulate state"; do
	page_and "pass in on eth0 proto tcp to port 8443 $option"
	same "$option" "passed, passed" "$(published)"
done
page_and "pass in on eth0 proto tcp to port 8443" "block return in on eth0 proto tcp to port 8443"
same "block return" "refused, refused" "$(published)"
page_and "pass in on eth0 proto tcp to port 8443" "set fast-forward yes"
case $(probe_web visitor 192.0.2.2 8443) in
passed) same "the port with set fast-forward yes" broken passed ;;
*) echo "as expected: set fast-forward yes breaks the port" ;;
esac

page_and "block out on eth0 proto tcp from 172.17.0.0/16"
same "a rule for the container's source on the way out" 192.0.2.2 "$(address_out 25)"
page_and "block return in on docker0 proto tcp from 172.17.0.2 to port smtp"
same "a rule on the bridge" "no answer 192.0.2.2" "$(address_out 25) $(address_out 81)"

page_rules docker 2 | filter host
same "block all, and pass on ! eth0" "passed, passed" "$(published)"
same "block all, and pass on ! eth0, out" 192.0.2.2 "$(address_out 81)"
same "states of the bridge" 0 "$(state_count host '172\.17\.')"
page_rules docker 2 | sed 's/^pass on ! .*/pass on docker0 no state/' | filter host
pf host -q -F states
same "block all, and pass on docker0 only, out" "no answer" "$(address_out 81)"

pf host -q -F all
pf host -q -d
netfilter >"$WORK/netfilter-after"
holds "pfctl changes nothing of netfilter" cmp "$WORK/netfilter" "$WORK/netfilter-after"
pf host -q -e

page_and "pass in on eth0 proto tcp to port { 8443:8450 }"
pf host -sr >"$WORK/rules"
docker network create second >/dev/null
run second --network second --publish 8444:80
same "a new network without skipstepd" "no answer" "$(probe_web visitor 192.0.2.2 8444)"
at_least 1 "packets counted as unattached" "$(reason host unattached)"
page_and "pass in on eth0 proto tcp to port { 8443:8450 }"
same "after another load" passed "$(probe_web visitor 192.0.2.2 8444)"
daemon host
run third --network second --publish 8445:80
same "a new container with skipstepd" "passed, passed" "$(published 8445)"
docker network create fourth >/dev/null
run fourth --network fourth --publish 8446:80
same "a new network with skipstepd" "passed, passed" "$(published 8446)"
pf host -sr >"$WORK/rules-after"
holds "Docker changes nothing of ours" cmp "$WORK/rules" "$WORK/rules-after"

# Versions 28 and 29: other chains, and packets to a container's own address are dropped.
newer_iptables() {
	inside host iptables-restore <<-'END'
		*raw
		-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP
		COMMIT
		*nat
		:DOCKER - [0:0]
		-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
		-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
		-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
		-A DOCKER ! -i docker0 -p tcp --dport 8443 -j DNAT --to-destination 172.17.0.2:80
		COMMIT
		*filter
		:FORWARD DROP [0:0]
		:DOCKER - [0:0]
		:DOCKER-BRIDGE - [0:0]
		:DOCKER-CT - [0:0]
		:DOCKER-FORWARD - [0:0]
		:DOCKER-USER - [0:0]
		-A FORWARD -j DOCKER-USER
		-A FORWARD -j DOCKER-FORWARD
		-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp --dport 80 -j ACCEPT
		-A DOCKER ! -i docker0 -o docker0 -j DROP
		-A DOCKER-BRIDGE -o docker0 -j DOCKER
		-A DOCKER-CT -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
		-A DOCKER-FORWARD -j DOCKER-CT
		-A DOCKER-FORWARD -j DOCKER-BRIDGE
		-A DOCKER-FORWARD -i docker0 -j ACCEPT
		COMMIT
	END
}
newer_nftables() {
	on host nft -f - <<-'END'
		table ip docker-bridges {
			map filter-forward-in-jumps {
				type ifname : verdict
				elements = { "docker0" : jump filter-forward-in__docker0 }
			}
			map filter-forward-out-jumps {
				type ifname : verdict
				elements = { "docker0" : jump filter-forward-out__docker0 }
			}
			chain filter-forward-in__docker0 {
				ct state established,related counter accept
				iifname "docker0" counter accept
				ip daddr 172.17.0.2 tcp dport 80 counter accept
				counter drop
			}
			chain filter-forward-out__docker0 {
				ct state established,related counter accept
				counter accept
			}
			chain filter-FORWARD {
				type filter hook forward priority filter; policy accept;
				oifname vmap @filter-forward-in-jumps
				iifname vmap @filter-forward-out-jumps
			}
			chain nat-prerouting-and-output {
				iifname != "docker0" tcp dport 8443 counter dnat to 172.17.0.2:80
			}
			chain nat-OUTPUT {
				type nat hook output priority -100; policy accept;
				ip daddr != 127.0.0.0/8 fib daddr type local counter \
					jump nat-prerouting-and-output
			}
			chain nat-PREROUTING {
				type nat hook prerouting priority dstnat; policy accept;
				fib daddr type local counter jump nat-prerouting-and-output
			}
			chain nat-POSTROUTING {
				type nat hook postrouting priority srcnat; policy accept;
				oifname != "docker0" ip saddr 172.17.0.0/16 counter masquerade
			}
			chain raw-PREROUTING {
				type filter hook prerouting priority raw; policy accept;
				ip daddr 172.17.0.2 iifname != "docker0" counter drop
			}
		}
	END
}
for version in newer_iptables newer_nftables; do
	on host nft flush ruleset
	$version || die "no rules of $version"
	page_and
	same "$version: the port with the rules of the page" "no answer" \
		"$(probe_web visitor 192.0.2.2 8443)"
	same "$version: the container's address outside" 192.0.2.2 "$(address_out 81)"
	page_and "pass in on eth0 proto tcp to port 8443"
	same "$version: a rule for the host's port" passed "$(probe_web visitor 192.0.2.2 8443)"
	page_and "pass in on eth0 inet proto tcp to port 8443 rdr-to 172.17.0.2 port 80"
	same "$version: rdr-to" "no answer" "$(probe_web visitor 192.0.2.2 8443)"
done
verdict
