/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Sources with too many connections (pf-semantics section 15): the connection that exceeds a limit
 * ends, its source is put in a table, and its other states end with it if the rule says so.
 */
#ifndef PF_OVERLOAD_H
#define PF_OVERLOAD_H

#include "flush.h"
#include "kern.h"
#include "rate.h"
#include "source_node.h"
#include "state.h"
#include "sweeper.h"
#include "table.h"

/* Ends the states of a source. */
__inline void flush_source(const struct pf_rule_states *rule, const struct pf_state *state,
			   const struct pf_source_key *source)
{
	struct pf_status *status = pf_status();
	struct pf_flush flush = {};

	if (!status)
		return;
	__builtin_memcpy(flush.address, source->address, sizeof(flush.address));
	flush.family = source->family;
	/* as in OpenBSD, the direction of the state in hand says where the source is in all of
	 * them */
	flush.side = state->direction == PF_OUT;
	flush.rule_slot = rule->source_flags & PF_SOURCE_FLUSH_GLOBAL ? PF_IDLE_SLOT :
									state->rule_slot;
	count_limit(PF_LCOUNT_OVERLOAD_FLUSH);
	if (note_flush(status, &flush))
		wake_sweeper();
}

/* Counts the connection of the state of s->ref, which has just been established. Returns 1 if its
 * source has too many of them, or makes them too fast: then the state is over. */
__global int exceeds_connections(struct pf_scratch *s)
{
	struct pf_source_node *node;
	struct pf_rule_states *rule;
	struct pf_source_key source;
	struct pf_config *config;
	struct pf_state *state;
	__u32 index, slot, table;
	bool exceeded = false;

	if (!s)
		return 1;
	index = s->connected - 1;
	config = pf_config(s->generation);
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	node = bpf_map_lookup_elem(&source_nodes, &index);
	if (!config || !state || !node)
		return 1;
	source = node->key;
	slot = source.rule_slot;
	rule = bpf_map_lookup_elem(&rule_states, &slot);
	if (!rule)
		return 1;
	if (__sync_fetch_and_add(&node->connections, 1) >= rule->max_src_conn &&
	    rule->max_src_conn) {
		count_limit(PF_LCOUNT_SRC_CONN);
		exceeded = true;
	}
	if (rule->max_src_conn_rate && exceeds_rate(&node->rate, rule->max_src_conn_rate,
						    rule->max_src_conn_seconds, s->now)) {
		count_limit(PF_LCOUNT_SRC_CONN_RATE);
		exceeded = true;
	}
	if (!exceeded)
		return 0;
	if (rule->source_flags & PF_SOURCE_OVERLOAD) {
		count_limit(PF_LCOUNT_OVERLOAD_TABLE);
		table = has_trial_values(rule, s->generation) ? rule->trial_overload :
							   rule->overload_table;
		put_entry(table, source.family, source.address,
			  source.family == AF_INET ? 32 : 128, config->limit_table_entries, s->now);
		if (rule->source_flags & (PF_SOURCE_FLUSH | PF_SOURCE_FLUSH_GLOBAL))
			flush_source(rule, state, &source);
	}
	end_state(s->ref.index, s->ref.serial);
	return 1;
}

#endif /* PF_OVERLOAD_H */
