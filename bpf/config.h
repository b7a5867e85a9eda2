/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Status and configuration. A packet reads status.generation once, when it comes in, and sees the
 * rules and the configuration of that generation to its end.
 */
#ifndef PF_CONFIG_H
#define PF_CONFIG_H

#include "kern.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_status);
} status SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_COPIES);
	__type(key, __u32);
	__type(value, struct pf_config);
} configs SEC(".maps");

__inline struct pf_status *pf_status(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&status, &zero);
}

__inline struct pf_config *pf_config(__u32 generation)
{
	__u32 index = pf_copy(generation);

	return bpf_map_lookup_elem(&configs, &index);
}

#endif /* PF_CONFIG_H */
