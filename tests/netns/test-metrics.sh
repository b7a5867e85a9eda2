# `pfctl -s metrics` of a filter at work, and the stable identities of rules: a load with another
# rule in front leaves them in rules, states, the log and metrics.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0
. "$(dirname "$0")/lab.sh"
gateway_between_client_and_server
web server 80

cat >"$WORK/rules" <<'END'
set loginterface lan0
set limit states 500
set timeout { icmp.first 300, icmp.error 300 }
table <bad> { 203.0.113.1 203.0.113.2 }
pass all
block in quick from <bad>
block in log on lan0 inet proto udp to port 7777
pass in on lan0 proto tcp to port { 80 8080 } label web
pass out proto sctp label "a \"quote\" and \slash"
anchor in on lan0 {
	pass in log inet proto icmp
}
END
filter gateway <"$WORK/rules"
daemon gateway
start log gateway "$BIN/pfctl" log --json "$WORK/gateway-pflog0"

# metric NAME[LABELS] - prints the value of a sample
metric() {
	pf gateway -s metrics | awk -v name="$1" 'substr($0, 1, length(name) + 1) == name " " {
		print $NF }'
}
# ids [EXPRESSION] - prints the identities of the rules that a Python expression selects
ids() {
	pf gateway --json -a '*' -s rules | python3 -c '
import json, sys
for rule in json.load(sys.stdin):
    if eval(sys.argv[1]):
        print(rule["id"])' "${1:-True}"
}

# state_ids PATTERN - prints the identities of the rules of the inbound states of a protocol, and
# their numbers
state_ids() {
	pf gateway --json -ss | python3 -c '
import json, sys
for state in json.load(sys.stdin):
    if state["protocol"] == sys.argv[1] and state["direction"] == "in":
        rule = state["rule"]
        print(state["rule_id"], rule if rule is None else rule["number"])' "$1"
}

# prometheus_reads_the_metrics - checks the output, the alerts and the dashboard with the parsers of
# Prometheus
prometheus_reads_the_metrics() {
	local samples database=$WORK/database
	# of OpenMetrics, whose import needs times
	pf gateway -s metrics >"$WORK/metrics"
	awk -v now="$(date +%s)" '{ print $0 (/^#/ ? "" : " " now) }' "$WORK/metrics" \
		>"$WORK/metrics-with-times"
	samples=$(grep -vc '^#' "$WORK/metrics")
	holds "Prometheus reads OpenMetrics" promtool tsdb create-blocks-from openmetrics \
		"$WORK/metrics-with-times" "$database"
	mkdir -p "$database/wal"
	promtool tsdb dump "$database" >"$WORK/dump"
	same "all samples" "$samples" "$(wc -l <"$WORK/dump")"
	same "a label with a quote and a backslash" 1 "$(grep -F '"skipstep_rule_states"' "$WORK/dump" |
		grep -cF 'label="a \"quote\" and \\slash"')"
	grep -v '^# EOF' "$WORK/metrics-with-times" >"$WORK/no-end"
	holds "not without the end" eval \
		'! promtool tsdb create-blocks-from openmetrics "$WORK/no-end" "$WORK/no-database"'
	# of the older format, which node_exporter's textfile collector reads: it does not connect a
	# counter of OpenMetrics with its help; and pf_exporter's name of a gauge is not a good name
	promtool check metrics <"$WORK/metrics" 2>&1 | sort -u >"$WORK/remarks"
	same "the older format" "" "$(grep -v -e '_total no help text$' \
		-e '^pf_state_total non-counter metrics' "$WORK/remarks")"
	same "all of these are counters" "$(sed -n 's/^# TYPE \(.*\) counter$/\1_total/p' \
		"$WORK/metrics" | sort)" "$(sed -n 's/ no help text$//p' "$WORK/remarks" | sort)"

	holds "Prometheus reads the alerts" promtool check rules \
		"$ROOT/packaging/prometheus/skipstep.rules.yml"
	test_alerts
	holds "the alerts when nothing is wrong, and when everything is" \
		promtool test rules "$WORK/alerts.yml"
	python3 - "$ROOT/packaging/grafana/skipstep.json" >"$WORK/dashboard.yml" <<'END_OF_PROGRAM'
import json, sys
def queries(value):
    if isinstance(value, list):
        for item in value:
            yield from queries(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "expr":
                yield item.replace("$__rate_interval", "1m").replace("$instance", "a")
            else:
                yield from queries(item)
rules = [{"record": f"q{number}", "expr": query}
         for number, query in enumerate(queries(json.load(open(sys.argv[1]))))]
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
END_OF_PROGRAM
	holds "Prometheus reads the queries of the dashboard" promtool check rules "$WORK/dashboard.yml"
}

# test_alerts - writes the alerts that Prometheus has to report to $WORK/alerts.yml. The firewall
# "well" is well, and "ill" is ill.
test_alerts() {
	python3 - "$ROOT/packaging/prometheus/skipstep.rules.yml" >"$WORK/alerts.yml" <<'END_OF_PROGRAM'
import json, sys
def firewall(instance, **values):
    for name, value in values.items():
        labels = {"reason": '{%s,reason="memory"}', "limit": '{%s,limit="states"}'}
        kind = "reason" if "reason" in name else "limit" if "limit" in name else ""
        series = name + labels.get(kind, "{%s}") % f'instance="{instance}"'
        yield {"series": series, "values": value}
series = [
    *firewall(
        "well", pf_enabled="1x30", skipstep_time_seconds="0+60x30",
        skipstep_limit_used="5x30", skipstep_limit="100x30",
        skipstep_reason_packets_total="7x30", skipstep_sweep_late_seconds="1x30",
        skipstep_log_lost_total="3x30", skipstep_trial_pending="0x30", skipstep_trial_failed="0x30"),
    *firewall(
        "ill", pf_enabled="0x30", skipstep_time_seconds="0x30",
        skipstep_limit_used="95x30", skipstep_limit="100x30",
        skipstep_reason_packets_total="0+1x30", skipstep_log_lost_total="0+1x30",
        skipstep_trial_pending="1x30", skipstep_trial_failed="1x30"),
    # the sweep of a filter that is disabled may be late
    *firewall("ill", skipstep_sweep_late_seconds="60x30"),
    *firewall("late", pf_enabled="1x30", skipstep_sweep_late_seconds="60x30"),
]
def alert(name, instance, severity, **labels):
    labels = {"alertstate": "firing", "instance": instance, "severity": severity, **labels}
    labels = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return {"labels": f'ALERTS{{alertname="{name}",{labels}}}', "value": 1}
alerts = [
    alert("SkipstepDisabled", "ill", "critical"),
    alert("SkipstepMetricsOld", "ill", "warning"),
    alert("SkipstepLimitNear", "ill", "warning", limit="states"),
    alert("SkipstepTableFull", "ill", "critical", reason="memory"),
    alert("SkipstepSweepLate", "late", "warning"),
    alert("SkipstepLogLost", "ill", "warning"),
    alert("SkipstepTrialPending", "ill", "warning"),
    alert("SkipstepTrialFailed", "ill", "warning"),
]
query = {"expr": 'ALERTS{alertstate="firing"}', "eval_time": "30m", "exp_samples": alerts}
print(json.dumps({"rule_files": [sys.argv[1]], "evaluation_interval": "1m", "tests": [
    {"interval": "1m", "input_series": series, "promql_expr_test": [query]}]}))
END_OF_PROGRAM
}

same "enabled" 1 "$(metric pf_enabled)"
same "a limit" 500 "$(metric 'skipstep_limit{limit="states"}')"
same "addresses of a table" 2 "$(metric 'pf_table_addresses{table="bad",anchor=""}')"
same "a connection" passed "$(probe_web client $SERVER4 80)"
same "ping" passed "$(probe_ping client $SERVER4)"
send_datagrams 3 client $SERVER4 7777
at_least 2 "states" "$(metric pf_state_total)"
at_least 2 "states, of the limit" "$(metric 'skipstep_limit_used{limit="states"}')"
same "blocked in, over IPv4" 3 "$(metric pf_ipv4_packets_in_blocked_total)"
same "the same, of the interface" 3 "$(metric \
	'skipstep_interface_packets_total{interface="lan0",family="inet",direction="in",verdict="block"}')"
same "states that rules with the label made" 1 \
	"$(metric 'skipstep_rule_states_created_total{id="web",label="web"}')"
blocked=$(ids '"udp" in rule["rule"]')
same "packets of a rule by its identity" 3 \
	"$(metric "skipstep_rule_packets_total{id=\"$blocked\",label=\"\",direction=\"in\"}")"
same "-s m" "$(pf gateway -s memory)" "$(pf gateway -s m)"

# logged NAME - prints the identities in the log, without repetitions
logged() {
	grep -o '"rule_id":[^,]*' "$WORK/log.log" | sort -u | xargs
}
icmp=$(ids '"icmp" in rule["rule"]')
await 3 eval '[ "$(grep -c rule_id "$WORK/log.log")" -ge 4 ]'
same "identities in the log" "$(printf 'rule_id:%s\n' "$blocked" "$icmp" | sort | xargs)" "$(logged)"
before=$(ids)
same "the rule of the state of ping" "$icmp 0" "$(state_ids icmp)"
same "that of the connection" "web 3" "$(state_ids tcp)"

# a rule, an anchor and a table in front
sed 's/^pass all/table <good> { 203.0.113.9 }\npass quick from <good>\nanchor on wan0 {\n\tmatch\n}\n&/' \
	"$WORK/rules" >"$WORK/more"
filter gateway <"$WORK/more"
same "identities after a load with more rules" "$before" \
	"$(ids | grep -Fx "$before")"
same "and three more" 3 "$(ids | grep -vFxc "$before")"
same "states of rules before the load" "$icmp None, web None" \
	"$(state_ids icmp), $(state_ids tcp)"
filter gateway <"$WORK/more"
same "also after another load" "$icmp None" "$(state_ids icmp)"
send_datagrams 1 client $SERVER4 7777
pf gateway -q -F states
same "ping" passed "$(probe_ping client $SERVER4)"
same "a new state of the rule" "$icmp 0" "$(state_ids icmp)"
await 3 eval '[ "$(grep -c rule_id "$WORK/log.log")" -ge 5 ]'
await 3 eval '[ "$(grep -c icmp "$WORK/log.log")" -ge 2 ]'
same "numbers of the rule in the log" 2 \
	"$(grep 7777 "$WORK/log.log" | grep -o '"rule":[0-9]*' | sort -u | wc -l)"
same "its identity has not" "$(printf 'rule_id:%s\n' "$blocked" "$icmp" | sort | xargs)" "$(logged)"

if command -v promtool >/dev/null; then
	prometheus_reads_the_metrics
else
	echo "promtool is not installed: not asked"
fi

# a load on trial
pf gateway -q -f "$WORK/rules" --confirm 60
same "a load on trial" 1 "$(metric skipstep_trial_pending)"
at_least 50 "seconds left" "$(metric skipstep_trial_left_seconds)"
pf gateway -q confirm
same "no load on trial" "0 0" \
	"$(metric skipstep_trial_pending) $(metric skipstep_trial_left_seconds)"

pf gateway -q -d
same "disabled" 0 "$(metric pf_enabled)"
verdict
