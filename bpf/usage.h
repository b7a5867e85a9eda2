/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * How much is used up of what a rule allows: `once`, max-pkt-rate, max-pkt-size.
 */
#ifndef PF_USAGE_H
#define PF_USAGE_H

#include "kern.h"
#include "rate.h"
#include "scratch.h"
#include "timeout.h"

/* `once`: whether the rule in the slot has matched its packet. */
__inline bool has_expired(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	return !rule || rule->expired;
}

/* Uses up a rule that matches once. False if another packet was faster. */
__inline bool expire_rule(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	return rule && __sync_val_compare_and_swap(&rule->expired, 0, 1) == 0;
}

/* max-pkt-rate: whether one more packet comes too fast. It is counted. */
__inline bool exceeds_pkt_rate(__u32 slot, __u32 now)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	return rule && exceeds_rate(&rule->pkt_rate, rule->max_packets, rule->max_packets_seconds,
				    now);
}

/* max-pkt-size: whether the packet is longer than `most`, if that is not 0. */
__inline bool exceeds_pkt_size(const struct pf_scratch *s, __u16 most)
{
	return most && s->length > most;
}

#endif /* PF_USAGE_H */
