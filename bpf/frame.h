/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Bytes of a frame: fetching them, and finding the IP header behind the link header.
 *
 * All bytes are fetched with bpf_skb_load_bytes, so it does not matter how the kernel stores them.
 */
#ifndef PF_FRAME_H
#define PF_FRAME_H

#include "kern.h"
#include "scratch.h"

#define MAX_HEADERS	20		/* as OpenBSD: more is an attack */
#define MAX_VLAN_TAGS	2

/* Copies a header out of the packet. Beyond the packet's end is too short; and behind the IP
 * header of a later fragment there are no headers. */
__inline int pull(struct __sk_buff *skb, struct pf_pdesc *pd, __u32 offset, void *to, __u32 length)
{
	if (pd->non_initial)
		return PF_REASON_FRAGMENT;
	if (offset + length > pd->limit || bpf_skb_load_bytes(skb, pd->ip + offset, to, length))
		return PF_REASON_SHORT;
	return 0;
}

/* Finds the IP header: its offset and family go to the descriptor. False if it is not IP. */
__inline bool find_ip(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	struct ethernet ethernet;
	struct vlan_tag tag;
	__be16 type = skb->protocol;

	pd->ip = 0;
	if (has_ethernet_header(skb)) {
		if (bpf_skb_load_bytes(skb, 0, &ethernet, sizeof(ethernet)))
			return false;
		type = ethernet.type;
		pd->ip = sizeof(ethernet);
		for (int i = 0; i < MAX_VLAN_TAGS; i++) {
			if (type != bpf_htons(ETHERTYPE_VLAN) && type != bpf_htons(ETHERTYPE_QINQ))
				break;
			if (bpf_skb_load_bytes(skb, pd->ip, &tag, sizeof(tag)))
				return false;
			type = tag.type;
			pd->ip += sizeof(tag);
		}
	}
	if (type == bpf_htons(ETHERTYPE_IP))
		pd->family = AF_INET;
	else if (type == bpf_htons(ETHERTYPE_IPV6))
		pd->family = AF_INET6;
	else
		return false;
	return true;
}

/* Takes the tag that a frame has besides its bytes; `protocol` is 0 if it has none. False if there are
 * more tags, among the bytes. */
__inline bool take_tag(struct __sk_buff *skb, __be16 *protocol, __u16 *tag)
{
	__be16 type = skb->protocol;

	*protocol = 0;
	*tag = 0;
	if (type != bpf_htons(ETHERTYPE_IP) && type != bpf_htons(ETHERTYPE_IPV6))
		return false;
	if (!skb->vlan_present)
		return true;
	*protocol = skb->vlan_proto;
	*tag = skb->vlan_tci;
	return !bpf_skb_vlan_pop(skb);
}

#endif /* PF_FRAME_H */
