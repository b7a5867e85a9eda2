/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `set queue`: the class of the interface's HTB qdisc that a packet waits in when it leaves. A
 * queue that the interface does not have is the qdisc's default.
 *
 * The queue is chosen on either side of the firewall, as in pf. The priority, which names the
 * class, is set anew by the kernel when it forwards an IPv4 packet; tc_index brings the choice past
 * that. A packet without a choice has its stamp there (stamp.h).
 */
#ifndef PF_QUEUE_H
#define PF_QUEUE_H

#include "kern.h"

/* skb->tc_index has the stamp for the guard, and no queue. */
#define STAMP_BIT	0x8000
/* The upper half of the packet's mark is ours (mark.h). Beside a stamp, and beside a queue. */
#define MARKED_BIT	0x4000

_Static_assert(PF_QUEUE_MAX < MARKED_BIT, "no number of a queue is taken for a stamp");

/* The queue that was chosen on the way in, 0 for none. */
__inline __u16 carried_queue(const struct __sk_buff *skb)
{
	if (skb->priority >> 16 == PF_QUEUE_MAJOR)
		return skb->priority;
	return skb->tc_index & STAMP_BIT ? 0 : skb->tc_index & PF_QUEUE_MAX;
}

/* Differs from OpenBSD: linux.md, "Queues" */
__inline void set_queue(struct __sk_buff *skb, __u16 queue)
{
	if (!queue)
		return;
	skb->tc_index = queue | (skb->tc_index & MARKED_BIT);
	skb->priority = PF_QUEUE_MAJOR << 16 | queue;
}

#endif /* PF_QUEUE_H */
