/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Random numbers: SipHash under the secret of the maps, of a counter that each CPU has and of the
 * time. bpf_get_prandom_u32() will not do, because it is linear: whoever sees 113 bits of it
 * computes all others.
 */
#ifndef PF_RANDOM_H
#define PF_RANDOM_H

#include "config.h"
#include "kern.h"
#include "siphash.h"
#include "time.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} random_draws SEC(".maps");

/* Returns 32 random bits. A program that interrupts another one on the same CPU may get the same
 * count, but not at the same time. */
__global __u32 random_bits(void)
{
	__u32 zero = 0;
	__u64 *draws = bpf_map_lookup_elem(&random_draws, &zero);
	struct pf_status *status = pf_status();
	struct siphash h;

	if (!draws || !status)
		return 0;
	siphash_begin(&h, status->secret[0], status->secret[1]);
	siphash_word(&h, ++*draws << 16 | bpf_get_smp_processor_id());
	siphash_word(&h, bpf_ktime_get_boot_ns());
	return siphash_end(&h, 0, 16);
}

/* Returns a number from 0 to bound - 1. */
__inline __u32 random_draw(__u32 bound)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return min(driven->random, bound - 1);
	return random_bits() % bound;
}

#endif /* PF_RANDOM_H */
