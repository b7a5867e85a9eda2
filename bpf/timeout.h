/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * When a state ends (pf-semantics sections 1 and 2).
 */
#ifndef PF_TIMEOUT_H
#define PF_TIMEOUT_H

#include "kern.h"
#include "config.h"

/* Statistics and limits of a rule that states depend on: they stay when the rule set goes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_RULE_SLOTS);
	__type(key, __u32);
	__type(value, struct pf_rule_states);
} rule_states SEC(".maps");

/* True if the fields trial_... of a rule that a trial keeps are for this generation. */
__inline bool has_trial_values(const struct pf_rule_states *rule, __u32 generation)
{
	return rule->trial_generation && rule->trial_generation == generation;
}

/*
 * Whether a state that was last used at `used` and waits for timeout `class` is over. The more
 * states there are, the shorter the timeouts: from adaptive.start on they shrink, at adaptive.end
 * they are zero.
 */
__inline bool expired(__u32 rule_slot, __u8 class, __u32 used, __u32 generation, __u32 now)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &rule_slot);
	struct pf_config *config = pf_config(generation);
	struct pf_status *status = pf_status();
	__u32 timeout, start, end, states;

	if (!rule || !config || !status || class >= PF_TIMEOUT_MAX)	/* PF_TIMEOUT_PURGE too */
		return true;
	timeout = rule->timeouts[class];
	if (!timeout)
		timeout = config->timeouts[class];
	start = rule->timeouts[PF_TIMEOUT_ADAPTIVE_START];
	if (start) {
		end = rule->timeouts[PF_TIMEOUT_ADAPTIVE_END];
		states = rule->current;
	} else {
		start = config->timeouts[PF_TIMEOUT_ADAPTIVE_START];
		end = config->timeouts[PF_TIMEOUT_ADAPTIVE_END];
		states = status->states;
	}
	if (end && states > start && start < end) {
		if (states >= end)
			return true;
		timeout = (__u64)timeout * (end - states) / (end - start);
	}
	return (__s32)(now - (used + timeout)) >= 0;
}

#endif /* PF_TIMEOUT_H */
