/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Numbers that nobody outside can guess, for packets of one connection: hashes of its addresses and
 * ports under a secret. The kernel's random numbers will not do: whoever sees some knows the
 * others.
 */
#ifndef PF_SECRET_H
#define PF_SECRET_H

#include "config.h"
#include "kern.h"
#include "scratch.h"
#include "siphash.h"
#include "time.h"

enum pf_secret_use {
	PF_SECRET_SEQUENCE,		/* where a side's sequence numbers begin */
	PF_SECRET_PROXY,		/* and those of the proxy towards the server */
	PF_SECRET_TIMESTAMP,		/* what is added to a side's timestamps */
	PF_SECRET_PORT,			/* where the search for a port begins */
};

#define SEQUENCE_CLOCK_SHIFT	12	/* RFC 6528 says 4 microseconds a step: 4.096 */

/* Of ports every moment has its own, else the same connection would get the same one again. */
__global __u64 hash_connection(struct pf_scratch *s, __u32 use)
{
	struct pf_status *status = pf_status();
	struct siphash h;

	if (!s || !status)
		return 0;
	siphash_begin(&h, status->secret[0], status->secret[1]);
	siphash_word(&h, s->pd.source.half[0]);
	siphash_word(&h, s->pd.source.half[1]);
	siphash_word(&h, s->pd.destination.half[0]);
	siphash_word(&h, s->pd.destination.half[1]);
	siphash_word(&h, (__u64)s->pd.source_port << 48 | (__u64)s->pd.destination_port << 32 |
			 s->pd.family << 8 | use);
	siphash_word(&h, use == PF_SECRET_PORT ? bpf_ktime_get_boot_ns() : 0);
	return siphash_end(&h, 0, 48);
}

/* A number from 0 to bound - 1 for a port. */
__inline __u32 secret_draw(struct pf_scratch *s, __u32 bound)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return min(driven->random, bound - 1);
	return (__u32)hash_connection(s, PF_SECRET_PORT) % bound;
}

/* An initial sequence number (RFC 6528): later connections of the same ends begin higher. */
__inline __u32 initial_sequence(struct pf_scratch *s, enum pf_secret_use use)
{
	struct pf_test *driven = pf_driven();

	if (driven)
		return driven->sequence;
	return hash_connection(s, use) + (bpf_ktime_get_boot_ns() >> SEQUENCE_CLOCK_SHIFT);
}

/* What is added to the numbers of a side that begins with `first`; 0 says that nothing is. */
__inline __u32 sequence_difference(__u32 chosen, __u32 first)
{
	return chosen == first ? 1 : chosen - first;
}

#endif /* PF_SECRET_H */
