# From the boot rules to the rules of pf.conf. After any failure on the way the boot rules stay,
# every interface is attached, and the journal has advice. There is no systemd here: the test runs
# the commands of the units in the units' order and environment.
. "$(dirname "$0")/units.sh"
ip link set lo up

# ordering REGEX NAME KEY - true if a setting of a unit has a word that matches
ordering() {
	setting "$2" "$3" | grep -qw -- "$1"
}
units=(skipstep-boot skipstep-closed skipstepd skipstep-attached skipstep-rules)
for name in "${units[@]}"; do
	unit "$name" >/dev/null
done
for name in "${units[@]}"; do
	said=$(cd "$WORK" && systemd-analyze verify --man=no --recursive-errors=no "./$name.service" \
		2>&1 | grep "$name" | grep -v "Unknown key 'Restart[SM]") # systemd 254 knows them
	same "systemd-analyze verify has nothing against $name.service" "" "$said"
done
for name in skipstep-boot skipstep-closed skipstep-attached; do
	holds "$name is there before the network" ordering network-pre.target $name Before
	holds "and waits for nothing else" ordering no $name DefaultDependencies
done
holds "nftables closes the host if there can be no boot rules" \
	ordering skipstep-closed.service skipstep-boot OnFailure
same "neither network nor pf.conf wait for a skipstepd that does not start" "" \
	"$(grep -lE '^Before=.*network-pre|^After=.*skipstepd' "$ROOT"/packaging/skipstep{d,-rules}.service)"
holds "skipstepd waits for nothing of the network" ordering no skipstepd DefaultDependencies
holds "they wait for the first attempt" ordering skipstep-attached.service skipstepd Wants
holds "skipstepd finds the boot rules" ordering skipstep-boot.service skipstepd After
holds "pf.conf is loaded where skipstepd attaches" \
	ordering skipstep-attached.service skipstep-rules After
holds "its addresses are there" ordering network.target skipstep-rules After
holds "what needs the network finds pf.conf" ordering network-online.target skipstep-rules Before
same "pf.conf is tried again" on-failure "$(setting skipstep-rules Restart)"
same "for as long as it takes" 0 "$(setting skipstep-rules StartLimitIntervalSec)"
same "no unit needs pf.conf to be right" "" \
	"$(grep -l 'Requires=.*skipstep-rules' "$ROOT"/packaging/*.service)"

# hook INTERFACE - prints the way in which an interface is attached
hook() {
	"$BIN/pfctl" -sI -vv -i "$1" | sed -n 's/.*Hook: *//p'
}
# all_attached - true if all interfaces are attached
all_attached() {
	[ "$(ip -o link show | grep -vc ' pf[a-z]*0:')" = "$("$BIN/pfctl" -sI -vv | grep -c 'Hook: *tc')" ]
}
boot_rules() {
	same "$1: the boot rules are in force" "block drop all" "$("$BIN/pfctl" -sr | head -n 1)"
	same "$1: and enabled" 1 "$("$BIN/pfctl" -si | grep -c '^Status: Enabled')"
	holds "$1: every interface is attached" all_attached
}
# rules - runs skipstep-rules.service once, and records its journal
rules() {
	local status result=success
	as_command skipstep-rules ExecStartPre 2>&1
	as_command skipstep-rules ExecStart 2>&1
	status=$?
	[ $status = 0 ] || {
		result=exit-code
		SERVICE_RESULT=$result as_command skipstep-rules ExecStopPost 2>&1
	}
	return $status
}

# boot - runs skipstep-boot.service, and records its journal
boot() {
	local number
	for number in 1 2; do
		as_command skipstep-boot ExecStart $number 2>&1 || return
	done
}

# boot.conf has an error, or does not exist
mkdir "$WORK/data"
echo pass >"$WORK/pf.conf"
for mistake in error none; do
	[ $mistake = none ] || echo "block prot tcp" >"$WORK/data/boot.conf"
	said=$(DATA=$WORK/data boot)
	same "boot.conf, $mistake: skipstep-boot.service starts" 0 $?
	same "the journal says what to do" 1 "$(grep -c 'boot.conf is not loaded:.*Mend' <<<"$said")"
	boot_rules "boot.conf, $mistake"
	same "the host takes ssh" 1 "$("$BIN/pfctl" -sr | grep -c 'port = ssh\|port = 22')"
	"$BIN/pfctl" -q --remove
	rm -f "$WORK/data/boot.conf"
done

# the rules by which nftables closes the host if the boot rules fail
closing=$(command_of skipstep-closed ExecStart)
holds "nft takes the rules" eval "$closing"
holds "also if they are there already" eval "$closing"
same "they block" 3 "$(nft list table inet skipstep_closed | grep -c 'policy drop')"
holds "nft removes them" eval "$(command_of skipstep-closed ExecStop)"
same "nothing is left" "" "$(nft list tables)"

# pf.conf needs more room than the default, and cannot be loaded yet
wanted() {
	cat <<-END_OF_RULES
		set limit { states 200000, src-nodes 20000 }
		pass from later0:network
	END_OF_RULES
	seq 12000 | sed 's/.*/block in proto udp to port &/'
}
wanted >"$WORK/pf.conf"
echo 'pass in on early0 prot tcp from host.invalid' >>"$WORK/pf.conf"

ip link add early0 type veth peer name early1
said=$(boot)
same "skipstep-boot.service starts" "0 " "$? $said"
boot_rules "before skipstepd"

# the boot rules begin with the failsafe list, and those of pf.conf do; a wrong list closes the host
own_etc
echo "pass in proto tcp to port 2222 no state" >"$ETC/pf.failsafe"
mount --bind "$ETC" /etc
said=$(boot)
same "a failsafe list: skipstep-boot.service starts" "0 " "$? $said"
same "its boot rules" 'anchor "failsafe" quick all,block drop all' \
	"$("$BIN/pfctl" -sr | head -n 2 | paste -sd ,)"
cp "$WORK/pf.conf" "$WORK/later.conf"
echo "block quick" >"$WORK/pf.conf"
said=$(rules)
same "pf.conf: it ends with" "0 " "$? $said"
same "its rules" 'anchor "failsafe" quick all,block drop quick all' \
	"$("$BIN/pfctl" -sr | paste -sd ,)"
same "the list" 1 "$("$BIN/pfctl" -a failsafe -sr | grep -c 'port = 2222')"
mv "$WORK/later.conf" "$WORK/pf.conf"
echo "block" >>"$ETC/pf.failsafe"
said=$(boot)
same "a wrong list: skipstep-boot.service fails, and nftables closes the host" 1 $?
same "the journal names its line" 2 \
	"$(grep -c '^/etc/pf.failsafe:2: .*write block rules into pf.conf' <<<"$said")"
umount /etc
said=$(boot 2>&1)
same "skipstep-boot.service without the list" 0 $?
boot_rules "without a list"

# an interface appears between the boot rules and skipstepd
ip link add between0 type veth peer name between1
# shellcheck disable=SC2046
service skipstepd $(command_of skipstepd ExecStart)
await 10 grep -q "skipstepd: ready" "$WORK/skipstepd.log" || die "skipstepd does not start"
same "between0 once skipstepd is ready" tc "$(hook between0)"
same "between1" tc "$(hook between1)"
ip link add late0 type veth peer name late1
holds "an interface that comes later is attached" await 3 eval '[ "$(hook late0)" = tc ]'

# mistakes in pf.conf
echo 'pass in on early0 prot tcp' >"$WORK/pf.conf"
said=$(rules)
same "a pf.conf with an error: it ends with" 1 $?
same "the journal names the line" 1 "$(grep -c 'pf.conf:1: syntax error' <<<"$said")"
same "and says what is in force, and what to do" 1 \
	"$(grep -c 'boot rules stay in force.*tried again' <<<"$said")"
same "nothing else" 3 "$(wc -l <<<"$said")"
boot_rules "an error"

echo 'pass from host.invalid' >"$WORK/pf.conf"
said=$(rules)
same "a name that does not resolve: it ends with" 1 $?
same "the journal has the name" 1 "$(grep -c 'host.invalid' <<<"$said")"
boot_rules "a name"

echo 'pass from later0:network' >"$WORK/pf.conf"
said=$(rules)
same "an interface that is not there: it ends with" 1 $?
boot_rules "an interface"

# skipstepd does not run
stop skipstepd KILL
ip link add later0 type veth peer name later1
same "nobody has attached it" "none: unattached, the guard drops its packets" "$(hook later0)"
echo 'pass from host.invalid' >"$WORK/pf.conf"
rules >/dev/null
same "no skipstepd and a pf.conf with an error: it ends with" 1 $?
boot_rules "no skipstepd"

ip address add 192.0.2.1/24 dev later0
echo 'pass from later0:network' >"$WORK/pf.conf"
said=$(rules)
same "once all is there the same pf.conf is loaded" "0 " "$? $said"
same "and in force" "pass inet from 192.0.2.0/24 to any flags S/SA" "$("$BIN/pfctl" -sr)"
wanted >"$WORK/pf.conf"
said=$(rules)
same "more states, source nodes and rules than by default" "0 " "$? $said"
same "of the states" 200000 "$("$BIN/pfctl" -sm | awk '$1 == "states" { print $NF }')"
ip link add last0 type veth peer name last1
same "nobody has attached it" "none: unattached, the guard drops its packets" "$(hook last0)"
said=$(as_command skipstep-rules ExecReload 2>&1)
same "a reload attaches it as well" "0  tc" "$? $said $(hook last0)"
verdict
