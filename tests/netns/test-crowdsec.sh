# CrowdSec's firewall bouncer bans addresses in its mode `pf`, unchanged: it looks for /dev/pf,
# which packaging/dev-pf.conf makes, runs /sbin/pfctl, and kills the states of an address that it
# bans. A small server stands for CrowdSec itself.
#
#   client ----------------- gateway (bouncer) ----------------- server
#                  lan0                         wan0
. "$(dirname "$0")/lab.sh"
folder=$(unpacked crowdsec-firewall-bouncer) || unable "crowdsec-firewall-bouncer cannot be had here"
gateway_between_client_and_server
GATEWAY4=192.168.100.1 GATEWAY6=2001:db8:100::1
web gateway 80
filter gateway <<-'END'
	set skip on lo
	table <crowdsec-blacklists> persist
	table <crowdsec6-blacklists> persist
	pass
	block drop in quick from <crowdsec-blacklists>
	block drop in quick from <crowdsec6-blacklists>
END

mkdir -p "$WORK/lapi" "$WORK/sbin" "$WORK/root/dev"
start lapi gateway python3 "$HERE/crowdsec-lapi.py" 8080 "$WORK/lapi"
await 5 listening gateway tcp 8080 || die "no local API: $(cat "$WORK/lapi.log")"
cat >"$WORK/bouncer.yaml" <<-'END'
	mode: pf
	update_frequency: 1s
	daemonize: false
	log_mode: stdout
	log_level: info
	api_url: http://127.0.0.1:8080/
	api_key: key
	disable_ipv6: false
	deny_action: DROP
	supported_decisions_types: [ban]
	blacklists_ipv4: crowdsec-blacklists
	blacklists_ipv6: crowdsec6-blacklists
	pf:
	  anchor_name: ""
	prometheus:
	  enabled: false
END
# bouncer - runs the bouncer on the gateway, in mounts with $WORK/root/dev and $WORK/sbin
bouncer() {
	# shellcheck disable=SC2016
	start bouncer gateway unshare --mount sh -ec '
		cp "$1/pfctl" "$2/sbin"
		for device in null urandom; do
			touch "$2/root/dev/$device"
			mount --bind "/dev/$device" "$2/root/dev/$device"
		done
		mount --bind "$2/sbin" /sbin
		mount --rbind "$2/root/dev" /dev
		exec "$3/usr/bin/crowdsec-firewall-bouncer" -c "$2/bouncer.yaml"' \
		sh "$BIN" "$WORK" "$folder"
}
ended() {
	! kill -0 "${PROCESSES[bouncer]}"
}
banned() {
	pf gateway -t "$1" -T show | grep -qw "$2"
}
unbanned() {
	! banned "$@"
}

bouncer
await 10 ended || die "the bouncer runs without /dev/pf"
holds "the bouncer looks for /dev/pf" grep -q "/dev/pf" "$WORK/bouncer.log"
stop bouncer
if command -v systemd-tmpfiles >/dev/null; then
	systemd-tmpfiles --root="$WORK/root" --create "$ROOT/packaging/dev-pf.conf"
else
	ln -s null "$WORK/root/dev/pf"
fi
same "/dev/pf" null "$(readlink "$WORK/root/dev/pf")"

bouncer
await 10 grep -q stream "$WORK/lapi/requests" || die "no bouncer: $(cat "$WORK/bouncer.log")"
same "before the ban" passed "$(probe_web client $GATEWAY4 80)"
same "over IPv6" passed "$(probe_web client $GATEWAY6 80)"
at_least 1 "states of the client" "$(state_count gateway "$CLIENT4:")"
printf '%s\n' $CLIENT4 $CLIENT6 >"$WORK/new"
mv "$WORK/new" "$WORK/lapi/new"
await 10 banned crowdsec-blacklists $CLIENT4 || die "no ban: $(cat "$WORK/bouncer.log")"
await 10 banned crowdsec6-blacklists $CLIENT6 || die "no ban: $(cat "$WORK/bouncer.log")"
await 5 eval '[ "$(state_count gateway "$CLIENT4:")" = 0 ]'
same "states of the client, killed" 0 "$(state_count gateway "$CLIENT4:")"
same "after the ban" "no answer" "$(probe_web client $GATEWAY4 80)"
same "over IPv6, after the ban" "no answer" "$(probe_web client $GATEWAY6 80)"
echo $CLIENT4 >"$WORK/deleted"
mv "$WORK/deleted" "$WORK/lapi/deleted"
await 10 unbanned crowdsec-blacklists $CLIENT4 || die "no end: $(cat "$WORK/bouncer.log")"
same "after the end of a ban" passed "$(probe_web client $GATEWAY4 80)"
same "the other ban" "no answer" "$(probe_web client $GATEWAY6 80)"
same "errors of the bouncer" "" "$(grep -i 'level=\(error\|fatal\)' "$WORK/bouncer.log")"
stop bouncer
verdict
