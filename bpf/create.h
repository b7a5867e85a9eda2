/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * What the rules decide about a packet that no state knows: block and perhaps answer, pass, or pass
 * and make a state (pf-semantics sections 5, 7 and 11).
 */
#ifndef PF_CREATE_H
#define PF_CREATE_H

#include "af_to.h"
#include "checksum.h"
#include "flow.h"
#include "icmp.h"
#include "kern.h"
#include "new_state.h"
#include "next_hop.h"
#include "other.h"
#include "reply.h"
#include "rules.h"
#include "state.h"
#include "synproxy.h"
#include "tcp.h"
#include "translate.h"

/* Sets s->key to that of a state made by the rule for the packet's ends. */
__inline void set_state_key(struct pf_scratch *s, const struct pf_rule *rule)
{
	if (s->pd.protocol == IPPROTO_ICMPV6)
		set_icmp_key(&s->key, &s->pd, s->pd.direction, false);
	else
		set_key(&s->key, &s->pd, s->pd.direction);
	if (rule->flags & PF_RULE_IF_BOUND)
		s->key.interface = s->interface.id;
	if (s->cross_to)
		s->key.made = PF_MADE_NEAR;
	else if (has_new_ends(&s->pd))
		s->key.made = s->pd.direction;
}

/* What a rule says of the state alone */
__inline __u32 state_flags(const struct pf_rule *rule)
{
	__u32 flags = 0;

	if (rule->flags & PF_RULE_ALLOW_OPTS)
		flags |= PF_STATE_ALLOW_OPTS;
	if (rule->flags & PF_RULE_SLOPPY)
		flags |= PF_STATE_SLOPPY;
	if (rule->flags & PF_RULE_NO_SYNC)
		flags |= PF_STATE_NO_SYNC;
	return flags;
}

/* The state's packets cross families: it has a key in each. */
__inline void set_crossing_keys(struct pf_scratch *s, struct pf_state *state,
				const struct pf_rule *rule)
{
	swap_ends(&s->pd);
	set_state_key(s, rule);
	swap_ends(&s->pd);
	state->key[PF_WIRE] = s->key;
	set_far_key(s);
	s->key.interface = state->key[PF_WIRE].interface;
	state->key[PF_STACK] = s->key;
}

/* Whether anything of the packet behind its IP header changes. If not, OpenBSD does not let it
 * cross families, though its state does: so it is with protocols that it cannot look into, and
 * messages that it cannot convert. */
__inline bool is_changed(const struct pf_scratch *s, const struct pf_state *state)
{
	const struct pf_pdesc *pd = &s->pd;

	switch (pd->protocol) {
	case IPPROTO_TCP:
		if (state->src.seqdiff || s->stamp.add_to_value)
			return true;
		/* fallthrough */
	case IPPROTO_UDP:
		return pd->source_port != pd->original_source_port ||
		       pd->destination_port != pd->original_destination_port;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return s->convertible;
	}
	return false;
}

/* The packet that makes a translated state is rewritten: of ICMP only echo has an id that
 * changes. */
__inline void translate_first(struct pf_scratch *s, const struct pf_state *state)
{
	const struct pf_pdesc *pd = &s->pd;
	__u8 type = pd->icmp.type;

	if (!has_new_ends(pd))
		return;
	if (s->cross_to && !is_changed(s, state))
		return;
	s->translated = PF_TRANSLATED_PACKET;
	s->rewrite_id = pd->family == AF_INET ?
		type == ICMP_ECHO || type == ICMP_ECHOREPLY :
		type == ICMP6_ECHO_REQUEST || type == ICMP6_ECHO_REPLY;
	s->icmp_answer = s->test.icmp_reply;
}

/* No rule has decided. */
__inline void forget_rule(struct pf_scratch *s)
{
	__builtin_memset(&s->rule, 0, sizeof(s->rule));
	s->rule.number = s->rule.anchor_number = -1;
	s->rule.slot = s->rule.anchor_slot = PF_IDLE_SLOT;
}

/* Remembers which rule decided. */
__inline void name_rule(struct pf_scratch *s, const struct pf_rule *rule)
{
	s->rule.slot = rule->slot;
	s->rule.number = rule->number;
	s->rule.anchor = rule->anchor;
	s->rule.anchor_slot = s->test.decided_by.slot;
	s->rule.anchor_number = s->test.decided_by.number;
	s->rule.action = rule->action;
	s->rule.log = log_flags(rule);
	s->rule.log_to = rule->log_to;
	s->outcome.decision = PF_DECISION_RULE;
}

/* Whether the state that the rule makes for the packet has what stands in extensions: a connection
 * with two handshakes does, that of synproxy or of a cookie. */
__inline bool has_more(const struct pf_scratch *s, const struct pf_state *state,
		       const struct pf_rule *rule)
{
	const struct pf_rule_actions *act = &s->test.act;
	const __u32 *node = s->test.source_nodes;

	return (state->flags & (PF_STATE_REASSEMBLE_TCP | PF_STATE_PFLOW)) || s->consumed ||
	       s->cookie_mss || s->cross_to || s->test.match_count || rule->route ||
	       (act->max_pkt_size | act->rtable | act->delay) ||
	       (node[PF_NODE_TRACK] | node[PF_NODE_NAT] | node[PF_NODE_RDR] | node[PF_NODE_ROUTE]) ||
	       rule->limiter[PF_LIMITER_STATE] || rule->limiter[PF_LIMITER_SOURCE] ||
	       counting_slot(s->nat_slot, PF_POOL_NAT) || counting_slot(s->rdr_slot, PF_POOL_RDR);
}

__inline void describe_extension(struct pf_scratch *s, struct pf_extension *extension,
			     const struct pf_rule *rule)
{
	const struct pf_rule_actions *act = &s->test.act;

	extension->nat_slot = counting_slot(s->nat_slot, PF_POOL_NAT);
	extension->rdr_slot = counting_slot(s->rdr_slot, PF_POOL_RDR);
	extension->delay = act->delay;
	extension->match_count = s->test.match_count;
	__builtin_memcpy(extension->match, s->test.match, sizeof(extension->match));
	extension->max_pkt_size = act->max_pkt_size;
	extension->rtable = act->rtable;
	extension->route = rule->route;
	__builtin_memcpy(extension->source_nodes, s->test.source_nodes,
			 sizeof(extension->source_nodes));
}

/* Writes the state that `rule` makes for the packet to its place s->ref, where nobody else looks
 * yet. Returns the reason why there can be none, or 0. */
__global int describe_state(struct pf_scratch *s, const struct pf_rule *rule)
{
	const struct pf_rule_actions *act;
	struct pf_extension *extension = NULL;
	struct pf_state *state;

	if (!s || !rule)
		return PF_REASON_MEMORY;
	act = &s->test.act;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_REASON_MEMORY;
	__builtin_memset(&state->flags, 0, sizeof(*state) - offsetof(struct pf_state, flags));
	set_state_key(s, rule);
	state->key[PF_WIRE] = state->key[PF_STACK] = s->key;
	if (s->cross_to) {
		set_crossing_keys(s, state, rule);
	} else if (s->key.made) {
		swap_ends(&s->pd);
		set_state_key(s, rule);
		swap_ends(&s->pd);
		state->key[!far_side(s->pd.direction)] = s->key;
		/* of a neighbour that is sought the key has the name, not where it was sought */
		if (same_key(&state->key[PF_WIRE], &state->key[PF_STACK]))
			state->key[PF_WIRE].made = state->key[PF_STACK].made = 0;
	}

	state->flags = act->flags | state_flags(rule);
	if (reports_flows(rule->slot))
		state->flags |= PF_STATE_PFLOW;
	if (rule->flags & PF_RULE_MAX_PKT_RATE)
		state->flags |= PF_STATE_MAX_PKT_RATE;
	if (s->mapped)
		state->flags |= PF_STATE_MAPPED;
	state->direction = s->pd.direction;
	state->rule_slot = rule->slot;
	state->anchor_slot = s->test.decided_by.slot;
	state->log = log_flags(rule);
	state->log_to = rule->log_to;
	state->tag = act->tag;
	state->min_ttl = act->min_ttl;
	state->max_mss = act->max_mss;
	state->set_tos = act->set_tos;
	state->set_prio[0] = act->set_prio[0];
	state->set_prio[1] = act->set_prio[1];
	state->queue[0] = act->queue[0];
	state->queue[1] = act->queue[1];
	state->creation = state->expire = s->now;
	if (has_more(s, state, rule)) {
		extension = add_extension(state, &s->ref.index);
		if (!extension)
			return PF_REASON_MEMORY;
		describe_extension(s, extension, rule);
	}
	/* the packet that makes the state is its first, unless it is dropped in the end */
	if (!exceeds_pkt_size(s, act->max_pkt_size)) {
		state->packets[0] = s->segments;
		state->bytes[0] = s->bytes;
	}

	switch (s->pd.protocol) {
	case IPPROTO_TCP:
		create_tcp(state, extension, s, rule);
		if (extension && act->flags & PF_STATE_REASSEMBLE_TCP)
			meet_timestamp(&extension->scrub[0], s);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		state->timeout = PF_TIMEOUT_ICMP_FIRST;
		break;
	default:
		create_other(state, s);
	}
	if (extension && !track_timestamp(state, extension, s, &state->src, &state->dst, true))
		return PF_REASON_BAD_TIMESTAMP;
	return 0;
}

/* Finds or makes the node of the packet's source, for one state more. Rules may have translated the
 * packet: its own source is meant. Returns -1 if a limit is reached. */
__inline int track_source(struct pf_scratch *s, __u32 rule_slot)
{
	set_source_key(s, rule_slot, PF_NODE_TRACK, &s->pd.original_source);
	return hold_source(s);
}

/* The limiters that let the rule match count the state that is being made. Returns the reason why
 * they do not any more, or 0. */
__inline int hold_limiters(struct pf_scratch *s, const struct pf_rule *rule)
{
	__u32 of_states = rule->limiter[PF_LIMITER_STATE], of_sources;
	struct pf_extension *extension;
	int reason = 0;

	of_sources = rule->limiter[PF_LIMITER_SOURCE];
	if (!of_states && !of_sources)
		return 0;
	extension = bpf_map_lookup_elem(&extensions, &s->ref.index);
	if (!extension)
		return PF_REASON_MEMORY;
	if (of_states)
		reason = hold_state_limiter(s, &extension->limited[PF_LIMITER_STATE],
					    of_states & 0xff);
	if (!reason && of_sources)
		reason = hold_source_limiter(s, &extension->limited[PF_LIMITER_SOURCE], of_sources);
	if (reason)
		release_limiters(s->ref.index, 1);
	return reason;
}

/* Makes the packet's state. Returns the reason why there is none, or 0. */
__global int create_state(struct pf_scratch *s, const struct pf_rule *rule)
{
	struct pf_rule_states *states_of_rule;
	struct pf_extension *extension;
	struct pf_state *state;
	__u32 slot;
	int reason;

	if (!s || !rule)
		return PF_REASON_MEMORY;
	slot = rule->slot;
	states_of_rule = bpf_map_lookup_elem(&rule_states, &slot);
	if (!states_of_rule)
		return PF_REASON_MEMORY;
	if (states_of_rule->source_flags & PF_SOURCE_TRACK && track_source(s, slot))
		return PF_REASON_SRC_LIMIT;
	if (states_of_rule->max && states_of_rule->current >= states_of_rule->max) {
		forget_sources(s, false);
		count_limit(PF_LCOUNT_STATES);
		return PF_REASON_STATE_LIMIT;
	}
	reason = take_state(s);
	if (reason) {
		forget_sources(s, true);
		return reason;
	}
	reason = describe_state(s, rule);
	if (!reason && rule->route && !choose_next_hop(s, slot))
		reason = PF_REASON_NO_ROUTE;
	if (!reason)
		reason = hold_limiters(s, rule);
	if (reason) {
		give_back_state(s);
		forget_sources(s, true);
		return reason;
	}
	reason = insert_state(s);
	s->mapped = 0;	/* it is the state's now, or let go with it */
	if (reason) {
		/* the state has let go of its nodes */
		for (int kind = 0; kind < PF_NODE_KINDS; kind++) {
			if (s->test.source_nodes[kind])
				remove_source(s->test.source_nodes[kind] - 1, s->now);
			s->test.source_nodes[kind] = 0;
		}
		return reason;
	}
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_REASON_MEMORY;
	s->has_state = 1;
	__builtin_memcpy(s->source_nodes, s->test.source_nodes, sizeof(s->source_nodes));
	if (state->src.seqdiff)
		s->pd.tcp.seq = bpf_htonl(bpf_ntohl(s->pd.tcp.seq) + state->src.seqdiff);
	translate_first(s, state);
	extension = extension_of(state, &s->ref.index);
	if (extension)
		route_by_extension(extension, s, true);
	s->act = s->test.act;
	if (!s->act.rtable)
		s->act.rtable = 1;
	s->match_count = s->test.match_count;
	if (s->match_count)
		__builtin_memcpy(s->match, s->test.match, sizeof(s->match));
	return 0;
}

#define ANSWERS	(PF_RULE_RETURN | PF_RULE_RETURN_RST | PF_RULE_RETURN_ICMP)

/* `block return`: decides on the answer, which is sent when all else is done. */
__global int answer(struct __sk_buff *skb, struct pf_scratch *s, const struct pf_rule *rule)
{
	const struct pf_pdesc *pd;
	const struct tcp *tcp;

	if (!s || !rule)
		return 0;
	pd = &s->pd;
	tcp = &pd->tcp;
	if (!(rule->flags & ANSWERS) || pd->virtual_protocol == PF_VPROTO_FRAGMENT)
		return 0;
	if (pd->protocol == IPPROTO_TCP && rule->flags & (PF_RULE_RETURN | PF_RULE_RETURN_RST) &&
	    !(tcp->flags & TH_RST)) {
		if (!s->cookie_mss && !tcp_checksum_right(skb, s)) {
			reason_count(s, PF_REASON_PROTO_CKSUM);
			return 0;
		}
		s->reply.kind = PF_REPLY_TCP;
		s->reply.tcp_flags = TH_RST | TH_ACK;
		s->reply.ttl = rule->return_ttl;
		s->reply.seq = bpf_ntohl(tcp->ack);
		s->reply.ack = bpf_ntohl(tcp->seq) + pd->payload + !!(tcp->flags & TH_SYN) +
			!!(tcp->flags & TH_FIN);
	} else if (pd->family == AF_INET && rule->return_icmp_type &&
		   (pd->protocol != IPPROTO_ICMP || icmp_informational(pd->icmp.type))) {
		s->reply.kind = PF_REPLY_ICMP;
		s->reply.icmp_type = rule->return_icmp_type;
		s->reply.icmp_code = rule->return_icmp_code;
	} else if (pd->family == AF_INET6 && rule->return_icmp6_type &&
		   (pd->protocol != IPPROTO_ICMPV6 || icmp6_informational(pd->icmp.type))) {
		s->reply.kind = PF_REPLY_ICMP;
		s->reply.icmp_type = rule->return_icmp6_type;
		s->reply.icmp_code = rule->return_icmp6_code;
	}
	s->rule.has_prio = !!(rule->flags & PF_RULE_SET_PRIO);
	if (s->rule.has_prio)
		s->rule.set_prio = rule->set_prio[0];
	s->rule.queue = rule->queue[0];
	return 0;
}

/* What the deciding rule wants with a packet that makes no state: match rules have no say here but
 * for the tag and the longest packet, which is no wish of OpenBSD's. */
__inline void act_without_state(struct pf_scratch *s, const struct pf_rule *rule)
{
	struct pf_test_ctx *test = &s->test;
	__u16 tag = test->act.tag, max_pkt_size = test->act.max_pkt_size;
	__u16 rtable = test->act.rtable ? test->act.rtable : 1;

	/* an ICMP error that old rules translated: its ends change though it makes no state, unless
	 * they are of the other family, which does not know it */
	if (test->needs_state && (!s->cross_to || s->convertible))
		s->translated = PF_TRANSLATED_PACKET;
	else
		restore_original(&s->pd);
	test->act = test->scrub;
	merge_actions(test, rule);
	s->act = test->act;
	s->act.tag = tag;
	s->act.max_pkt_size = max_pkt_size;
	s->act.rtable = rtable;
}

/* Whether a limiter has the packet dropped. Rules have nothing to say about it then, and send no
 * answer. */
__inline bool is_limited(struct pf_scratch *s)
{
	if (!s->test.limited || s->test.failed)
		return false;
	s->outcome.reason = s->test.limited;
	return true;
}

/* True if the packet has no IP options, or a rule that matched allows them; else it is dropped. */
__inline bool may_have_options(struct pf_scratch *s)
{
	if (!s->pd.bad_options || s->test.act.flags & PF_STATE_ALLOW_OPTS)
		return true;
	reason_count(s, PF_REASON_IP_OPTION);
	s->log_force = 1;
	return false;
}

/* Lets the rules decide. Returns 1 to pass the packet. */
__global int test_rules(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_config *config;
	struct pf_rule *rule;
	__u32 generation, index;
	void *rules;
	int reason;

	if (!s)
		return 0;
	generation = pf_copy(s->generation);
	config = pf_config(generation);
	rules = bpf_map_lookup_elem(&rulesets, &generation);
	if (!config || !rules) {
		reason_set(s, PF_REASON_MEMORY);
		return 0;
	}
	if (!recall_walk(s))
		walk_rules(skb, s, rules, config);
	if (s->test.asks_fragment)
		return s->test.failed || s->test.leave_fragment;
	if (s->test.failed && !s->test.exhausted) {
		reason_set(s, PF_REASON_MEMORY);
		return 0;
	}

	index = s->test.decided;
	log_place(s, s->test.decided_by.number, 0);
	if (index == NO_RULE && s->test.exhausted) {
		restore_original(&s->pd);
		reason_count(s, PF_REASON_TRANSLATE);
		return 0;
	}
	if (index == NO_RULE && !s->test.needs_state) {
		if (is_limited(s)) {
			restore_original(&s->pd);
			return 0;
		}
		reason_count(s, PF_REASON_MATCH);
		s->act = s->test.scrub;
		s->act.tag = s->test.act.tag;
		s->act.rtable = s->test.act.rtable ? s->test.act.rtable : 1;
		s->act.max_pkt_size = s->test.act.max_pkt_size;
		if (s->test.log & PF_RULE_LOG_MATCHES)
			pf_log_matches(skb, s, -1, PF_ACTION_PASS);
		/* what match rules made of it was for the log: without a state it stays as it is */
		restore_original(&s->pd);
		return may_have_options(s);
	}
	if (index == NO_RULE)
		index = config->default_rule;
	rule = bpf_map_lookup_elem(rules, &index);
	if (!rule) {
		reason_set(s, PF_REASON_MEMORY);
		return 0;
	}
	if (s->test.found)
		count_evaluation(rule->slot);
	if (index != config->default_rule)
		name_rule(s, rule);
	if (is_limited(s)) {
		restore_original(&s->pd);
		return 0;
	}
	if (s->test.exhausted ||
	    !(rule->cross_to ? translate_across(s, rule) : translate(s, rule))) {
		restore_original(&s->pd);
		reason_count(s, PF_REASON_TRANSLATE);
		return 0;
	}
	reason_count(s, PF_REASON_MATCH);
	merge_actions(&s->test, rule);
	log_place(s, s->rule.anchor_number, s->rule.anchor);
	if (rule->flags & LOGS)
		pf_log(skb, s, rule->number, rule->action,
		       log_target(rule->log_to, s->rule.log));
	if (s->test.log & PF_RULE_LOG_MATCHES && !(rule->flags & PF_RULE_LOG_MATCHES))
		pf_log_matches(skb, s, rule->number, rule->action);

	if (rule->action == PF_ACTION_BLOCK) {
		/* FreeBSD has written what old rules made of it, and takes that back for an answer:
		 * without one it counts with its new ends */
		if (!s->test.old_ends || rule->flags & ANSWERS)
			restore_original(&s->pd);
		answer(skb, s, rule);
		return 0;
	}
	if (!may_have_options(s))
		return 0;
	if ((rule->flags & PF_RULE_KEEP_STATE || s->test.needs_state) && !s->test.icmp_error &&
	    s->pd.virtual_protocol != PF_VPROTO_FRAGMENT) {
		if (s->pd.virtual_protocol == IPPROTO_TCP &&
		    s->test.act.flags & PF_STATE_REASSEMBLE_TCP) {
			/* the SYN that is replayed for a cookie has no timestamp */
			if (s->cookie_mss)
				s->stamp.known = 1;
			else
				read_timestamp(skb, s, rule->slot);
		}
		if (wants_proxy(skb, s, rule)) {
			choose_mss(skb, s);
			s->consumed = 1;
		}
		reason = create_state(s, rule);
		if (s->consumed && !reason) {
			proxy_first(s);
			return 0;
		}
		s->consumed = s->reply.mss = 0;
		/* nobody looks again for the state of a SYN that is replayed */
		if (reason == PF_REASON_STATE_INSERT && !s->cookie_mss)
			s->raced = 1;
		else if (reason) {
			reason_count(s, reason);
			restore_original(&s->pd);
			answer(skb, s, rule);	/* set fail-policy return */
		}
		return !reason;
	}
	act_without_state(s, rule);
	return 1;
}

#endif /* PF_CREATE_H */
