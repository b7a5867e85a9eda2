/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Fragments under `set reassemble yes` (pf-semantics section 12). A BPF program cannot hold
 * packets, so skipstepd does: a fragment is sent out of the daemon's device, with struct pf_handoff
 * behind it, and the datagram comes in by that device when it is whole. From there it is sent in,
 * or out, by the interface where its fragments were, and filtered there like any packet.
 *
 * Behind a datagram that comes back stays what the daemon wrote there, as if it were padding: a
 * program cannot cut off the end of a long packet.
 *
 * A datagram that leaves takes the same way once more to become fragments again: the hook lies
 * behind the IP output that would have done it.
 */
#ifndef PF_FRAGMENT_H
#define PF_FRAGMENT_H

#include "checksum.h"
#include "handoff.h"
#include "interface.h"
#include "kern.h"
#include "mark.h"
#include "scratch.h"
#include "time.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_reassembler);
} reassembler SEC(".maps");

/* The packet's hash carries the length of the longest fragment, next to this. */
#define HASH_MAGIC	0x70660000u
#define HASH_MASK	0xffff0000u

/* Returns the daemon, or NULL if none runs: the device goes with it. */
__inline struct pf_reassembler *find_reassembler(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct pf_reassembler *daemon = bpf_map_lookup_elem(&reassembler, &zero);

	return daemon && has_device(skb, daemon->ifindex) ? daemon : NULL;
}

/* Where the packet came in before it goes out. Of one that comes from the daemon's device the
 * program there has noted it. */
__inline __u32 came_in_by(struct __sk_buff *skb)
{
	__u32 zero = 0, ifindex = skb->ingress_ifindex, noted;
	struct pf_reassembler *daemon;

	if (!(skb->mark & PF_MARK_REASSEMBLED) || !ifindex)
		return ifindex;
	noted = skb->cb[0];
	barrier_var(noted);	/* clang would choose between two places in the context */
	daemon = bpf_map_lookup_elem(&reassembler, &zero);
	return daemon && daemon->ifindex == ifindex ? noted : ifindex;
}

/* Returns the length of the longest fragment that a datagram came in, as a packet, or 0 if it is
 * unknown: new addresses take the packet's hash away. */
__inline __u32 longest_fragment(struct __sk_buff *skb, const struct pf_scratch *s)
{
	struct pf_test *driven = pf_driven();
	__u32 hash;

	if (driven)
		return driven->longest_fragment;
	hash = s->reassembled ? bpf_get_hash_recalc(skb) : 0;
	return (hash & HASH_MASK) == HASH_MAGIC ? hash & ~HASH_MASK : 0;
}

/* Returns the MTU of an interface, 0 being that of the packet, or 0 if there is no such one. */
__inline __u32 mtu_of(struct __sk_buff *skb, __u32 ifindex)
{
	__u32 mtu = 0;

	return bpf_check_mtu(skb, ifindex, &mtu, 0, 0) < 0 ? 0 : mtu;
}

/* Returns how long fragments of the packet may be: no longer than the link takes, and no longer
 * than they came. Of IPv6 it is left to the daemon if that is unknown. */
__inline __u32 fragment_length(struct __sk_buff *skb, const struct pf_scratch *s)
{
	__u32 longest = longest_fragment(skb, s), mtu = min(mtu_of(skb, 0), 0xffff);

	if (!longest)
		return s->pd.family == AF_INET ? mtu : 0;
	return min(longest, mtu);
}

/* Sends the packet to the daemon. Returns what the program returns, or -1 if there is no daemon. A
 * test is its own daemon. */
/* Differs from OpenBSD: linux.md, "Fragments" */
__global int hand_over(struct __sk_buff *skb, struct pf_scratch *s, __u32 order)
{
	struct pf_handoff frame = {
		.ifindex = skb->ifindex,
		.mark = skb->mark,
		.priority = skb->priority,
		.order = order,
	};
	struct pf_reassembler *daemon;
	bool room;

	if (!s)
		return -1;
	if (driven_by_test())
		return PF_TCX_DROP;
	daemon = find_reassembler(skb);
	if (!daemon)
		return -1;
	room = skb->len >= s->pd.ip + s->pd.length + sizeof(frame);
	frame.nonce = daemon->nonce;
	frame.received = s->came_in_by;
	frame.direction = s->pd.direction;
	frame.rdomain = s->pd.rdomain;
	frame.delay = carried_delay(skb);
	/* the device writes a tag that stands apart into the frame */
	frame.link_header = s->pd.ip + (skb->vlan_present ? sizeof(struct vlan_tag) : 0);
	if (order == PF_HANDOFF_REFRAGMENT)
		frame.longest = fragment_length(skb, s);
	/* the device wants a link header, which others need not have */
	if (!has_ethernet_header(skb) && bpf_skb_change_head(skb, sizeof(struct ethernet), 0))
		return -1;
	/* what came from the daemon has room still; a long packet could not be made longer */
	if (!room && bpf_skb_change_tail(skb, skb->len + sizeof(frame), 0))
		return -1;
	frame.balance = ~fold(bpf_csum_diff(NULL, 0, (__be32 *)&frame, sizeof(frame), 0));
	if (bpf_skb_store_bytes(skb, skb->len - sizeof(frame), &frame, sizeof(frame), 0))
		return -1;
	return send_signed(skb, daemon->ifindex);
}

/* A packet that passed and is longer than its fragments were, or than the link that we routed it
 * to. It is whole until it leaves, unless the kernel's bridge has it before: then it is put
 * together on its way out once more. */
/* Differs from OpenBSD: linux.md, "Fragments" */
__inline bool must_fragment(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 length = s->pd.length;

	if (!s->reassembled && !s->routed_here)
		return false;
	if (s->pd.direction != PF_OUT && !goes_to_kernel_bridge(skb, s))
		return false;
	/* routers fragment IPv4 as they like, IPv6 must not notice that there was one */
	if (s->pd.family == AF_INET6)
		return s->reassembled;
	return bpf_check_mtu(skb, 0, &length, 0, 0) == BPF_MTU_CHK_RET_FRAG_NEEDED;
}

#endif /* PF_FRAGMENT_H */
