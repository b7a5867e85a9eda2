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
#include "wire.h"

#define MAX_HEADERS	20		/* as OpenBSD: more is an attack */
#define MAX_OTHER_LINK_HEADER	64	/* GRE in IPv6 with a key, a checksum and a number has 56 */
/* Differs from OpenBSD: linux.md, "VLAN tags" */
#define MAX_VLAN_TAGS	3		/* two of 802.1ad, and one that carries a priority alone */

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

/* The kinds of packets that frames carry */
enum pf_payload {
	PF_PAYLOAD_OTHER,		/* ARP and the like: pf has no say */
	PF_PAYLOAD_IP,
	PF_PAYLOAD_LABELLED,		/* MPLS: IP behind a label, which Linux may take off */
	PF_PAYLOAD_HIDDEN,		/* IP behind headers that pf does not parse: dropped */
};

/* True if the EtherType is that of a VLAN tag. Linux takes off the first two kinds by itself, cards
 * and hosts behind a bridge also take off the third. */
__inline bool is_vlan_tag(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_VLAN) || type == bpf_htons(ETHERTYPE_QINQ) ||
	       type == bpf_htons(ETHERTYPE_QINQ_OLD);
}

__inline bool is_ip(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_IP) || type == bpf_htons(ETHERTYPE_IPV6);
}

__inline bool is_label(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_MPLS) || type == bpf_htons(ETHERTYPE_MPLS_SHARED);
}

/* True if the 802.2 header at `offset` stands in front of an IP packet: SNAP with the EtherType of
 * IP, or of a tag, which may be followed by IP; or the service access point that once was IP's (RFC
 * 1042). */
/* Differs from OpenBSD: linux.md, "802.2 headers" */
__inline bool is_ip_in_llc(struct __sk_buff *skb, __u32 offset)
{
	struct llc_snap llc;

	if (bpf_skb_load_bytes(skb, offset, &llc, sizeof(llc)))
		return false;
	if (llc.destination == LLC_SAP_IP)
		return true;
	return llc.destination == LLC_SAP_SNAP && llc.source == LLC_SAP_SNAP &&
	       (is_ip(llc.type) || is_vlan_tag(llc.type));
}

/* True if the kernel takes the frame that came in for another kind of packet than its link header
 * says. */
__inline bool is_mislabelled(const struct __sk_buff *skb, const struct pf_pdesc *pd, __be16 type)
{
	return pd->direction == PF_IN && is_ip((__be16)skb->protocol) && type != (__be16)skb->protocol;
}

/* Walks over the tags behind the Ethernet header of a frame. Returns the offset behind them, or 0
 * if the frame ends before; writes the type that stands there, and adds to the number of tags. */
__inline __u32 skip_tags(struct __sk_buff *skb, __be16 *type, __u32 *tags)
{
	struct ethernet ethernet;
	struct vlan_tag tag;
	__u32 at = sizeof(ethernet);

	if (bpf_skb_load_bytes(skb, 0, &ethernet, sizeof(ethernet)))
		return 0;
	*type = ethernet.type;
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		if (!is_vlan_tag(*type))
			break;
		if (bpf_skb_load_bytes(skb, at, &tag, sizeof(tag)))
			return 0;
		*type = tag.type;
		at += sizeof(tag);
		++*tags;
	}
	return at;
}

/* The length of the link header in front of the IP header, on an interface without Ethernet. Mostly
 * there is none; GRE to many peers has the outer IP header and its own, IPoIB has four bytes. */
__inline __u32 other_link_header(struct __sk_buff *skb)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);

	return (__u16)(kern->network_header - kern->mac_header);
}

/* Finds the IP header and writes its offset and family to the descriptor, whose direction is
 * set. */
__inline enum pf_payload find_ip(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	__be16 type = skb->protocol;
	__u32 tags = !!skb->vlan_present;

	if (!has_ethernet_header(skb)) {
		pd->ip = other_link_header(skb);
		if (pd->ip > MAX_OTHER_LINK_HEADER)
			return PF_PAYLOAD_HIDDEN;
	} else {
		pd->ip = skip_tags(skb, &type, &tags);
		if (!pd->ip)
			return is_vlan_tag(type) ? PF_PAYLOAD_HIDDEN : PF_PAYLOAD_OTHER;
		if (is_mislabelled(skb, pd, type))
			return PF_PAYLOAD_HIDDEN;
		if (bpf_ntohs(type) < ETHERTYPE_MIN && is_ip_in_llc(skb, pd->ip))
			return PF_PAYLOAD_HIDDEN;
	}
	if (is_vlan_tag(type))
		return PF_PAYLOAD_HIDDEN;
	if (is_label(type))
		return PF_PAYLOAD_LABELLED;
	if (!is_ip(type))
		return PF_PAYLOAD_OTHER;
	pd->family = type == bpf_htons(ETHERTYPE_IP) ? AF_INET : AF_INET6;
	return tags > MAX_VLAN_TAGS ? PF_PAYLOAD_HIDDEN : PF_PAYLOAD_IP;
}

/* True if VLAN tags stand in the frame itself, in front of the IP header. */
__inline bool has_tags_in_frame(const struct pf_pdesc *pd)
{
	return pd->ip && pd->ip != sizeof(struct ethernet);
}

/* Takes the tag that a frame has besides its bytes; `protocol` is 0 if it has none. False if there
 * are more tags, among the bytes. */
__inline bool take_tag(struct __sk_buff *skb, __be16 *protocol, __u16 *tag)
{
	__be16 type = skb->protocol;

	*protocol = 0;
	*tag = 0;
	if (!is_ip(type))
		return false;
	if (!skb->vlan_present)
		return true;
	*protocol = skb->vlan_proto;
	*tag = skb->vlan_tci;
	return !bpf_skb_vlan_pop(skb);
}

#endif /* PF_FRAME_H */
