/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The flow cache. A memo is a cached verdict: for a flow without a state, each CPU remembers the
 * verdict of the rules and the route that the kernel would have chosen. A plain walk (plain.h) that
 * asked no table has the same result for all packets with the same key. So later packets take the
 * result from the memo, and count the rules that the walk has evaluated.
 *
 * The hash of the key names the place of a memo. If another memo is there, the memo takes the place
 * beside it, and replaces the memo of that place. So two flows with one hash do not replace each
 * other at every packet. The verdict of a memo does not expire, because another generation of the
 * rules has other keys. The route in a memo does (path.h).
 *
 * memo_tags has one byte of the hash of each memo: 4 kB that are always in the CPU's cache. So a
 * packet without a memo, such as one that makes a state, does not wait for main memory.
 */
#ifndef PF_MEMO_H
#define PF_MEMO_H

#include "kern.h"
#include "scratch.h"

#define MEMO_BITS	12
#define MEMO_MASK	((1 << MEMO_BITS) - 1)

/* Visits that a memo has room for: longer walks are not remembered. */
#define MEMO_VISITS	6

struct pf_memo {
	struct pf_memo_key key;
	struct pf_deciding_rule rule;
	__u32 count;
	__u32 slot[MEMO_VISITS];	/* of the rules that the walk has looked at */
	int strictness;			/* rp_filter when the next was noted */
	struct pf_path path;		/* where the packet went, if it came in: hop.h */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << MEMO_BITS);
	__type(key, __u32);
	__type(value, struct pf_memo);
} memos SEC(".maps");

struct pf_memo_tags {
	__u8 tag[1 << MEMO_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_memo_tags);
} memo_tags SEC(".maps");

/* All that a plain walk may ask of a packet */
__inline void set_memo_key(struct pf_memo_key *key, const struct pf_scratch *s)
{
	const struct pf_pdesc *pd = &s->pd;
	__u8 tcp_flags = pd->protocol == IPPROTO_TCP ? pd->tcp.flags : 0;

	key->source = pd->source;
	key->destination = pd->destination;
	key->header = half_of_words(word_of_ports(pd->source_port, pd->destination_port),
				    word_of_bytes(pd->family, pd->protocol, pd->tos, tcp_flags));
	key->groups = s->interface.groups;
	key->interface = half_of_words(s->interface.id,
				       s->interface.flags | (__u32)(pd->direction == PF_OUT) << 31);
	key->rules = half_of_words(pd->rdomain, s->generation);
}

#define KEY_WORDS	(sizeof(struct pf_memo_key) / sizeof(__u64))

__inline bool same_memo_key(const struct pf_memo_key *one, const struct pf_memo_key *other)
{
	const __u64 *a = (const __u64 *)one, *b = (const __u64 *)other;
	__u64 difference = 0;

#pragma unroll
	for (__u32 i = 0; i < KEY_WORDS; i++)
		difference |= a[i] ^ b[i];
	return !difference;
}

/* Products that do not wait for each other are added: what they come to need not withstand anybody,
 * for who makes flows meet makes them slower at most. */
__inline __u64 hash_of_memo(const struct pf_memo_key *key)
{
	static const __u64 factor[] = {
		0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xc2b2ae3d27d4eb4f,
		0xff51afd7ed558ccd, 0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
	};
	const __u64 *word = (const __u64 *)key;
	__u64 hash = 0;

	_Static_assert(sizeof(factor) == sizeof(*key), "a factor for each word");
#pragma unroll
	for (__u32 i = 0; i < KEY_WORDS; i++)
		hash += word[i] * factor[i];
	return hash;
}

/* Where a memo stands, or beside it: the upper bits of its hash. */
__inline __u32 place_of_memo(__u64 hash)
{
	return hash >> (64 - MEMO_BITS);
}

/* Its tag: the byte below them. */
__inline __u8 tag_of_memo(__u64 hash)
{
	return hash >> (56 - MEMO_BITS);
}

/* The memo that stands at s->memo_at, if it has s->memo_key. */
__inline struct pf_memo *same_memo(struct pf_scratch *s)
{
	struct pf_memo *memo = bpf_map_lookup_elem(&memos, &s->memo_at);

	return memo && same_memo_key(&memo->key, &s->memo_key) ? memo : NULL;
}

/* The memo that has s->memo_key. NULL if there is none. */
__inline struct pf_memo *find_memo(struct pf_scratch *s)
{
	const __u64 hash = hash_of_memo(&s->memo_key);
	const __u8 tag = tag_of_memo(hash);
	const struct pf_memo_tags *tags;
	struct pf_memo *memo;
	__u32 zero = 0;

	s->memo_hash = hash;
	s->memo_at = place_of_memo(hash);
	tags = bpf_map_lookup_elem(&memo_tags, &zero);
	if (!tags)
		return NULL;
	if (tags->tag[s->memo_at & MEMO_MASK] == tag) {
		memo = same_memo(s);
		if (memo)
			return memo;
	}
	s->memo_at ^= 1;
	return tags->tag[s->memo_at & MEMO_MASK] == tag ? same_memo(s) : NULL;
}

/* Takes the end of the walk from the memo of packets like this. */
__inline void recall_memo(struct pf_plain_walk *walk, const struct pf_memo *memo)
{
	walk->rule = memo->rule;
	walk->keeps = 0;
	walk->count = memo->count;
#pragma unroll
	for (int i = 0; i < MEMO_VISITS; i++) {
		walk->visit[i].slot = memo->slot[i];
		walk->visit[i].kind = PF_VISIT_RULE;
	}
}

/* The place for a new memo of s->memo_key, which is at s->memo_at then: where its hash says, unless
 * a memo that still holds stands there. */
__inline struct pf_memo *place_for_memo(struct pf_scratch *s)
{
	struct pf_memo *memo;

	s->memo_at = place_of_memo(s->memo_hash);
	memo = bpf_map_lookup_elem(&memos, &s->memo_at);
	if (!memo || memo->key.rules != s->memo_key.rules)
		return memo;
	s->memo_at ^= 1;
	return bpf_map_lookup_elem(&memos, &s->memo_at);
}

/* Remembers how a walk ended. Whoever looked for a memo of it before has found none. */
__inline void keep_memo(struct pf_scratch *s, const struct pf_plain_walk *walk)
{
	struct pf_memo_tags *tags;
	struct pf_memo *memo;
	__u32 zero = 0;

	if (walk->count > MEMO_VISITS || walk->asked_table)
		return;
	memo = place_for_memo(s);
	tags = bpf_map_lookup_elem(&memo_tags, &zero);
	if (!memo || !tags)
		return;
	tags->tag[s->memo_at & MEMO_MASK] = tag_of_memo(s->memo_hash);
	memo->key = s->memo_key;
	memo->rule = walk->rule;
	memo->count = walk->count;
	memo->path.hop = 0;
#pragma unroll
	for (int i = 0; i < MEMO_VISITS; i++)
		memo->slot[i] = walk->visit[i].slot;
}

#endif /* PF_MEMO_H */
