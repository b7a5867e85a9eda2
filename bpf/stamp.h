/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The stamp of packets that come in and that pf lets by, in skb->tc_index: where the IP header
 * stands that pf has judged, mixed with a secret. The guard demands the stamp (guard.h). A packet
 * for which a rule has chosen a queue has the number of that queue instead.
 */
#ifndef PF_STAMP_H
#define PF_STAMP_H

#include "config.h"
#include "frame.h"
#include "kern.h"
#include "queue.h"

/* The stamp of a packet whose IP header stands at `position`, counted from the beginning of the
 * memory that the packet is in. */
__inline __u16 stamp_at(const struct pf_status *status, __u32 position)
{
	return (position ^ status->stamp) | STAMP_BIT;
}

/* Stamps a packet whose IP header stands `ip` bytes behind the beginning of the frame. */
__inline void stamp(struct __sk_buff *skb, __u32 ip)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	const struct pf_status *status = pf_status();

	if (status && (!skb->tc_index || skb->tc_index & STAMP_BIT))
		skb->tc_index = stamp_at(status, kern->mac_header + ip);
}

/* Stamps a packet that the firewall has made: nobody has looked for its IP header. */
__inline void stamp_generated(struct __sk_buff *skb)
{
	__u32 tags = 0;
	__be16 type;

	stamp(skb, has_ethernet_header(skb) ? skip_tags(skb, &type, &tags) : 0);
}

/* True if pf_ingress has judged the packet at the place where its IP header stands now. */
__inline bool has_stamp(const struct sk_buff *skb, const struct pf_status *status)
{
	const __u16 index = skb->tc_index;

	return index & STAMP_BIT ? index == stamp_at(status, skb->network_header) : index;
}

#endif /* PF_STAMP_H */
