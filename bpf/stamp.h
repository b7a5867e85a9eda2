/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The stamp of packets that come in and that pf lets by, in skb->tc_index: the interface, and where
 * the IP header stands that pf has judged, mixed with a secret. The guard demands the stamp
 * (guard.h). A packet for which a rule has chosen a queue has the number of that queue instead.
 */
#ifndef PF_STAMP_H
#define PF_STAMP_H

#include "config.h"
#include "frame.h"
#include "kern.h"
#include "queue.h"

/* Spreads interfaces over all bits of a stamp; odd, so that no two of 32,768 have the same bits. */
#define STAMP_FACTOR	0x4f1bu

/* The stamp of a packet that came in by an interface and whose IP header stands at `position`,
 * counted from the beginning of the memory that the packet is in. */
__inline __u16 stamp_at(const struct pf_status *status, __u32 ifindex, __u32 position)
{
	return ((ifindex * STAMP_FACTOR) ^ position ^ status->stamp) | STAMP_BIT;
}

/* Stamps a packet whose IP header stands `ip` bytes behind the beginning of the frame. */
__inline void stamp(struct __sk_buff *skb, __u32 ip)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	const struct pf_status *status = pf_status();

	if (status && (!skb->tc_index || skb->tc_index & STAMP_BIT))
		skb->tc_index = stamp_at(status, skb->ingress_ifindex, kern->mac_header + ip);
}

/* Takes the stamp off a packet that leaves, as it may come in again at the other end of a veth. The
 * rest says that the packet's mark is ours (sign_mark). */
__inline void forget_stamp(struct __sk_buff *skb)
{
	if (skb->tc_index & STAMP_BIT)
		skb->tc_index = skb->mark & PF_MARK_MASK ? STAMP_BIT : 0;
}

/* Stamps a packet that the firewall has made: nobody has looked for its IP header. */
__inline void stamp_generated(struct __sk_buff *skb)
{
	__u32 tags = 0;
	__be16 type;

	stamp(skb, has_ethernet_header(skb) ? skip_tags(skb, &type, &tags) : 0);
}

/* True if pf_ingress has judged the packet on the interface that it came in by, at the place where
 * its IP header stands now. */
__inline bool has_stamp(const struct sk_buff *skb, const struct pf_status *status)
{
	return skb->tc_index == stamp_at(status, skb->skb_iif, skb->network_header);
}

/* True if pf_ingress may have judged the packet though it has no stamp: a rule has chosen a queue,
 * or the kernel has given it to a VRF device, which is the interface then; the control block still
 * has the interface before. */
__inline bool may_have_lost_stamp(const struct sk_buff *skb, const struct pf_status *status)
{
	__u32 ifindex;

	if (skb->tc_index && !(skb->tc_index & STAMP_BIT))
		return true;
	return !bpf_probe_read_kernel(&ifindex, sizeof(ifindex), skb->cb) &&
	       skb->tc_index == stamp_at(status, ifindex, skb->network_header);
}

#endif /* PF_STAMP_H */
