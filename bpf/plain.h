/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Rules asked plainly: what most rule sets say of most packets that no state knows hangs on nothing
 * but their headers, and is no more than to let them go as they are, or to drop them in silence.
 * That can be known without an skb, so in XDP too, and before anything else has happened to the
 * packet.
 *
 * A plain walk tests rules as any other does. It gives up where a rule wants more than headers to
 * be tested (PF_FAST_PATH_TEST), or a `match` rule matches; who decides must want no more than
 * PF_FAST_PATH_VERDICT, or PF_FAST_PATH_STATE: nothing else is done with the first packet of most
 * states. The walk notes its counts and does not count, because the slow path begins anew if the
 * walk gives up. If the walk ends and only the verdict is not plain, create.h uses the walk.
 */
#ifndef PF_PLAIN_H
#define PF_PLAIN_H

#include "act.h"
#include "config.h"
#include "create.h"
#include "interface.h"
#include "kern.h"
#include "limiter.h"
#include "memo.h"
#include "reason.h"
#include "rules.h"
#include "scratch.h"
#include "search.h"
#include "table.h"

enum pf_plain_verdict {
	PF_PLAINLY_UNKNOWN = 0,		/* that is for the long way */
	PF_PLAINLY_PASS,
	PF_PLAINLY_DROP,
	PF_PLAINLY_KEEP,		/* pass, once keep.h has made a state of it */
};

/* One step of the walk: looks at the rule s->test.next, as visit_rule does. */
static int visit_plainly(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	struct pf_test_ctx *test = &s->test;
	struct pf_rule *rule;
	int result;

	rule = next_rule(s, loop->map);
	if (!rule)
		return is_walked(test) ? 1 : 0;
	if (!(rule->fast_path & PF_FAST_PATH_TEST)) {
		test->failed = 1;
		return 1;
	}
	note_visit(s, rule->slot, PF_VISIT_RULE);
	result = test_rule(NULL, s, rule, true);
	if (s->search.goes_on) {
		if (result == MATCHES)
			take_candidate(&s->search);
		return 0;
	}
	if (result != MATCHES) {
		pass_over(test, rule, result);
		return 0;
	}
	if (rule->flags & PF_RULE_ANCHOR) {
		if (call_anchor(test, rule))
			return 0;
		test->failed = 1;
		return 1;
	}
	if (rule->action == PF_ACTION_MATCH) {
		test->failed = 1;
		return 1;
	}
	test->decided = test->next++;
	test->decided_by = test->caller;
	test->found = 0;
	test->over = !!(rule->flags & PF_RULE_QUICK);
	return !has_rules_left(test);
}

/* Walks the rules, and notes how it went in s->plain. */
__inline void walk_plainly(struct pf_scratch *s, struct pf_plain_walk *walk, void *rules,
			   const struct pf_config *config)
{
	struct pf_loop loop = { .s = s, .map = rules };
	struct pf_test_ctx *test = &s->test;

	__builtin_memset(test, 0, offsetof(struct pf_test_ctx, match));
	if (sources_leave())	/* saves the call */
		let_sources_leave();
	test->lists[PF_LIST_FILTER].end = config->rules;
	walk->count = walk->asked_table = 0;
	s->counts_later = 1;
	begin_walk(s, config);
	/* most walks are a step, for which nobody need be called back */
	if (!visit_plainly(0, &loop))
		bpf_loop(config->steps, visit_plainly, &loop, 0);
	s->counts_later = 0;
	walk->generation = s->generation;
	walk->known = !test->failed && !has_rules_left(test) && walk->count <= PF_VISITS;
	walk->decided = test->decided;
	walk->decided_by = test->decided_by;
}

/* Whether that is all that the rule wants of the packet. Segments that begin a connection have
 * options, which are read on the long way alone. */
__inline bool is_plain(const struct pf_rule *rule, const struct pf_pdesc *pd)
{
	return rule->fast_path & PF_FAST_PATH_VERDICT ||
	       (rule->fast_path & PF_FAST_PATH_STATE && pd->protocol == IPPROTO_UDP);
}

/* Names the rule that the walk has come to. False if it wants more than a plain verdict, or the
 * walk did not come to its end. */
__inline bool decide_plainly(struct pf_scratch *s, struct pf_plain_walk *walk, void *rules)
{
	struct pf_rule *rule;

	if (!walk->known)
		return false;
	forget_rule(s);
	walk->keeps = 0;
	if (walk->decided != NO_RULE) {
		rule = bpf_map_lookup_elem(rules, &walk->decided);
		if (rule && s->test.found)
			note_visit(s, rule->slot, PF_VISIT_RULE);
		if (!rule || !is_plain(rule, &s->pd))
			return false;
		walk->keeps = rule->fast_path & PF_FAST_PATH_STATE;
		name_rule(s, rule);
	}
	walk->rule = s->rule;
	return true;
}

__inline int verdict_of(const struct pf_plain_walk *walk)
{
	if (walk->keeps)
		return PF_PLAINLY_KEEP;
	return walk->rule.action == PF_ACTION_BLOCK ? PF_PLAINLY_DROP : PF_PLAINLY_PASS;
}

/* The verdict of a walk of the packet, which is remembered where memos of packets like it are,
 * unless a state will know those. */
__global int judge_plainly(struct pf_scratch *s)
{
	struct pf_plain_walk *walk;
	struct pf_config *config;
	__u32 generation;
	void *rules;

	if (!s)
		return PF_PLAINLY_UNKNOWN;
	generation = pf_copy(s->generation);
	config = pf_config(generation);
	rules = bpf_map_lookup_elem(&rulesets, &generation);
	if (!config || !config->fast_path || !rules)
		return PF_PLAINLY_UNKNOWN;
	walk = &s->plain[s->pd.direction == PF_OUT];
	walk_plainly(s, walk, rules, config);
	if (!decide_plainly(s, walk, rules))
		return PF_PLAINLY_UNKNOWN;
	if (!walk->keeps)
		keep_memo(s, walk);
	return verdict_of(walk);
}

/* What the rules say of the packet: enum pf_plain_verdict. Nothing is counted. */
__inline int ask_plainly(struct pf_scratch *s)
{
	struct pf_plain_walk *walk = &s->plain[s->pd.direction == PF_OUT];
	struct pf_memo *memo;

	set_memo_key(&s->memo_key, s);
	memo = find_memo(s);
	if (!memo)
		return judge_plainly(s);
	recall_memo(walk, memo);
	return verdict_of(walk);
}

/* The plain verdict stands: counts the walk, and the packet. */
__global int count_plainly(struct pf_scratch *s)
{
	const struct pf_plain_walk *walk;

	if (!s)
		return 0;
	walk = &s->plain[s->pd.direction == PF_OUT];
	s->rule = walk->rule;
	s->has_state = s->made;
	s->against_state = s->cross_to = s->crosses_back = 0;
	s->match_count = 0;
	count_state(PF_COUNT_SEARCHES);
	count_visits_of(walk);
	reason_count(s, PF_REASON_MATCH);
	if (s->refused)
		reason_count(s, s->refused);
	count_packet(s, walk->rule.action != PF_ACTION_BLOCK && !s->refused);
	return 0;
}

#endif /* PF_PLAIN_H */
