# pftop in a terminal of 80x24: its views, keys and filters, a killed state, the way from a rule to
# its states and its log, resizes, signals, and ssh. UPDATE=1 writes the pictures of
# docs/howto/pftop.md.
# long: waits for the updates of a screen
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
command -v tmux >/dev/null || unable "no tmux here"
gateway_between_client_and_server
web server 80 8080

conf=$WORK/pf.conf
# the escape sequence in the second label would clear the screen
printf '%s\n' 'table <bad> persist { 192.0.2.0/24 198.51.100.7 }' \
	'queue main on wan0 bandwidth 100M' \
	'queue std parent main bandwidth 100M default' \
	'block in log on lan0 proto tcp to port 8080 label "alternative web"' \
	$'block in on lan0 proto udp to port 5000 label "evil\e[2J"' \
	'block in on lan0 from <bad>' \
	'pass in on lan0 proto tcp to port 80 label web' \
	'pass in on lan0 proto icmp' \
	'pass inet6 no state' \
	'pass out inet' >"$conf"
pf gateway -q -ef "$conf" || die "the rules were not loaded"
daemon gateway
log=$WORK/gateway-pflog

# t COMMAND... - runs a command of tmux, whose server runs on the gateway
t() {
	on gateway env LC_ALL=C.UTF-8 tmux -u -S "$WORK/tmux" -f /dev/null "$@"
}
# screen [OPTION]... - prints the screen
screen() {
	t capture-pane -p "$@"
}
# keys KEY... - presses keys
keys() {
	t send-keys "$@"
}
# seen PATTERN [SECONDS] - true if a line of the screen matches soon (extended regex)
seen() {
	await "${2:-5}" eval 'screen | grep -Eq -- "$pattern"'
}
# shows WHAT PATTERN - checks that a line of the screen matches soon
shows() {
	local pattern=$2
	seen "$pattern" || screen
	holds "$1" eval 'screen | grep -Eq -- "$pattern"'
}
# size COLUMNS LINES - resizes the terminal
size() {
	t resize-window -x "$1" -y "$2"
}
# pftop_process - prints the process id of pftop
pftop_process() {
	pgrep -x -P "$(t display -p '#{pane_pid}')" pftop
}
# pictured NAME - checks that the picture of the page has the lines of the screen, numbers apart;
# UPDATE=1 writes it
pictured() {
	python3 "$HERE/picture.py" "$ROOT/docs/howto/pftop.md" "$1" "${UPDATE:-}" <<<"$(screen)"
}

start connection client sh -c "{ printf 'GET /'; sleep 60; } | nc $SERVER4 80"
on client ping -q -c 2 -i 0.2 "$SERVER4" >/dev/null || die "no ping"
await 3 eval '[ "$(state_count gateway tcp)" = 2 ]' || die "no connection"

# a shell with job control, as a user has it
t new-session -d -x 80 -y 24 "env PS1='shell> ' LC_ALL=C.UTF-8 NO_COLOR= TERM=tmux-256color \
	bash --norc --noprofile -i"
shows "a shell" '^shell> *$'
keys "$BIN/pftop -s 1 -l $log" Enter
shows "states" '^pftop: 1-4 of 4, view default, order none, every 1 s +[0-9:]{8}$'
shows "a connection" "^tcp  In  $CLIENT4:[0-9]+ +$SERVER4:80 +4:4 "
shows "the state of the cursor" '^(all|lan0) (tcp|icmp) .* (ESTABLISHED:ESTABLISHED|0:0)$'
shows "figures" '^4 of [0-9]+ states, 0 new/s'
shows "keys" '^Enter rule  k kill  l log  f filter  o order'
same "the rights that pftop has" 0000008000000000 \
	"$(sed -n 's/^CapEff:\t//p' "/proc/$(pftop_process)/status")"
keys B
shows "the order" 'order bytes'
holds "the picture of states" pictured states

# a filter in pf's words
keys f
shows "an input" '^filter: _$'
keys "proto tcp port 80 80" Enter
shows "a wrong filter" '^syntax error$'
keys C-u "proto icmp" Enter
shows "one protocol" '^pftop: 1-2 of 2, '
shows "the filter" '^filter: proto icmp, 4 of '
keys f C-u Enter
shows "no filter" '^pftop: 1-4 of 4, '

# sizes
size 140 40
shows "a wide terminal" "$SERVER4:80 +ESTABLISHED:ESTABLISHED +00:00:"
size 40 8
shows "a small terminal" '^Enter rule  k kill'
size 30 5
shows "too small" '^30x5 is too small: pftop needs'
size 80 24
shows "as before" '^tcp  In '

# killing
keys f "in proto tcp port 80" Enter
shows "the state" '^pftop: 1-1 of 1, '
keys k
shows "a question" "^Kill it\? \[y/N\] all tcp $SERVER4:80 <- $CLIENT4:[0-9]+ ESTABLISHED:"
keys n
shows "no" '^nothing was killed$'
same "states" 2 "$(state_count gateway tcp)"
keys k y
shows "yes" '^killed the state$'
same "states" 1 "$(state_count gateway tcp)"
keys f C-u Enter

# rules, their states and their log
same "blocked" "no answer" "$(probe_web client "$SERVER4" 8080)"
same "passed" passed "$(probe_web client "$SERVER4" 80)"
keys 5
shows "rules" '^pftop: 1-7 of 7, view rules, '
shows "hits" '^0 +[█▏▎▍▌▋▊▉]+ +[1-9][0-9]* .* block drop in log on lan0'
shows "no hits" '^2 +0 .* block drop in on lan0 from <bad> '
shows "the place of the rule" '^rule 0 \(pf.conf:4, label alternative web\): packets [0-9]+, evaluations '
holds "the picture of rules" pictured rules
keys l
shows "the log" '^pftop: 1-[0-9]+ of [0-9]+, view log of rule 0, '
shows "a logged packet" "^[0-9:]{8} block +in +lan0 +match +tcp $CLIENT4:"
keys Escape
shows "back" 'view rules'
keys Down Down Down Enter
shows "states of a rule" '^filter: rule 3, '
shows "only these" "^tcp  In  $CLIENT4:"
keys l
shows "a rule without log" '^rule 3 does not log: add log to it'
keys Enter
shows "the rule of a state" '^rule 3 \(pf.conf:7, label web\)'
keys 6
shows "labels are harmless" 'evil\\u\{1b\}\[2J'

# a load, queues, interfaces, tables
pf gateway -q -f - <<<"pass" || die "no load"
shows "a load" '^pftop: 1-1 of 1, view label'
pf gateway -q -f "$conf" || die "no load"
shows "another load" '^pftop: 1-7 of 7, view label'
keys 8
shows "queues" '^ std +wan0 +[0-9]+ '
keys 9
shows "interfaces" '^lan0 +[0-9]+ +5 '
keys t
shows "tables" '^bad +-pa-r-- +2 '
keys Left
shows "the view before" 'view interfaces'

# drops
keys d
shows "no drops" '^No packet was dropped since this view is open'
same "blocked" "no answer" "$(probe_web client "$SERVER4" 8080)"
shows "drops" '^ +[1-9][0-9]* +[0-9]+ match +In +lan0 +0 pf.conf:4 '
shows "the dropped packet" "^tcp $CLIENT4:[0-9]+ > $SERVER4:8080 S"
holds "the picture of drops" pictured drops
keys f "reason short" Enter
shows "a reason" '^filter: reason short, '
keys 0
shows "the filter of the rule" '^filter: rule 3, '
keys f C-u Enter

# the help, a pause, and the filter's own changes
keys h
shows "help" '^k +kill the state$'
keys x p
shows "a pause" 'PAUSED'
keys p
pf gateway -q -d
shows "a disabled filter" '^filter disabled, '
pf gateway -q --remove
shows "no filter" '^No rules are loaded. Load rules and enable the filter: pfctl -ef'
pf gateway -q -ef "$conf"
shows "a new filter" '^pftop: .* view default'
pf gateway -q -f "$conf" --confirm 60
shows "a load on trial" '^on trial: [0-9]+ s to pfctl confirm, '
pf gateway confirm

# the terminal is as before
keys C-z
shows "stopped" '^\[1\]\+  Stopped .*pftop'
same "the screen of the shell" 0 "$(t display -p '#{alternate_on}')"
keys fg Enter
shows "continued" '^pftop: .* view default'
keys q
shows "the shell again" '^shell> *$'
same "screen, cursor" "0 1" "$(t display -p '#{alternate_on} #{cursor_flag}')"
keys "stty -a | grep -o '[- ]echo\b'; clear; NO_COLOR=1 $BIN/pftop -v rules" Enter
shows "rules without colours" 'block drop in log'
# 39 is the terminal's own colour
same "colours" 0 "$(screen -e | grep -c $'\e\[[0-9;]*3[0-8]m')"
kill "$(pftop_process)"
shows "ended by a signal" '^shell> *$'
same "screen, cursor" "0 1" "$(t display -p '#{alternate_on} #{cursor_flag}')"
keys "stty -a | tr ' ' '\n' | grep -x -e -*echo" Enter
shows "the terminal echoes" '^echo$'

# over ssh, where the locale is unknown
if [ -x /usr/sbin/sshd ]; then
	ssh_server gateway
	same "blocked" "no answer" "$(probe_web client "$SERVER4" 8080)"
	keys "clear; nsenter --net=/run/netns/$LAB-client ${SSH[*]} -tt root@192.168.100.1 \
$BIN/pftop -s 1 -v rules" Enter
	shows "bars of ASCII" '^0 +#+ +[1-9]'
	size 100 30
	shows "a resize" '^pftop: 1-7 of 7, view rules, order none, every 1 s {25}'
	keys q
	size 80 24
	shows "the shell again" '^shell> *$'
fi

# not root
same "another user" \
	"pftop: the packet filter: Permission denied (only root may read or change it)" \
	"$(on gateway setpriv --reuid nobody --clear-groups "$BIN/pftop" -b 2>&1)"
batch=$(on gateway env LC_ALL=C.UTF-8 "$BIN/pftop" -b -a -v rules -w 132)
holds "batch" grep -Eq '^pftop: 1-7 of 7, view rules' <<<"$batch"
same "lines of batch" 10 "$(wc -l <<<"$batch")"
same "no terminal" "$(wc -l <<<"$batch")" "$(on gateway "$BIN/pftop" -v rules | wc -l)"
verdict
