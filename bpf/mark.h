/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * What a packet carries through the kernel from the inbound to the outbound side, in the upper half
 * of skb->mark: tag, priority, and that we made it ourselves, or put it together; and in
 * skb->tstamp its delay.
 *
 * A socket may set skb->mark too (SO_MARK, with CAP_NET_RAW), and so may rules of netfilter between
 * the hooks. Nobody but tc can write skb->tc_index, which therefore vouches for the upper half: by
 * MARKED_BIT, or, if we made the packet ourselves, by a stamp with the bits that decide. So rules
 * of netfilter can change the tag that a rule of ours has given, but neither give one nor make a
 * packet one that is not filtered.
 */
#ifndef PF_MARK_H
#define PF_MARK_H

#include "kern.h"
#include "queue.h"
#include "scratch.h"
#include "stamp.h"
#include "time.h"

/* True if skb->tc_index, as given, says that we have written the upper half of the mark. */
__inline bool is_ours(__u32 mark, __u16 index)
{
	if (mark & PF_MARK_GENERATED)
		return has_generated_stamp(mark, index);
	return mark & PF_MARK_MASK && index & MARKED_BIT && !is_generated_stamp(index);
}

/* Takes from a mark its upper half, and from skb->tc_index the word that it is ours. A queue
 * stays. */
__inline void clear_mark(struct __sk_buff *skb)
{
	__u16 index = skb->tc_index;

	skb->mark &= ~PF_MARK_MASK;
	skb->tc_index = index & STAMP_BIT ? 0 : index & PF_QUEUE_MAX;
}

/* Clears the upper half of a mark that is not ours. A test says what a packet carries. From here on
 * MARKED_BIT says whether the upper half is 0. */
__inline void drop_foreign_mark(struct __sk_buff *skb)
{
	__u32 mark = skb->mark;
	__u16 index = skb->tc_index;

	if ((mark & PF_MARK_MASK || index & MARKED_BIT) && !is_ours(mark, index) &&
	    !driven_by_test())
		clear_mark(skb);
}

/* Writes a mark whose upper half is ours. A packet that we made ourselves has its queue in
 * skb->priority alone: the kernel does not forward it. */
__inline void sign_mark(struct __sk_buff *skb, __u32 mark)
{
	__u16 index = skb->tc_index;

	if (is_generated_stamp(index))
		index = 0;
	if (mark & PF_MARK_GENERATED)
		index = generated_stamp(mark);
	else if (mark & PF_MARK_MASK)
		index |= index ? MARKED_BIT : STAMP_BIT | MARKED_BIT;
	else
		index &= ~MARKED_BIT;
	skb->mark = mark;
	skb->tc_index = index;
}

/* Packets made by the firewall are not filtered, wherever they come by, as in OpenBSD. Asked behind
 * drop_foreign_mark() alone. */
__inline bool is_generated(const struct __sk_buff *skb)
{
	return skb->mark & PF_MARK_GENERATED;
}

/* What is to be done with a packet of ours: stands where others have their tag. */
enum pf_generated {
	PF_GENERATED_PASS = 0,
	PF_GENERATED_COPY,		/* send it to the next hop that is noted beside it */
	PF_GENERATED_ROUTED,		/* fragment it, if it is too long for the link */
	PF_GENERATED_DIVERTED,		/* deliver it here: PF_MARK_DIVERTED */
	PF_GENERATED_GIVEN_BACK,	/* a program had it: let it by, but only here */
};

_Static_assert(!(PF_GENERATED_GIVEN_BACK << PF_MARK_TAG_SHIFT & ~KIND_USED),
	       "a stamp tells all that decides about a packet which the firewall has made");

__inline enum pf_generated generated_for(const struct __sk_buff *skb)
{
	return (skb->mark & PF_MARK_TAG_MASK) >> PF_MARK_TAG_SHIFT;
}

/* Whether a rule hands the packet to a socket of this host. */
__inline bool is_diverted(const struct __sk_buff *skb)
{
	return (skb->mark & PF_MARK_DIVERTED_MASK) == PF_MARK_DIVERTED;
}

/* A routed packet that is filtered once more as it leaves has this beside it. */
#define ROUTED_MAGIC	0x70667274u

/* The word of skb->cb in which pf_ingress and pf_egress tell the long way the direction. */
#define CB_DIRECTION	4

__inline void read_mark(const struct __sk_buff *skb, struct pf_scratch *s)
{
	s->tag = (skb->mark & PF_MARK_TAG_MASK) >> PF_MARK_TAG_SHIFT;
	s->reassembled = !!(skb->mark & PF_MARK_REASSEMBLED);
	s->prio = ((skb->mark & PF_MARK_PRIO_MASK) >> PF_MARK_PRIO_SHIFT) ^ PF_DEFAULT_PRIO;
}

/* `what` is PF_MARK_GENERATED, PF_MARK_REASSEMBLED or 0. */
/* Differs from OpenBSD: linux.md, "Marks" */
__inline void write_mark(struct __sk_buff *skb, __u32 what, __u32 tag, __u32 prio)
{
	__u32 ours = what | (tag << PF_MARK_TAG_SHIFT & PF_MARK_TAG_MASK) |
		((prio ^ PF_DEFAULT_PRIO) << PF_MARK_PRIO_SHIFT & PF_MARK_PRIO_MASK);

	if ((skb->mark & PF_MARK_MASK) != ours)
		sign_mark(skb, (skb->mark & ~PF_MARK_MASK) | ours);
}

/* The delay that the packet carries, 0 for none. */
__inline __u32 carried_delay(const struct __sk_buff *skb)
{
	__u64 departure = skb->tstamp;

	return departure <= PF_MAX_DELAY ? departure : 0;
}

/* The packet carries this delay from now on, whatever it did before. False if it cannot: it has
 * VLAN tags inside. */
__inline bool carry_delay(struct __sk_buff *skb, __u32 delay)
{
	if (delay == carried_delay(skb))
		return true;
	return !bpf_skb_set_tstamp(skb, delay, delay ? BPF_SKB_TSTAMP_DELIVERY_MONO :
						       BPF_SKB_TSTAMP_UNSPEC);
}

#endif /* PF_MARK_H */
