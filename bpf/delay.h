/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `set delay`: a packet waits before it leaves, as in pf_delay_pkt of OpenBSD. A BPF program cannot
 * hold packets, so skipstepd does: the packet is sent out of a device of its own, with struct
 * pf_delayed in front of it, comes in by that device when its time has come, and leaves as it would
 * have.
 *
 * Everything else is done by then. Rules, queue and priority are those of the moment when it
 * passed, and nobody filters it again. Whatever the kernel has joined (GSO) it takes apart on the
 * way to the daemon.
 */
#ifndef PF_DELAY_H
#define PF_DELAY_H

#include "drop.h"
#include "fragment.h"
#include "frame.h"
#include "handoff.h"
#include "kern.h"
#include "mark.h"
#include "reason.h"
#include "time.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_delayer);
} delayer SEC(".maps");

#define NSEC_PER_MSEC	1000000ull

/* Puts struct pf_delayed in front of the packet. False if it cannot be done: the packet is too
 * long, or has VLAN tags inside of each other. */
__inline bool label_delayed(struct __sk_buff *skb, __u32 delay, __u64 nonce)
{
	struct pf_delayed label = {
		.nonce = nonce,
		.due = uptime_ns() + delay * NSEC_PER_MSEC,
		.ifindex = skb->ifindex,
		.mark = skb->mark & ~PF_MARK_MASK,
		.priority = skb->priority,
		.order = PF_DELAYED_HOLD,
		.link_header = has_ethernet_header(skb) ? sizeof(struct ethernet) : 0,
	};

	return take_tag(skb, &label.vlan_protocol, &label.vlan_tag) &&
	       !bpf_skb_change_head(skb, sizeof(label), 0) &&
	       !bpf_skb_store_bytes(skb, 0, &label, sizeof(label), 0);
}

/* The packet would leave now: it does, or waits for its time. Returns what the program returns. On
 * lo nothing waits, as in OpenBSD, nor in a test, which has no daemon. */
/* Differs from OpenBSD: linux.md, "Delayed packets" */
__global int leave(struct __sk_buff *skb)
{
	struct pf_delayer *daemon;
	__u32 zero = 0, delay = carried_delay(skb);

	if (!delay || driven_by_test())
		return PF_TCX_NEXT;
	if (is_loopback(skb)) {
		carry_delay(skb, 0);
		return PF_TCX_NEXT;
	}
	daemon = bpf_map_lookup_elem(&delayer, &zero);
	if (!daemon || !has_device(skb, daemon->ifindex) ||
	    !label_delayed(skb, delay, daemon->nonce))
		return refuse_leaving(skb, PF_REASON_MEMORY);
	return send_signed(skb, daemon->ifindex);
}

/* What comes in by the daemon's device leaves as it was about to. */
__inline int come_back_in_time(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct pf_delayer *daemon = bpf_map_lookup_elem(&delayer, &zero);
	struct pf_delayed frame;

	if (!daemon || bpf_skb_load_bytes(skb, sizeof(struct ethernet), &frame, sizeof(frame)) ||
	    !is_from_daemon(skb, frame.nonce, daemon->ifindex, daemon->nonce))
		return PF_TCX_DROP;
	if (frame.order == PF_DELAYED_REFUSED) {
		count_reason(PF_REASON_MEMORY);
		report_frame(skb, frame.ifindex, sizeof(struct ethernet) + sizeof(frame), PF_OUT,
			     PF_REASON_MEMORY);
	}
	if (frame.order != PF_DELAYED_SEND ||
	    bpf_skb_adjust_room(skb, -(__s32)sizeof(frame), BPF_ADJ_ROOM_MAC, 0))
		return PF_TCX_DROP;
	if (frame.vlan_protocol && bpf_skb_vlan_push(skb, frame.vlan_protocol, frame.vlan_tag))
		return PF_TCX_DROP;
	skb->mark = frame.mark & ~PF_MARK_MASK;
	write_mark(skb, PF_MARK_GENERATED, PF_GENERATED_GIVEN_BACK, PF_DEFAULT_PRIO);
	skb->priority = frame.priority;
	return bpf_redirect(frame.ifindex, 0);
}

#endif /* PF_DELAY_H */
