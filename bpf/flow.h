/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `pflow`: a state that ends is reported. skipstepd takes the records out of the ring and tells the
 * collectors, as OpenBSD's pflow(4) does (RFC 7011).
 */
#ifndef PF_FLOW_H
#define PF_FLOW_H

#include "kern.h"
#include "reason.h"
#include "scratch.h"
#include "timeout.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} flow_ring SEC(".maps");

/* Whether the states of the rule in the slot are reported. */
__inline bool reports_flows(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	return rule && rule->pflow;
}

/* Reports a state that nobody can find any more. */
/* Differs from OpenBSD: linux.md, "Flow records" */
__inline void report_flow(const struct pf_state *state, const struct pf_extension *extension)
{
	const struct pf_state_key *near, *far;
	struct pf_rule_states *rule;
	struct pf_flow_record *record;
	__u32 maker, other, slot;

	record = bpf_ringbuf_reserve(&flow_ring, sizeof(*record), 0);
	if (!record) {
		count_flow_lost();
		return;
	}
	near = &state->key[state->direction == PF_IN ? PF_WIRE : PF_STACK];
	far = &state->key[state->direction == PF_IN ? PF_STACK : PF_WIRE];
	maker = state->direction == PF_OUT;
	other = !maker;
	slot = state->rule_slot;
	rule = bpf_map_lookup_elem(&rule_states, &slot);
	__builtin_memcpy(record->address[0], near->address[maker & 1], 16);
	__builtin_memcpy(record->address[1], near->address[other & 1], 16);
	__builtin_memcpy(record->translated_address[0], far->address[maker & 1], 16);
	__builtin_memcpy(record->translated_address[1], far->address[other & 1], 16);
	record->port[0] = near->port[maker & 1];
	record->port[1] = near->port[other & 1];
	record->translated_port[0] = far->port[maker & 1];
	record->translated_port[1] = far->port[other & 1];
	record->ifindex_in = extension->ifindex_in;
	record->ifindex_out = extension->ifindex_out;
	record->packets[0] = state->packets[0];
	record->packets[1] = state->packets[1];
	record->bytes[0] = state->bytes[0];
	record->bytes[1] = state->bytes[1];
	record->creation = state->creation;
	record->last = state->expire;
	record->family = near->family;
	record->protocol = near->protocol;
	record->tos = rule ? rule->flow_tos : 0;
	record->translated = has_two_keys(state) && near->family == far->family;
	record->pad = 0;
	bpf_ringbuf_submit(record, 0);
}

#endif /* PF_FLOW_H */
