/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The neighbours that packets are forwarded to, and how frames get there: what the packets of many
 * states, or of none, have in common on their way past the kernel. A neighbour has a number, which
 * no other has at the same time; states and memos note that. Each CPU knows by itself what a frame
 * to the neighbour looks like, and when the kernel has last confirmed that: by the routes, or by a
 * packet that it forwarded there.
 *
 * Once a second or two a packet for each neighbour goes by the kernel. That keeps the neighbour
 * alive, and shows what the device that it leaves by is like.
 */
#ifndef PF_NEIGHBOUR_H
#define PF_NEIGHBOUR_H

#include "kern.h"
#include "scratch.h"

/* Places for neighbours. A number's last bits say where its neighbour is. */
#define NEIGHBOURS	4096

/* places that a neighbour may have, one behind the other, from where the hash of its address
 * says */
#define NEIGHBOUR_LOOKS	4

/* seconds that what a frame looks like holds without being confirmed, in which the kernel has a
 * packet: */
#define HOP_LIFE	2
#define LEFT_TO_KERNEL	1

struct pf_neighbour {
	struct bpf_spin_lock lock;
	__u32 number;			/* 0: nobody was ever here */
	__be32 address[4];
	__u32 ifindex;
	__u32 second;			/* when somebody last asked for the number */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NEIGHBOURS);
	__type(key, __u32);
	__type(value, struct pf_neighbour);
} neighbours SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NEIGHBOURS);
	__type(key, __u32);
	__type(value, struct pf_hop);
} hops SEC(".maps");

/* The number of a neighbour, if the place is its own or nobody has asked for who is there: then
 * numbers that are noted have come of age, and the place has a new one. 0 if it is another's. */
__inline __u32 number_at(__u32 place, const struct bpf_fib_lookup *lookup, __u32 now)
{
	struct pf_neighbour *neighbour = bpf_map_lookup_elem(&neighbours, &place);
	const __be32 *address = lookup->ipv6_dst;	/* of IPv4 the rest is zero */
	__u32 number = 0;
	bool is_it;

	if (!neighbour)
		return 0;
	bpf_spin_lock(&neighbour->lock);
	is_it = neighbour->ifindex == lookup->ifindex &&
		neighbour->address[0] == address[0] && neighbour->address[1] == address[1] &&
		neighbour->address[2] == address[2] && neighbour->address[3] == address[3];
	if (!is_it && now - neighbour->second > HOP_LIFE) {
		for (int i = 0; i < 4; i++)
			neighbour->address[i] = address[i];
		neighbour->ifindex = lookup->ifindex;
		neighbour->number += neighbour->number ? NEIGHBOURS : NEIGHBOURS + place;
		is_it = true;
	}
	if (is_it) {
		neighbour->second = now;
		number = neighbour->number;
	}
	bpf_spin_unlock(&neighbour->lock);
	return number;
}

/* The number of the neighbour that s->lookup has found, or 0 if there is no place for it now. */
__global __u32 number_of_neighbour(struct pf_scratch *s)
{
	const struct bpf_fib_lookup *lookup;
	__u32 hash, number;

	if (!s)
		return 0;
	lookup = &s->lookup;
	hash = lookup->ifindex;
	for (int i = 0; i < 4; i++)
		hash = (hash ^ lookup->ipv6_dst[i]) * 0x9e3779b1;
	hash >>= 20;
	for (__u32 i = 0; i < NEIGHBOUR_LOOKS; i++) {
		number = number_at((hash + i) & (NEIGHBOURS - 1), lookup, s->now);
		if (number)
			return number;
	}
	return 0;
}

/* What this CPU knows of the neighbour with the number, if anything. */
__inline struct pf_hop *known_hop(__u32 number)
{
	__u32 place = number & (NEIGHBOURS - 1);
	struct pf_hop *hop = bpf_map_lookup_elem(&hops, &place);

	return hop && number && hop->number == number ? hop : NULL;
}

/* The same of a neighbour that has the number now; at first that is nothing. */
__inline struct pf_hop *hop_of(__u32 number)
{
	__u32 place = number & (NEIGHBOURS - 1);
	struct pf_hop *hop = number ? bpf_map_lookup_elem(&hops, &place) : NULL;

	if (hop && hop->number != number) {
		__builtin_memset(hop, 0, sizeof(*hop));
		hop->number = number;
	}
	return hop;
}

/* Whether a packet that was at this hook has gone to the neighbour by the kernel a moment ago. If
 * not, this one will. */
__inline bool is_kept_alive(struct pf_hop *hop, enum pf_forwarded hook, __u32 now)
{
	if (now - hop->left[hook] <= LEFT_TO_KERNEL)
		return true;
	hop->left[hook] = now;
	return false;
}

/* Notes what the link addresses of frames to the neighbour are now. */
__inline void confirm(struct pf_hop *hop, const __u8 *neighbour, const __u8 *own, __u32 now)
{
	__builtin_memcpy(hop->neighbour, neighbour, sizeof(hop->neighbour));
	__builtin_memcpy(hop->own, own, sizeof(hop->own));
	hop->confirmed = now;
}

/* Whether frames to the neighbour are known to look as was noted. */
__inline bool is_confirmed(const struct pf_hop *hop, __u32 now)
{
	return hop->leaves_by && now - hop->confirmed <= HOP_LIFE;
}

#endif /* PF_NEIGHBOUR_H */
