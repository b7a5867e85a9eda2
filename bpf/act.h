/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The end of a packet's way: log, count, and let it go on or not.
 */
#ifndef PF_ACT_H
#define PF_ACT_H

#include "answer.h"
#include "cross.h"
#include "divert.h"
#include "divert_packet.h"
#include "drop.h"
#include "forward.h"
#include "fragment.h"
#include "interface.h"
#include "kern.h"
#include "log.h"
#include "mark.h"
#include "normalize.h"
#include "queue.h"
#include "reply.h"
#include "rewrite.h"
#include "route.h"
#include "rules.h"
#include "scratch.h"
#include "source_node.h"
#include "state_key.h"
#include "synproxy.h"
#include "table.h"

/* Number of the rule that has this slot, -1 if its rule set was replaced. Not inlined, because
 * act() has no stack left. */
__global int rule_number(const struct pf_scratch *s, __u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	if (!s || !rule)
		return -1;
	return has_trial_values(rule, s->generation) ? rule->trial_number : rule->number;
}

/* Names the rules that made the packet's state, as far as they are still there. */
__inline void recall_rule(struct pf_scratch *s)
{
	struct pf_rule_states *rule;

	/* no rule decided about the state's first packet, but an old one translated it */
	if (s->rule.slot == PF_IDLE_SLOT)
		return;
	rule = bpf_map_lookup_elem(&rule_states, &s->rule.slot);
	if (rule) {
		s->rule.number = rule_number(s, s->rule.slot);
		s->rule.anchor = rule->anchor;
	}
	if (s->rule.anchor_slot != PF_IDLE_SLOT)
		s->rule.anchor_number = rule_number(s, s->rule.anchor_slot);
	s->outcome.decision = s->rule.number < 0 ? PF_DECISION_ORPHAN : PF_DECISION_RULE;
	/* the records name no rule set: OpenBSD does not remember it with the state */
	log_place(s, s->rule.anchor_number, 0);
}

/* The match rule that matched last is logged first, as in OpenBSD. */
static int log_all_match_rule(__u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	__u32 place = s->match_count - 1 - i;

	if (i >= s->match_count || place >= PF_MATCH_RULES)
		return 1;
	if (s->match[place].log & PF_LOG_ALL)
		pf_log(loop->skb, s, rule_number(s, s->match[place].slot),
		       s->match[place].action,
		       log_target(s->match[place].log_to, s->match[place].log));
	return 0;
}

/* Records for packets that are dropped for themselves, and of states whose rules log (all). What
 * rules log when they match was written then. */
__inline void log_packet(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_loop loop = { .skb = skb, .s = s };
	__u8 action = s->rule.action;

	if (!s->log_force && !s->state_hit)
		return;
	s->log_reason = s->outcome.reason;
	/* the default rule passes, but not what was dropped for another reason */
	if (s->rule.number < 0 && s->rule.slot == PF_IDLE_SLOT &&
	    s->outcome.reason != PF_REASON_MATCH)
		action = PF_ACTION_BLOCK;
	if (s->log_force || s->rule.log & PF_LOG_ALL)
		pf_log(skb, s, s->rule.number, action,
		       log_target(s->rule.log_to, s->rule.log));
	if (s->has_state && s->match_count)
		bpf_loop(PF_MATCH_RULES, log_all_match_rule, &loop, 0);
}

/* Counts a packet for the table that a rule compares one of its addresses with. The table may have
 * changed since a state was made: then it was passed all the same, but not by the table. */
__inline void count_table(struct pf_scratch *s, const struct pf_rule_table *table, __u32 slot,
			  const struct pf_addr *address, __u32 op)
{
	__u32 out = s->pd.direction == PF_OUT;
	struct pf_table_stats *stats = find_table_stats(slot);
	struct pf_table *of = bpf_map_lookup_elem(&tables, &slot);
	struct pf_table_entry *entry;

	if (!table->used || !stats)
		return;
	entry = find_entry(slot, s->pd.family, address);
	if ((entry && !entry->negated) == table->negated)
		op = PF_TABLE_XPASS;
	if (op >= PF_TABLE_OP_MAX)
		return;
	stats->packets[out & 1][op] += s->segments;
	stats->bytes[out & 1][op] += s->bytes;
	if (entry && of && of->counters)
		count_entry(s, of->counters, entry->prefix, address, op);
}

/* Counts the packet in the first of the two counters in a slot, or in the second. */
__inline void count_slot(struct pf_scratch *s, __u32 slot, __u32 second)
{
	struct pf_rule_stats *stats = bpf_map_lookup_elem(&rule_stats, &slot);

	if (!stats)
		return;
	stats->packets[second & 1] += s->segments;
	stats->bytes[second & 1] += s->bytes;
}

/* Notes the slots of the tables that the rule counts for, in the generation of the packet. */
__inline void find_counted_tables(struct pf_scratch *s, const struct pf_rule_states *rule)
{
	bool on_trial = has_trial_values(rule, s->generation);
	const struct pf_rule_table *table = rule->tables;

	s->counted_tables[0] = on_trial ? table[0].trial_slot : table[0].slot;
	s->counted_tables[1] = on_trial ? table[1].trial_slot : table[1].slot;
}

/* Counts the packet for a rule and its tables. */
__global int count_with_tables(struct pf_scratch *s, __u32 slot, __u32 second, __u32 op)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);
	const struct pf_addr *source, *destination;
	const struct pf_state_key *key;
	struct pf_state *state = NULL;
	bool swapped;

	if (!s || !rule)
		return 0;
	count_slot(s, slot, second);
	find_counted_tables(s, rule);
	/* without a state: the addresses that old rules gave the packet */
	source = s->cross_to ? &s->pd.original_source : &s->pd.source;
	destination = s->cross_to ? &s->pd.original_destination : &s->pd.destination;
	if (s->cross_to && s->has_state) {
		/* OpenBSD takes them from the same places, where they are the other way round */
		source = s->crosses_back ? &s->pd.original_source : &s->pd.destination;
		destination = s->crosses_back ? &s->pd.original_destination : &s->pd.source;
	}
	swapped = s->against_state;
	/* with one: those of the packet that made the state, once it was translated */
	if (s->has_state && !s->cross_to)
		state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (state) {
		swapped = state->direction == PF_OUT;
		key = &state->key[swapped ? PF_WIRE : PF_STACK];
		source = (const struct pf_addr *)key->address[0];
		destination = (const struct pf_addr *)key->address[1];
	}
	count_table(s, &rule->tables[0], s->counted_tables[0], swapped ? destination : source, op);
	count_table(s, &rule->tables[1], s->counted_tables[1], swapped ? source : destination, op);
	return 0;
}

/* The same, without a call for a rule that names none. */
__inline void count_rule(struct pf_scratch *s, __u32 slot, __u32 second, __u32 op)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	if (rule && (rule->tables[0].used || rule->tables[1].used))
		count_with_tables(s, slot, second, op);
	else
		count_slot(s, slot, second);
}

static int count_match_rule(__u32 i, void *arg)
{
	struct pf_scratch *s = ((struct pf_loop *)arg)->s;

	if (i >= PF_MATCH_RULES || i >= s->match_count)
		return 1;
	count_rule(s, s->match[i].slot, s->against_state, PF_TABLE_MATCH);
	return 0;
}

/* A pass rule that did not get its way does not count the packet. */
__inline void count_packet(struct pf_scratch *s, bool pass)
{
	struct pf_loop loop = { .s = s };

	/* what crosses to the other family does not pass, to OpenBSD's interface */
	count_interface(s, !pass || (s->cross_to && s->translated));
	if (!pass && s->rule.action != PF_ACTION_BLOCK)
		return;
	count_rule(s, s->rule.slot, s->pd.direction == PF_OUT,
		   s->rule.action == PF_ACTION_BLOCK ? PF_TABLE_BLOCK : PF_TABLE_PASS);
	if (s->rule.anchor_slot != PF_IDLE_SLOT)
		count_slot(s, s->rule.anchor_slot, s->pd.direction == PF_OUT);
	if (!s->has_state)
		return;
	if (s->match_count)
		bpf_loop(PF_MATCH_RULES, count_match_rule, &loop, 0);
	count_sources(s);
}

/* Logs and counts the packet. Apart from the programs, whose stack all else stands on. */
__global int account(struct __sk_buff *skb, struct pf_scratch *s, __u32 pass)
{
	if (!s)
		return 0;
	log_packet(skb, s);
	count_packet(s, pass);
	return 0;
}

/* Priority, queue and tag that go on with the packet, beside its delay. Not inlined, because act()
 * has no stack left. */
__global int carry(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 prio;
	__u16 queue;
	bool urgent;

	if (!s)
		return 0;
	/* the second one is for what must be quick */
	urgent = s->empty_ack || s->pd.tos & IPTOS_LOWDELAY;
	queue = s->act.queue[0] ? s->act.queue[urgent] : carried_queue(skb);
	prio = s->prio;
	if (s->act.flags & PF_STATE_SET_PRIO)
		prio = s->act.set_prio[urgent];
	/* the kernel sets its own when it forwards, also over one from the way in */
	if (s->pd.direction == PF_OUT &&
	    (s->act.flags & PF_STATE_SET_PRIO || prio != PF_DEFAULT_PRIO))
		/* Differs from OpenBSD: linux.md, "Names in pf.conf" */
		skb->priority = prio;
	set_queue(skb, queue);
	/* the kernel fragments IPv4 itself, if it routes: then those are fragments like any */
	write_mark(skb, s->reassembled && (s->pd.family == AF_INET6 || is_port(&s->interface)) ?
		   PF_MARK_REASSEMBLED : 0, s->act.tag ? s->act.tag : s->tag, prio);
	return 0;
}

/* Sends the answer if there is one. Returns what the program returns: `result` if there is none. */
__inline int answer_or(struct __sk_buff *skb, struct pf_scratch *s, int result)
{
	return s->reply.kind == PF_REPLY_NONE ? result : send_reply(skb, s);
}

/* The packet passes. Returns what the program returns, unless there is a reply. */
__inline int let_through(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 mtu = too_big(skb, s);
	struct pf_rule_states *rule;
	int result;

	s->outcome.verdict = PF_VERDICT_PASS;
	s->outcome.rtable = s->act.rtable;
	if (mtu) {
		if (s->route != PF_HOP_DUP_TO)
			s->outcome.route = s->route;
		return tell_own_sender(s, PF_UNDELIVERED_TOO_BIG, mtu);
	}
	if (!carry_delay(skb, s->act.delay)) {
		s->outcome.verdict = PF_VERDICT_DROP;
		reason_count(s, PF_REASON_MEMORY);
		return PF_TCX_DROP;
	}
	if (s->cross_to && s->translated)
		return cross_over(skb, s);
	if (s->cross_to)
		restore_original(&s->pd);	/* its state crosses, but not this packet */
	if (s->translated == PF_TRANSLATED_PACKET)
		rewrite_packet(skb, s);
	else if (s->translated == PF_TRANSLATED_QUOTED)
		rewrite_error(skb, s);
	write_normalized(skb, s);
	rule = find_program(s);
	if (rule)
		return divert_packet(skb, s, rule->divert_port);
	if (s->route) {
		carry(skb, s);
		result = route_packet(skb, s);
		if (s->route != PF_HOP_DUP_TO)
			return result;
	}
	if (has_new_way(s)) {
		carry(skb, s);
		return reroute_packet(skb, s);
	}
	carry(skb, s);
	if (must_fragment(skb, s)) {
		s->outcome.verdict = PF_VERDICT_REFRAGMENT;
		result = hand_over(skb, s, PF_HANDOFF_REFRAGMENT);
		if (result >= 0)
			return result;
		s->outcome.verdict = PF_VERDICT_DROP;
		reason_count(s, PF_REASON_FRAGMENT);
		return PF_TCX_DROP;
	}
	if ((s->reassembled || s->routed_here) && s->pd.direction == PF_OUT)
		shrink(skb, s->pd.ip + s->pd.length);
	rule = find_divert(s);
	if (rule)
		return divert(skb, s, rule);
	if (s->pd.direction == PF_IN && !stays_on_bridge(skb, s) &&
	    (table_of(s) || (s->reassembled && s->pd.family == AF_INET6)))
		return forward_packet(skb, s);
	return PF_TCX_NEXT;
}

/* A state that is made on a port of a bridge remembers the stations of its first packet: challenge
 * ACKs are for them alone. */
__inline void note_stations(struct __sk_buff *skb, const struct pf_scratch *s)
{
	struct pf_state *state = state_in_hand(s);

	if (state && has_ethernet_header(skb))
		bpf_skb_load_bytes(skb, 0, state->stations, sizeof(state->stations));
}

/* A state that is reported when it ends remembers where its packets were, as OpenBSD does: each
 * place once. */
__inline void note_way(const struct __sk_buff *skb, const struct pf_scratch *s)
{
	struct pf_state *state = state_in_hand(s);
	struct pf_extension *extension;

	if (!state || !(state->flags & PF_STATE_PFLOW))
		return;
	extension = extension_of(state, &s->ref.index);
	if (!extension)
		return;
	if (!extension->ifindex_in && s->pd.direction == PF_IN)
		extension->ifindex_in = skb->ifindex;
	else if (!extension->ifindex_out && s->pd.direction == PF_OUT)
		extension->ifindex_out = skb->ifindex;
}

/* Returns what the program returns. Apart from the programs, whose stack all else stands on. */
__global int act(struct __sk_buff *skb, struct pf_scratch *s, __u32 pass)
{
	int result = PF_TCX_DROP;

	if (!s)
		return PF_TCX_DROP;
	if (s->state_hit)
		recall_rule(s);
	s->outcome.rule = s->rule.number;
	s->outcome.anchor_rule = s->rule.anchor_number;
	s->outcome.anchor = s->rule.anchor;
	if (!s->uncounted)
		account(skb, s, pass);
	if (s->has_state && !s->state_hit && is_port(&s->interface))
		note_stations(skb, s);
	if (s->has_state && (pass || s->consumed))
		note_way(skb, s);
	if (!pass && s->consumed) {
		carry_delay(skb, 0);
		result = send_proxied(skb, s);
		if (result == PF_TCX_DROP && s->reply.kind != PF_REPLY_NONE)
			report_drop(skb, s, true);
		return result;
	}
	if (pass)
		result = let_through(skb, s);
	else
		s->outcome.verdict = PF_VERDICT_DROP;
	/* before the answer takes the packet's place */
	if (result == PF_TCX_DROP)
		report_drop(skb, s, pass);
	return answer_or(skb, s, result);
}

#endif /* PF_ACT_H */
