/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The walk over the rules (pf-semantics section 5): the last rule that matches decides, `quick`
 * ends the walk, no match is a pass.
 *
 * A rule's tests are made in pf's order, cheapest first. With skip steps a mismatch jumps to the
 * next rule that differs in the parameter that failed; the linear evaluator goes to the next rule.
 *
 * All rules stand in one array, the main rule set first. An anchor rule that matches calls others:
 * it leads to a range of the array, and at its end the walk goes on behind the anchor rule. The
 * rule sets that a wildcard means stand one behind the other, so they are one range too.
 *
 * The compiled evaluator walks the same way, but where rules do nothing but decide it searches, and
 * of others it passes over those that cannot match (search.h).
 *
 * Before the filter rules come the lists of old rules, `scrub`, `nat` and its like, as in FreeBSD:
 * the first rule that matches ends a list, and what it makes of the packet is what the filter rules
 * see.
 */
#ifndef PF_RULES_H
#define PF_RULES_H

#include "fingerprint.h"
#include "interface.h"
#include "kern.h"
#include "limiter.h"
#include "log.h"
#include "owner.h"
#include "random.h"
#include "scratch.h"
#include "search.h"
#include "table.h"
#include "time.h"
#include "timeout.h"
#include "translate.h"
#include "usage.h"

/* the inner maps are made to the measure of their rule set */
struct rules_of_one_set {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_rule);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PF_COPIES);
	__type(key, __u32);
	__array(values, struct rules_of_one_set);
} rulesets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PF_RULE_SLOTS);
	__type(key, __u32);
	__type(value, struct pf_rule_stats);
} rule_stats SEC(".maps");

/* result of a rule's tests: the parameter that failed (enum pf_skip), or one of these */
#define MATCHES		(-1)
#define MISMATCH	PF_SKIP_MAX	/* in something that has no skip steps */
#define REFUSED		(PF_SKIP_MAX + 1)	/* a limiter drops the packet */

__inline bool match_masked(const struct pf_address *want, const struct pf_addr *address)
{
	const __u32 *low = (const __u32 *)want->low, *mask = (const __u32 *)want->high;

	return (address->word[0] & mask[0]) == low[0] && (address->word[1] & mask[1]) == low[1] &&
	       (address->word[2] & mask[2]) == low[2] && (address->word[3] & mask[3]) == low[3];
}

/* -1, 0, 1: a before, equal to, behind b */
__inline int compare_address(const __u32 *a, const __u32 *b)
{
	for (int i = 0; i < 4; i++)
		if (a[i] != b[i])
			return bpf_ntohl(a[i]) < bpf_ntohl(b[i]) ? -1 : 1;
	return 0;
}

/* An address criterion of numbers, or of a table. */
__global int match_address(struct pf_scratch *s, const struct pf_address *want, __u32 is_source)
{
	struct pf_addr *address;
	bool match = false;

	if (!s || !want)
		return 0;
	address = is_source ? &s->pd.source : &s->pd.destination;
	switch (want->kind) {
	case PF_ADDRESS_MASK:
		match = match_masked(want, address);
		break;
	case PF_ADDRESS_RANGE:
		match = compare_address((const __u32 *)want->low, address->word) <= 0 &&
			compare_address(address->word, (const __u32 *)want->high) <= 0;
		break;
	case PF_ADDRESS_TABLE:
		match = match_table(s, want->table, address);
		break;
	}
	return match != want->negated;
}

/* One of routes. */
__global int match_way(struct __sk_buff *skb, struct pf_scratch *s, const struct pf_address *want,
		       __u32 is_source)
{
	bool match;

	if (!s || !want)
		return 0;
	/* a destination comes in by no interface, so nothing can be wrong with it */
	if (want->kind == PF_ADDRESS_URPF_FAILED && !is_source)
		match = true;
	else
		match = match_route(skb, s, want->kind, is_source ? &s->pd.source : &s->pd.destination);
	return match != want->negated;
}

__inline bool match_host(struct __sk_buff *skb, struct pf_scratch *s,
			 const struct pf_address *want, bool is_source, const bool plainly)
{
	switch (want->kind) {
	case PF_ADDRESS_ANY:
		return !want->negated;
	case PF_ADDRESS_NEVER:
		return false;
	case PF_ADDRESS_NO_ROUTE:
	case PF_ADDRESS_URPF_FAILED:
		if (!plainly)
			return match_way(skb, s, want, is_source);
	}
	return match_address(s, want, is_source);
}

__inline bool match_port(const struct pf_port *want, __be16 packet)
{
	__u16 port = bpf_ntohs(packet);

	switch (want->op) {
	case PF_PORT_ANY:
		return true;
	case PF_PORT_INSIDE:
		return port > want->low && port < want->high;
	case PF_PORT_OUTSIDE:
		return port < want->low || port > want->high;
	case PF_PORT_RANGE:
		return port >= want->low && port <= want->high;
	case PF_PORT_EQ:
		return port == want->low;
	case PF_PORT_NE:
		return port != want->low;
	case PF_PORT_LT:
		return port < want->low;
	case PF_PORT_LE:
		return port <= want->low;
	case PF_PORT_GT:
		return port > want->low;
	case PF_PORT_GE:
		return port >= want->low;
	}
	return false;
}

__inline bool match_icmp(const struct pf_rule *rule, const struct pf_test_ctx *test)
{
	if (rule->flags & PF_RULE_MATCH_ICMP_TYPE && rule->icmp_type != test->icmp_type)
		return false;
	if (rule->flags & PF_RULE_MATCH_ICMP_CODE && rule->icmp_code != test->icmp_code)
		return false;
	/* a state must not begin with an answer */
	return !(rule->flags & PF_RULE_KEEP_STATE && test->icmp_reply &&
		 !(rule->flags & PF_RULE_SLOPPY));
}

__inline bool asks_for_ports(const struct pf_rule *rule)
{
	return rule->source_port.op != PF_PORT_ANY || rule->destination_port.op != PF_PORT_ANY;
}

/* What only the first fragment of a packet has: a rule that asks for it matches no fragment. */
__inline bool match_fragment(const struct pf_rule *rule, __u8 protocol)
{
	return !asks_for_ports(rule) && !(protocol == IPPROTO_TCP && rule->tcp_mask) &&
	       !(protocol != IPPROTO_TCP && rule->os) &&
	       !(rule->flags & (PF_RULE_MATCH_ICMP_TYPE | PF_RULE_MATCH_ICMP_CODE));
}

/* Returns MATCHES if a rule matches the packet, or the criterion that does not. `plainly`: the rule
 * has PF_FAST_PATH_TEST, and there need be no skb. */
__inline int test_rule(struct __sk_buff *skb, struct pf_scratch *s, const struct pf_rule *rule,
		       const bool plainly)
{
	const struct pf_pdesc *pd = &s->pd;
	__u32 flags = rule->flags;

	if (match_interface(rule->interface_match, rule->interface, &s->interface) ==
	    !!(flags & PF_RULE_INTERFACE_NOT))
		return PF_SKIP_INTERFACE;
	if (rule->direction && rule->direction != pd->direction)
		return PF_SKIP_DIRECTION;
	if (rule->interface_match == PF_IFMATCH_RDOMAIN && rule->interface != pd->rdomain)
		return PF_SKIP_RDOMAIN;
	if (rule->family && rule->family != pd->family)
		return PF_SKIP_FAMILY;
	if (rule->protocol && rule->protocol != pd->protocol)
		return PF_SKIP_PROTOCOL;
	if (!match_host(skb, s, &rule->source, true, plainly))
		return PF_SKIP_SRC_ADDRESS;
	if (!match_host(skb, s, &rule->destination, false, plainly))
		return PF_SKIP_DST_ADDRESS;

	switch (pd->virtual_protocol) {
	case PF_VPROTO_FRAGMENT:
		if (!match_fragment(rule, pd->protocol))
			return MISMATCH;
		break;
	case IPPROTO_TCP:
		if ((pd->tcp.flags & rule->tcp_mask) != rule->tcp_flags)
			return MISMATCH;
		/* fallthrough */
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
		/* nobody reads the ports of SCTP as long as no rule names one: they are 0 then */
		if (!pd->source_port && pd->virtual_protocol == IPPROTO_SCTP &&
		    asks_for_ports(rule))
			return MISMATCH;
		if (!plainly && rule->os && !is_from_system(skb, s, rule->os))
			return MISMATCH;
		if (!match_port(&rule->source_port, pd->source_port))
			return PF_SKIP_SRC_PORT;
		if (!match_port(&rule->destination_port, pd->destination_port))
			return PF_SKIP_DST_PORT;
		if (!plainly && !match_owner(skb, s, rule))
			return MISMATCH;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (!match_icmp(rule, &s->test))
			return MISMATCH;
		/* fallthrough */
	default:
		/* a rule without a protocol may ask for this, and means TCP and UDP */
		if (asks_for_ports(rule) || rule->os)
			return MISMATCH;
		if (!plainly && !match_owner(skb, s, rule))
			return MISMATCH;
	}

	if (flags & PF_RULE_FRAGMENT && pd->virtual_protocol != PF_VPROTO_FRAGMENT)
		return MISMATCH;
	if (flags & PF_RULE_MATCH_TOS && rule->tos != pd->tos)
		return MISMATCH;
	if (plainly)
		return MATCHES;
	/* a draw from 1 to 2^32 - 2, as OpenBSD's */
	if (flags & PF_RULE_PROBABILITY && rule->probability <= random_draw(0xfffffffe) + 1)
		return MISMATCH;
	if (rule->tagged) {
		if (!s->test.act.tag)
			s->test.act.tag = s->tag;
		if ((rule->tagged == s->test.act.tag) == !!(flags & PF_RULE_TAGGED_NOT))
			return MISMATCH;
	}
	if (rule->received_match != PF_IFMATCH_NONE &&
	    (s->received.id && match_interface(rule->received_match, rule->received_on,
					       &s->received)) == !!(flags & PF_RULE_RECEIVED_NOT))
		return MISMATCH;
	if (flags & PF_RULE_MATCH_PRIO && rule->prio != s->prio)
		return MISMATCH;
	if (rule->limiter[PF_LIMITER_STATE] || rule->limiter[PF_LIMITER_SOURCE]) {
		switch (ask_limiters(s, rule)) {
		case LIMITER_ADMITS:
			break;
		case LIMITER_DROPS:
			return REFUSED;
		default:
			return MISMATCH;
		}
	}
	/* must be the last: only packets that match are counted */
	if (flags & PF_RULE_MAX_PKT_RATE && exceeds_pkt_rate(rule->slot, s->now))
		return MISMATCH;
	return MATCHES;
}

/* ---- what a matching rule does --------------------------------------------------------------- */

#define LOGS	(PF_RULE_LOG | PF_RULE_LOG_ALL | PF_RULE_LOG_MATCHES)

__inline void merge_actions(struct pf_test_ctx *test, const struct pf_rule *rule)
{
	__u32 flags = rule->flags;

	test->log |= flags & LOGS;
	if (flags & PF_RULE_NO_DF)
		test->act.flags |= PF_STATE_NO_DF;
	if (flags & PF_RULE_RANDOM_ID)
		test->act.flags |= PF_STATE_RANDOM_ID;
	if (flags & PF_RULE_REASSEMBLE_TCP)
		test->act.flags |= PF_STATE_REASSEMBLE_TCP;
	if (flags & PF_RULE_ALLOW_OPTS)
		test->act.flags |= PF_STATE_ALLOW_OPTS;
	if (flags & PF_RULE_SET_TOS) {
		test->act.flags |= PF_STATE_SET_TOS;
		test->act.set_tos = rule->set_tos;
	}
	if (flags & PF_RULE_SET_PRIO) {
		test->act.flags |= PF_STATE_SET_PRIO;
		test->act.set_prio[0] = rule->set_prio[0];
		test->act.set_prio[1] = rule->set_prio[1];
	}
	if (rule->queue[0]) {
		test->act.queue[0] = rule->queue[0];
		test->act.queue[1] = rule->queue[1];
	}
	if (rule->delay)
		test->act.delay = rule->delay;
	if (rule->min_ttl)
		test->act.min_ttl = rule->min_ttl;
	if (rule->max_mss)
		test->act.max_mss = rule->max_mss;
	if (rule->max_pkt_size)
		test->act.max_pkt_size = rule->max_pkt_size;
	if (rule->rtable)
		test->act.rtable = rule->rtable;
}

/* Rules of old times, which normalise and translate before the filter rules are asked */
__inline bool is_old(__u8 action)
{
	return action >= PF_ACTION_SCRUB && action <= PF_ACTION_NO_RDR;
}

/* A match rule acts at once and is remembered. An old rule that translates does the same; one that
 * changes nothing has not matched. False if there are more of them than we can, or it cannot
 * translate. */
__inline bool apply_match_rule(struct __sk_buff *skb, struct pf_scratch *s,
			       const struct pf_rule *rule)
{
	__u32 i = s->test.match_count;

	/* Differs from OpenBSD: linux.md, "Match rules" */
	if (i >= PF_MATCH_RULES)
		return false;
	if (!translate(s, rule)) {
		s->test.exhausted = 1;
		return false;
	}
	if (rule->pools)
		forget_candidates(s);
	if (is_old(rule->action) && rule->action != PF_ACTION_SCRUB) {
		if (!has_new_ends(&s->pd))
			return true;
		s->test.needs_state = s->test.old_ends = 1;
	}
	s->test.match[i].slot = rule->slot;
	s->test.match[i].log = log_flags(rule);
	s->test.match[i].log_to = rule->log_to;
	s->test.match[i].action = rule->action;
	s->test.match_log_matches[i] = !!(rule->flags & PF_RULE_LOG_MATCHES);
	s->test.match_count = i + 1;
	merge_actions(&s->test, rule);
	if (rule->flags & LOGS) {
		reason_count(s, PF_REASON_MATCH);
		log_place(s, s->test.caller.number, rule->anchor);
		pf_log(skb, s, rule->number, rule->action,
		       log_target(rule->log_to, s->test.match[i].log));
	}
	return true;
}

/* Differs from OpenBSD: linux.md, "Evaluations" */
__inline void count_evaluation(__u32 slot)
{
	struct pf_rule_stats *stats = bpf_map_lookup_elem(&rule_stats, &slot);

	if (stats)
		stats->evaluations++;
}

/* Counts what a plain walk has met. */
__inline void count_visits_of(const struct pf_plain_walk *walk)
{
	for (__u32 i = 0; i < PF_VISITS && i < walk->count; i++) {
		if (walk->visit[i].kind == PF_VISIT_RULE)
			count_evaluation(walk->visit[i].slot);
		else
			count_answer(walk->visit[i].slot, walk->visit[i].kind == PF_VISIT_MATCH);
	}
}

/* The same, where there is no room on the stack. */
__global int count_visits(struct pf_scratch *s)
{
	if (s)
		count_visits_of(&s->plain[s->pd.direction == PF_OUT]);
	return 0;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Goes to the beginning of a list, or of the next one that is not empty. The last is the
 * filter's. */
__inline void enter_list(struct pf_test_ctx *test, __u32 list)
{
	for (__u32 i = 0; i < PF_LIST_FILTER; i++)
		if (list == i && test->lists[i].first == test->lists[i].end)
			list++;
	if (list > PF_LIST_FILTER)
		return;
	test->list = list;
	test->next = test->lists[list].first;
	test->end = test->lists[list].end;
	test->depth = 0;
	test->caller.index = NO_RULE;
	test->caller.slot = PF_IDLE_SLOT;
	test->caller.number = -1;
	test->caller.quick = 0;
}

/* An anchor rule matched: its rules are next. False if that leads too deep. */
__inline bool call_anchor(struct pf_test_ctx *test, const struct pf_rule *rule)
{
	__u32 depth = test->depth;
	struct pf_frame *frame;

	if (depth >= PF_MAX_DEPTH)
		return false;
	frame = &test->frames[depth];
	frame->caller = test->caller;
	frame->end = test->end;
	test->depth = depth + 1;
	test->caller.index = test->next;
	test->caller.slot = rule->slot;
	test->caller.number = rule->number;
	test->caller.quick = rule->flags & PF_RULE_QUICK;
	test->next = rule->call_first;
	test->end = rule->call_end;
	return true;
}

/* A rule set is through: goes on behind the anchor rule that called it, or with the next list.
 * False if there is none, or that rule is quick and one of the rules it called itself has
 * decided. */
__inline bool leave_anchor(struct pf_test_ctx *test)
{
	__u32 depth = test->depth - 1;
	struct pf_frame *frame;

	if (!test->depth && test->list < PF_LIST_FILTER) {
		enter_list(test, test->list + 1);
		return true;
	}
	if (depth >= PF_MAX_DEPTH ||
	    (test->caller.quick && test->decided_by.index == test->caller.index)) {
		test->over = 1;
		return false;
	}
	frame = &test->frames[depth];
	test->depth = depth;
	test->next = test->caller.index + 1;
	test->end = frame->end;
	test->caller = frame->caller;
	return true;
}

/* Ends a search: the best rule decides, and the walk goes on behind the superblock. After a search
 * for candidates the walk goes on with these. */
__inline void end_search(struct pf_test_ctx *test, struct pf_tree_search *search)
{
	search->goes_on = 0;
	test->failed = search->at == SEARCH_FAILED;
	if (search->meets_all)
		return;
	test->next = search->end;
	if (search->best == NO_RULE)
		return;
	test->decided = index_of(search, search->best);
	test->decided_by = test->caller;
	test->found = !(search->best & PF_ORDER_ASKS_MORE);
	test->over = search->best >> PF_ORDER_SHIFT < PF_ORDER_LAST / 2;
}

/* Returns the rule that the walk is at: in a superblock with known candidates the next of these.
 * Begins a search at the first rule of a superblock. Returns NULL at the end of the list. */
__inline struct pf_rule *rule_at(struct pf_scratch *s, void *rules)
{
	const struct pf_candidates *candidates = &s->search.candidates;
	struct pf_test_ctx *test = &s->test;
	struct pf_rule *rule;

	if (knows_candidates(candidates, test->next) && !candidates->every)
		test->next = nearest_candidate(s);
	if (test->next >= test->end)
		return NULL;
	rule = bpf_map_lookup_elem(rules, &test->next);
	if (!rule)
		test->failed = 1;
	else if (rule->superblock && !knows_candidates(candidates, test->next) &&
		 is_searched_for(s))
		begin_search(&s->search, rule->superblock);
	return rule;
}

/* The rule that the walk, which is at s->test.next, or the search in it looks at next. NULL if this
 * step has none. */
__inline struct pf_rule *next_rule(struct pf_scratch *s, void *rules)
{
	struct pf_tree_search *search = &s->search;
	struct pf_rule *rule = NULL;

	if (!search->goes_on) {
		rule = rule_at(s, rules);
		if (!search->goes_on)
			return rule;
	}
	search->index = next_candidate(s);
	if (!search->goes_on) {		/* it is walked */
		if (rule)
			return rule;
		search->index = s->test.next;
	} else if (search->index == NO_RULE) {
		end_search(&s->test, search);
		return NULL;
	}
	rule = bpf_map_lookup_elem(rules, &search->index);
	if (!rule)
		s->test.failed = 1;
	return rule;
}

/* Whether nothing is left of the walk: of a list that is through it leaves the anchor, or enters
 * the next one. */
__inline bool is_walked(struct pf_test_ctx *test)
{
	return test->over || test->failed || (test->next >= test->end && !leave_anchor(test));
}

/* An old rule matches, which ends its list. Returns true if that ends the walk, too. */
__inline bool apply_old_rule(struct __sk_buff *skb, struct pf_scratch *s,
			     const struct pf_rule *rule)
{
	/* the first bit tells `no nat` from `nat` */
	if (rule->action & 1) {
		enter_list(&s->test, s->test.list + 1);
		return false;
	}
	if (!apply_match_rule(skb, s, rule)) {
		s->test.failed = 1;
		return true;
	}
	if (rule->action == PF_ACTION_SCRUB) {
		if (s->pd.virtual_protocol == IPPROTO_TCP && rule->flags & PF_RULE_REASSEMBLE_TCP)
			s->test.needs_state = 1;
		s->test.scrub = s->test.act;
		enter_list(&s->test, s->test.list + 1);
		return false;
	}
	if (has_new_ends(&s->pd) && rule->flags & PF_RULE_QUICK) {
		s->test.over = 1;
		return true;
	}
	enter_list(&s->test, PF_LIST_FILTER);
	return false;
}

/* Goes on from a rule that does not match, for the reason that test_rule gave: to the next one that
 * may. */
__inline void pass_over(struct pf_test_ctx *test, const struct pf_rule *rule, int result)
{
	if (test->evaluator != PF_EVALUATOR_LINEAR && result >= 0 && result < PF_SKIP_MAX)
		test->next = rule->skip[result];
	else
		test->next++;
}

/* One step of the walk: looks at the rule s->test.next. */
static int visit_rule(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	struct pf_rule *rule;
	int result;

	rule = next_rule(s, loop->map);
	if (!rule)
		return is_walked(&s->test) ? 1 : 0;
	if (rule->flags & PF_RULE_ONCE && has_expired(rule->slot)) {
		s->test.next++;
		return 0;
	}
	if (!s->test.asks_fragment)
		count_evaluation(rule->slot);
	result = test_rule(loop->skb, s, rule, false);
	if (s->search.goes_on) {
		if (is_known_now(s, s->search.unknown))
			begin_search(&s->search, s->search.superblock);
		else if (result == MATCHES)
			take_candidate(&s->search);
		return 0;
	}
	note_look(s);
	if (result == REFUSED) {
		/* as in OpenBSD the walk leaves this rule set, but goes on behind the anchor
		 * rule */
		reason_count(s, s->test.limited);
		s->test.next = rule->set_end;
		return 0;
	}
	if (result != MATCHES) {
		pass_over(&s->test, rule, result);
		return 0;
	}

	if (s->test.asks_fragment) {
		s->test.leave_fragment = rule->leave_fragments;
		s->test.over = 1;
		return 1;
	}
	if (rule->tag)
		change_tag(s, rule->tag);
	/* also if it excepts, or calls others */
	if (is_old(rule->action) && rule->rtable)
		s->test.act.rtable = rule->rtable;
	if (rule->flags & PF_RULE_ANCHOR) {
		if (call_anchor(&s->test, rule))
			return 0;
		s->test.failed = 1;
		return 1;
	}
	if (is_old(rule->action))
		return apply_old_rule(loop->skb, s, rule);
	s->test.next++;
	if (rule->flags & PF_RULE_ONCE && !expire_rule(rule->slot))
		return 0;
	if (rule->action == PF_ACTION_MATCH) {
		if (!apply_match_rule(loop->skb, s, rule)) {
			s->test.failed = 1;
			return 1;
		}
	} else {
		s->test.decided = s->test.next - 1;
		s->test.decided_by = s->test.caller;
		s->test.found = 0;
	}
	/* the rule that asked for this has been logged already */
	if (s->test.log & PF_RULE_LOG_MATCHES && !(rule->flags & PF_RULE_LOG_MATCHES)) {
		log_place(s, s->test.caller.number, rule->anchor);
		pf_log_matches(loop->skb, s, rule->number, rule->action);
	}
	if (rule->flags & PF_RULE_QUICK) {
		s->test.over = 1;
		return 1;
	}
	return 0;
}

/* Sets out from the first list that is not empty. */
__inline void begin_walk(struct pf_scratch *s, const struct pf_config *config)
{
	struct pf_test_ctx *test = &s->test;

	enter_list(test, 0);
	test->decided_by = test->caller;
	test->evaluator = config->evaluator;
	test->decided = NO_RULE;
	test->over = test->failed = test->limited = test->found = test->retagged = 0;
	s->search.goes_on = 0;
	forget_candidates(s);
	/* spares the lookup of the first rule, which would say the same */
	if (config->superblock && test->list == PF_LIST_FILTER && is_searched_for(s))
		begin_search(&s->search, config->superblock);
}

/* Whether there is more to walk. A walk that ends so was cut short, and must not pass what the rest
 * would have blocked. */
__inline bool has_rules_left(const struct pf_test_ctx *test)
{
	return !test->over &&
	       (test->depth || test->list < PF_LIST_FILTER || test->next < test->end);
}

/* Walks the rules of the packet's generation. The outcome is in s->test: decided, act, log, tag,
 * and failed if the packet must be dropped because the walk could not be finished. */
__inline void walk_rules(struct __sk_buff *skb, struct pf_scratch *s, void *rules,
			 struct pf_config *config)
{
	struct pf_loop loop = { .skb = skb, .s = s, .map = rules };
	struct pf_test_ctx *test = &s->test;
	bool in = s->pd.direction == PF_IN;

	let_sources_leave();
	test->lists[0] = config->old[PF_OLD_SCRUB];
	test->lists[1] = config->old[in ? PF_OLD_RDR : PF_OLD_BINAT_OUT];
	test->lists[2] = config->old[in ? PF_OLD_BINAT_IN : PF_OLD_NAT];
	/* a fragment has no flow that could be translated */
	if (s->pd.virtual_protocol == PF_VPROTO_FRAGMENT)
		__builtin_memset(&test->lists[1], 0, 2 * sizeof(test->lists[1]));
	test->lists[PF_LIST_FILTER].first = 0;
	test->lists[PF_LIST_FILTER].end = test->asks_fragment ? 0 : config->rules;
	begin_walk(s, config);
	bpf_loop(config->steps, visit_rule, &loop, 0);
	if (has_rules_left(test))
		test->failed = 1;
}

/* A plain walk of the packet that came to its end is as good as any. */
__inline bool recall_walk(struct pf_scratch *s)
{
	struct pf_plain_walk *walk = &s->plain[s->pd.direction == PF_OUT];

	if (!walk->known || walk->generation != s->generation || s->test.asks_fragment)
		return false;
	walk->known = s->test.found = 0;
	let_sources_leave();
	count_visits(s);
	s->test.decided = walk->decided;
	s->test.decided_by = walk->decided_by;
	return true;
}

#endif /* PF_RULES_H */
