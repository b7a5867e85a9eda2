/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The stamp of packets that come in and that pf lets by, in skb->tc_index: the interface, and where
 * the IP header stands that pf has judged, mixed with a secret. The guard demands the stamp
 * (guard.h). A packet for which a rule has chosen a queue has the number of that queue instead.
 *
 * A packet that the firewall has made has a stamp of another kind: the bits of its mark that decide
 * about it, and where its IP header stood as it came in. It needs no secret: only programs and
 * filters of tc write to skb->tc_index, and of what a packet brings along from another namespace,
 * whose programs may have written there, pf_ingress believes nothing without a mark (mark.h).
 */
#ifndef PF_STAMP_H
#define PF_STAMP_H

#include "config.h"
#include "frame.h"
#include "kern.h"
#include "queue.h"

/* The stamp is that of a packet which the firewall has made. */
#define GENERATED_BIT	0x2000
/* The rest of a stamp. */
#define STAMP_MASK	(GENERATED_BIT - 1)
/* In a stamp of that kind: the position of the IP header, and the task with the packet. */
#define POSITION_MASK	0x01ff
#define KIND_SHIFT	9
#define KIND_MAGIC	0xa	/* differs from numbers that a filter of tc is likely to write */
/* Such a packet has enum pf_generated in place of a tag: the bits that it uses, and the others. */
#define KIND_USED	(7u << PF_MARK_TAG_SHIFT)
#define KIND_UNUSED	(PF_MARK_TAG_MASK & ~KIND_USED)

/* Spreads interfaces over all bits of a stamp; odd, so that no two of 8,192 have the same bits. */
#define STAMP_FACTOR	0x4f1bu

/* The stamp of a packet that came in by an interface and whose IP header stands at `position`,
 * counted from the beginning of the memory that the packet is in. */
__inline __u16 stamp_at(const struct pf_status *status, __u32 ifindex, __u32 position)
{
	return (((ifindex * STAMP_FACTOR) ^ position ^ status->stamp) & STAMP_MASK) | STAMP_BIT;
}

/* The stamp of a packet that the firewall has made, with this mark, before the packet comes in. */
__inline __u16 generated_stamp(__u32 mark)
{
	__u16 kind = (mark & KIND_USED) >> PF_MARK_TAG_SHIFT | !!(mark & PF_MARK_REASSEMBLED) << 3;

	return (kind ^ KIND_MAGIC) << KIND_SHIFT | STAMP_BIT | MARKED_BIT | GENERATED_BIT;
}

/* True if the firewall has made a packet with this mark and this skb->tc_index. */
__inline bool has_generated_stamp(__u32 mark, __u16 index)
{
	return !(mark & KIND_UNUSED) && (index & ~POSITION_MASK) == generated_stamp(mark);
}

/* True of a stamp of that kind, whatever mark it is for. */
__inline bool is_generated_stamp(__u16 index)
{
	return index & STAMP_BIT && index & GENERATED_BIT;
}

/* Stamps a packet whose IP header stands `ip` bytes behind the beginning of the frame. One that the
 * firewall has made keeps its own stamp, which gets the position, and one with a queue that. */
__inline void stamp(struct __sk_buff *skb, __u32 ip)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	const struct pf_status *status = pf_status();
	__u32 position = kern->mac_header + ip;
	__u16 index = skb->tc_index;

	if (is_generated_stamp(index))
		skb->tc_index = (index & ~POSITION_MASK) | (position & POSITION_MASK);
	else if (status && (index & STAMP_BIT || !(index & PF_QUEUE_MAX)))
		skb->tc_index = stamp_at(status, skb->ingress_ifindex, position) |
				(index & MARKED_BIT);
}

/* Takes the stamp off a packet that leaves, as it may come in again at the other end of a veth. The
 * rest says that the packet's mark is ours. */
__inline void forget_stamp(struct __sk_buff *skb)
{
	__u16 index = skb->tc_index;

	if (index & STAMP_BIT)
		skb->tc_index = index & MARKED_BIT ? STAMP_BIT | MARKED_BIT : 0;
}

/* True if the stamp says that pf_ingress has judged a packet which came in by an interface and
 * whose IP header stands at `position`. */
__inline bool is_stamp_at(__u16 index, const struct pf_status *status, __u32 ifindex,
			  __u32 position)
{
	return (index & ~MARKED_BIT) == stamp_at(status, ifindex, position);
}

/* True if pf_ingress has judged the packet on the interface that it came in by, at the place where
 * its IP header stands now. */
__inline bool has_stamp(const struct sk_buff *skb, const struct pf_status *status)
{
	return is_stamp_at(skb->tc_index, status, skb->skb_iif, skb->network_header);
}

/* True if pf_ingress may have judged the packet though it has no such stamp: a rule has chosen a
 * queue, the firewall has made the packet, or the kernel has given it to a VRF device, which is the
 * interface then; the control block still has the interface before. */
__inline bool may_have_lost_stamp(const struct sk_buff *skb, const struct pf_status *status)
{
	__u32 ifindex;

	if (skb->tc_index && !(skb->tc_index & STAMP_BIT))
		return true;
	if (skb->mark & PF_MARK_GENERATED && has_generated_stamp(skb->mark, skb->tc_index) &&
	    !((skb->tc_index ^ skb->network_header) & POSITION_MASK))
		return true;
	return !bpf_probe_read_kernel(&ifindex, sizeof(ifindex), skb->cb) &&
	       is_stamp_at(skb->tc_index, status, ifindex, skb->network_header);
}

#endif /* PF_STAMP_H */
