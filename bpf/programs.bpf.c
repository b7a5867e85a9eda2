/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The programs: those of the tc hooks, one for each direction, those of XDP, and those that pfctl
 * calls.
 */
#include "bridge.h"
#include "delay.h"
#include "express.h"
#include "filter.h"
#include "guard.h"
#include "handoff.h"
#include "restore.h"
#include "shortcut.h"
#include "sweep.h"

SEC("tcx/ingress")
int pf_ingress(struct __sk_buff *skb)
{
	int result;

	drop_foreign_mark(skb);
	if (skb->pkt_type == PACKET_OTHERHOST && !is_generated(skb)) {
		result = turn_away(skb);
		if (result != STEP_ASIDE)
			return result;
	}
	result = take_shortcut(skb, PF_IN);
	if (result == PF_TCX_NEXT)
		return lead_back_shortly(skb);
	return result == STEP_ASIDE ? pf_test(skb, PF_IN) : result;
}

SEC("tcx/egress")
int pf_egress(struct __sk_buff *skb)
{
	int result;

	drop_foreign_mark(skb);
	forget_stamp(skb);
	/* ours, most of all what pf_ingress has sent on past the kernel */
	if (is_generated(skb) && !carried_delay(skb))
		return pass_generated(skb, PF_OUT);
	result = take_shortcut(skb, PF_OUT);
	if (result != STEP_ASIDE)
		return result;
	result = pf_test(skb, PF_OUT);
	return result == PF_TCX_NEXT ? leave(skb) : result;
}

/* on ports of our bridges, behind pf_ingress */
SEC("tcx/ingress")
int pf_bridge(struct __sk_buff *skb)
{
	return cross_bridge(skb);
}

/* before the driver makes an skb of the frame */
SEC("xdp.frags")
int pf_express(struct xdp_md *xdp)
{
	struct xdp_buff *kern = bpf_cast_to_kern_ctx(xdp);

	if (may_hide_tags(kern->rxq->dev))
		return XDP_PASS;
	return take_express(xdp, bpf_xdp_get_buff_len(xdp));
}

/* the same on a veth device */
SEC("xdp.frags")
int pf_express_veth(struct xdp_md *xdp)
{
	if (is_more_than_bytes(bpf_cast_to_kern_ctx(xdp)))
		return XDP_PASS;
	return take_express(xdp, bpf_xdp_get_buff_len(xdp));
}

/* behind pf_ingress and before pf_egress, for what they do not see */
SEC("netfilter")
int pf_guard(struct bpf_nf_ctx *ctx)
{
	return guard(ctx);
}

/* on skipstepd's device, instead of the two */
SEC("tcx/ingress")
int pf_return(struct __sk_buff *skb)
{
	return come_back(skb);
}

/* on skipstepd's device for diverted packets */
SEC("tcx/ingress")
int pf_give_back(struct __sk_buff *skb)
{
	return come_back_from_program(skb);
}

/* on skipstepd's device for delayed packets */
SEC("tcx/ingress")
int pf_let_go(struct __sk_buff *skb)
{
	return come_back_in_time(skb);
}

/* on each of skipstepd's devices */
SEC("tcx/egress")
int pf_hand_over(struct __sk_buff *skb)
{
	return is_signed(skb) ? PF_TCX_NEXT : PF_TCX_DROP;
}

/* in the driver of these devices, for frames that go past tc */
SEC("socket")
int pf_hand_out(struct __sk_buff *skb)
{
	return is_signed(skb) ? SOCKET_WHOLE : SOCKET_DROP;
}

/* pfctl runs it before it looks into tables */
SEC("tc")
int pf_settle(__unused struct __sk_buff *skb)
{
	return let_sources_leave();
}

char pf_license[] SEC("license") = "Dual BSD/GPL";
