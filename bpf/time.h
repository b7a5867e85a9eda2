/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The clock. Nothing else asks the kernel for it, so a test that drives struct pf_test drives all
 * of the data plane. Random numbers are in random.h.
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

/* The same for a load or two: the timer that sweeps states fires as each second begins, and writes
 * down which it is. It is late by as much as softirqs are, some milliseconds. A state may then live
 * so much longer, or end so much sooner after a packet that the second before was noted for;
 * timeouts are whole seconds that begin anywhere in one, so that is less than they leave open. The
 * timer's clock counts sleep: on a machine that wakes up it fires at once. Where softirqs have to
 * wait for longer than that, the clock itself is asked. */
__inline __u32 uptime_about(const struct pf_status *status)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return driven->now;
	return bpf_jiffies64() < status->second_until ? status->second : uptime();
}

/* the same in nanoseconds */
__inline __u64 uptime_ns(void)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return driven->now * NSEC_PER_SEC;
	return bpf_ktime_get_boot_ns();
}

#endif /* PF_TIME_H */
