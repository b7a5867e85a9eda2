/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Reasons and the other counters of the firewall as a whole. Setting a reason and counting it are
 * one operation, so no packet is dropped in silence.
 */
#ifndef PF_REASON_H
#define PF_REASON_H

#include "kern.h"
#include "scratch.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_counters);
} counters SEC(".maps");

/* Counts the reason for which a packet is dropped that is not the one in hand. */
__inline void count_reason(enum pf_reason reason)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->reason[reason]++;
}

/* Counts a reason that is not the packet's: OpenBSD keeps some, met while the rules decide, out
 * of the log. */
__inline void reason_count(struct pf_scratch *s, __u32 reason)
{
	barrier_var(reason);	/* the verifier does not see why it should be in bounds */
	if (reason >= PF_REASON_MAX)
		return;
	count_reason(reason);
	s->outcome.counted[reason]++;
}

__inline void reason_set(struct pf_scratch *s, __u32 reason)
{
	s->outcome.reason = reason;
	reason_count(s, reason);
}

__inline void count_state(enum pf_state_counter counter)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->state[counter]++;
}

/* A state was removed that never was one. */
__inline void uncount_removal(void)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->state[PF_COUNT_REMOVALS]--;
}

__inline void count_limit(enum pf_limit_counter counter)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->limit[counter]++;
}

__inline void count_source(enum pf_source_counter counter)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->source[counter]++;
}

__inline void count_log_lost(void)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->log_lost++;
}

__inline void count_drop_lost(__u32 reader)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count && reader < PF_DROP_READERS)
		count->drops_lost[reader]++;
}

__inline void count_drop_unreported(void)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->drops_unreported++;
}

__inline void count_flow_lost(void)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->flow_lost++;
}

__inline void count_forwarded(enum pf_forwarded by)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->forwarded[by]++;
}

__inline void count_left_to(enum pf_left_to who)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count && who < PF_LEFT_TO_MAX)
		count->left_to[who]++;
}

__inline void count_divert_lost(void)
{
	__u32 zero = 0;
	struct pf_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->divert_lost++;
}

#endif /* PF_REASON_H */
