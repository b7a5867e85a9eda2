/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `divert-packet`: what passes goes to a program of the user's, in either direction, and on from
 * here if the program writes it back. skipstepd stands between: the packet is sent out of a device
 * of its own, with struct pf_diverted in front of it, and what the program writes comes in by that
 * device.
 *
 * Whatever the kernel has joined (GSO), it takes apart on the way out of that device, and completes
 * checksums: programs see packets as they are on the wire.
 */
#ifndef PF_DIVERT_PACKET_H
#define PF_DIVERT_PACKET_H

#include "fragment.h"
#include "frame.h"
#include "handoff.h"
#include "kern.h"
#include "mark.h"
#include "reason.h"
#include "scratch.h"
#include "time.h"
#include "timeout.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_diverter);
} diverter SEC(".maps");

/* What the rule that decided says, if it is divert-packet. */
__inline struct pf_rule_states *find_program(struct pf_scratch *s)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &s->rule.slot);

	return rule && rule->divert == PF_DIVERT_PACKET ? rule : NULL;
}

/* Puts struct pf_diverted in front of the packet. False if it cannot be done: the packet is too
 * long, or has VLAN tags inside of each other. */
/* Differs from OpenBSD: linux.md, "Frames that cannot be diverted" */
__inline bool label_packet(struct __sk_buff *skb, struct pf_scratch *s, __be16 port, __u64 nonce)
{
	struct pf_diverted label = {
		.nonce = nonce,
		.ifindex = skb->ifindex,
		.mark = skb->mark & ~PF_MARK_MASK,
		.port = port,
		.direction = s->pd.direction,
		.link_header = s->pd.ip,
	};

	return take_tag(skb, &label.vlan_protocol, &label.vlan_tag) &&
	       !bpf_skb_change_head(skb, sizeof(label), 0) &&
	       !bpf_skb_store_bytes(skb, 0, &label, sizeof(label), 0);
}

/* Sends the packet to the daemon. Returns what the program returns. What comes back carries
 * nothing: to OpenBSD too it is a new packet. A test has no daemon. */
/* Differs from OpenBSD: linux.md, "A program instead of divert(4)" */
__global int divert_packet(struct __sk_buff *skb, struct pf_scratch *s, __u16 port)
{
	struct pf_diverter *daemon;
	__u32 zero = 0;

	if (!s)
		return PF_TCX_DROP;
	s->outcome.divert = PF_DIVERT_PACKET;
	s->outcome.divert_port = port;
	if (driven_by_test())
		return PF_TCX_NEXT;
	daemon = bpf_map_lookup_elem(&diverter, &zero);
	if (!daemon || !has_device(skb, daemon->ifindex) ||
	    !label_packet(skb, s, port, daemon->nonce)) {
		count_divert_lost();
		s->outcome.verdict = PF_VERDICT_DROP;
		return PF_TCX_DROP;
	}
	return send_signed(skb, daemon->ifindex);
}

#endif /* PF_DIVERT_PACKET_H */
