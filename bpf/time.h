/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Clock and randomness. Nothing else asks the kernel for either, so a test that drives struct
 * pf_test drives all of the data plane.
 */
#ifndef PF_TIME_H
#define PF_TIME_H

#include "kern.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_test);
} test SEC(".maps");

/* whether a test is at work, without the world around it */
__inline bool driven_by_test(void)
{
	__u32 zero = 0;
	struct pf_test *driven = bpf_map_lookup_elem(&test, &zero);

	return driven && driven->enabled;
}

#define NSEC_PER_SEC	1000000000ull

/* What a test drives, NULL in real life */
__inline struct pf_test *pf_driven(void)
{
	__u32 zero = 0;
	struct pf_test *driven = bpf_map_lookup_elem(&test, &zero);

	return driven && driven->enabled ? driven : NULL;
}

/* seconds since boot, suspended time included */
__inline __u32 uptime(void)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return driven->now;
	return bpf_ktime_get_boot_ns() / NSEC_PER_SEC;
}

/* The same at next to no cost, up to a tick late. The cheap clock stands still while the machine sleeps: status
 * knows for how long it did. */
__inline __u32 uptime_about(const struct pf_status *status)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return driven->now;
	return (bpf_ktime_get_coarse_ns() + status->slept) / NSEC_PER_SEC;
}

/* the same in nanoseconds */
__inline __u64 uptime_ns(void)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return driven->now * NSEC_PER_SEC;
	return bpf_ktime_get_boot_ns();
}

/* a number from 0 to bound - 1 */
__inline __u32 random_draw(__u32 bound)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return min(driven->random, bound - 1);
	return bpf_get_prandom_u32() % bound;
}

#endif /* PF_TIME_H */
