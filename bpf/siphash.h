/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012) of a few whole words.
 */
#ifndef PF_SIPHASH_H
#define PF_SIPHASH_H

#include "kern.h"

struct siphash {
	__u64 v0, v1, v2, v3;
};

__inline __u64 rotate_left(__u64 word, int bits)
{
	return word << bits | word >> (64 - bits);
}

__inline void siphash_round(struct siphash *h)
{
	h->v0 += h->v1;
	h->v2 += h->v3;
	h->v1 = rotate_left(h->v1, 13) ^ h->v0;
	h->v3 = rotate_left(h->v3, 16) ^ h->v2;
	h->v0 = rotate_left(h->v0, 32);
	h->v2 += h->v1;
	h->v0 += h->v3;
	h->v1 = rotate_left(h->v1, 17) ^ h->v2;
	h->v3 = rotate_left(h->v3, 21) ^ h->v0;
	h->v2 = rotate_left(h->v2, 32);
}

__inline void siphash_begin(struct siphash *h, __u64 k0, __u64 k1)
{
	h->v0 = k0 ^ 0x736f6d6570736575ull;
	h->v1 = k1 ^ 0x646f72616e646f6dull;
	h->v2 = k0 ^ 0x6c7967656e657261ull;
	h->v3 = k1 ^ 0x7465646279746573ull;
}

/* A little-endian word of the message. */
__inline void siphash_word(struct siphash *h, __u64 word)
{
	h->v3 ^= word;
	siphash_round(h);
	siphash_round(h);
	h->v0 ^= word;
}

/* The rest of the message, less than a word, and the length of all of it. */
__inline __u64 siphash_end(struct siphash *h, __u64 rest, __u64 length)
{
	siphash_word(h, rest | length << 56);
	h->v2 ^= 0xff;
	siphash_round(h);
	siphash_round(h);
	siphash_round(h);
	siphash_round(h);
	return h->v0 ^ h->v1 ^ h->v2 ^ h->v3;
}

#endif /* PF_SIPHASH_H */
