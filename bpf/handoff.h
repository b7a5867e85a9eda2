/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The devices by which packets go to skipstepd and come back. Other processes can send there, and a
 * packet socket hears all frames. So both sides check who sent a frame:
 *
 * The data plane signs each frame for skipstepd in skb->tc_index, where no socket can write. A
 * program on the device's tcx egress drops frames without the sign. A packet socket can go past tc
 * (PACKET_QDISC_BYPASS), so the device's own filter (TUNSETFILTEREBPF) looks at the sign again.
 *
 * Each frame, in both directions, has the nonce of its device, which skipstepd draws when it makes
 * the device. The data plane takes a frame if the device has the index and the nonce that skipstepd
 * has written to the map of the device.
 */
#ifndef PF_HANDOFF_H
#define PF_HANDOFF_H

#include "config.h"
#include "drop.h"
#include "kern.h"
#include "reason.h"
#include "stamp.h"

#define ENODEV		19

/* The return values of a socket filter. */
#define SOCKET_DROP	0
#define SOCKET_WHOLE	(~0u)

/* True if a device of skipstepd is there: it goes with skipstepd. */
__inline bool has_device(struct __sk_buff *skb, __u32 ifindex)
{
	__u32 mtu = 0;

	return ifindex && bpf_check_mtu(skb, ifindex, &mtu, 0, 0) != -ENODEV;
}

/* The sign of frames for a device of skipstepd: the stamp that packets of the device would have. */
__inline __u16 handoff_sign(const struct pf_status *status, __u32 ifindex)
{
	return stamp_at(status, ifindex, 0);
}

/* Signs a frame and sends it out of a device of skipstepd. Returns what the program returns. */
__inline int send_signed(struct __sk_buff *skb, __u32 ifindex)
{
	const struct pf_status *status = pf_status();

	if (!status)
		return PF_TCX_DROP;
	skb->tc_index = handoff_sign(status, ifindex);
	return bpf_redirect(ifindex, 0);
}

/* Counts and reports a frame of another program on a device of skipstepd. */
__inline void refuse_foreign(struct __sk_buff *skb, enum pf_direction direction)
{
	count_reason(PF_REASON_UNATTACHED);
	report_frame(skb, skb->ifindex, FROM_LINK_HEADER, direction, PF_REASON_UNATTACHED);
}

/* True if the data plane has sent the frame that leaves by a device of skipstepd. Counts frames of
 * others. */
__inline bool is_signed(struct __sk_buff *skb)
{
	const struct pf_status *status = pf_status();

	if (status && skb->tc_index == handoff_sign(status, skb->ifindex))
		return true;
	refuse_foreign(skb, PF_OUT);
	return false;
}

/* True if skipstepd has sent the frame that comes in by a device: the index and the nonce are those
 * that skipstepd has written. Counts frames of others. */
__inline bool is_from_daemon(struct __sk_buff *skb, __u64 nonce, __u32 device, __u64 drawn)
{
	if (skb->ifindex == device && nonce == drawn)
		return true;
	refuse_foreign(skb, PF_IN);
	return false;
}

#endif /* PF_HANDOFF_H */
