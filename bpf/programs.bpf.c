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

/* An array for the one program that several go on as: the verifier goes through it once, and the
 * caches hold it once. Userland fills the array as it loads the programs. */
struct pf_program_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} filter_program SEC(".maps"), express_program SEC(".maps");

/* what pf_ingress and pf_egress go on as */
SEC("tc")
int pf_filter(struct __sk_buff *skb)
{
	__u8 direction = skb->cb[CB_DIRECTION];
	int result = take_shortcut(skb, direction);

	if (result == STEP_ASIDE)
		result = pf_test(skb, direction);
	else if (result == PF_TCX_NEXT && direction == PF_IN)
		result = lead_back_shortly(skb);
	return result == PF_TCX_NEXT && direction == PF_OUT ? leave(skb) : result;
}

/* Goes on as pf_filter. Returns only if somebody has taken that out of its array. */
__inline int run_filter(struct __sk_buff *skb, enum pf_direction direction)
{
	skb->cb[CB_DIRECTION] = direction;
	bpf_tail_call_static(skb, &filter_program, 0);
	count_reason(PF_REASON_MEMORY);
	return PF_TCX_DROP;
}

/* Differs from OpenBSD: linux.md, "Hooks" */
SEC("tc")
int pf_ingress(struct __sk_buff *skb)
{
	int result;

	drop_foreign_mark(skb);
	if (is_generated(skb))
		return let_in_generated(skb);
	if (skb->pkt_type == PACKET_OTHERHOST) {
		result = turn_away(skb);
		if (result != STEP_ASIDE)
			return result;
	}
	return run_filter(skb, PF_IN);
}

/* Differs from OpenBSD: linux.md, "Hooks" */
SEC("tc")
int pf_egress(struct __sk_buff *skb)
{
	int result;

	drop_foreign_mark(skb);
	if (!is_generated(skb)) {
		forget_stamp(skb);
		return run_filter(skb, PF_OUT);
	}
	/* most of all what pf_ingress has sent on past the kernel */
	result = let_out_generated(skb);
	return result == PF_TCX_NEXT ? leave(skb) : result;
}

/* on ports of our bridges, behind pf_ingress */
SEC("tc")
int pf_bridge(struct __sk_buff *skb)
{
	return cross_bridge(skb);
}

/* what the next two go on as */
SEC("xdp.frags")
int pf_express(struct xdp_md *xdp)
{
	return take_express(xdp, bpf_xdp_get_buff_len(xdp));
}

/* before the driver makes an skb of the frame */
SEC("xdp.frags")
int pf_express_card(struct xdp_md *xdp)
{
	struct xdp_buff *kern = bpf_cast_to_kern_ctx(xdp);

	if (!may_hide_tags(kern->rxq->dev))
		bpf_tail_call_static(xdp, &express_program, 0);
	return XDP_PASS;
}

/* the same on a veth device */
SEC("xdp.frags")
int pf_express_veth(struct xdp_md *xdp)
{
	if (!is_more_than_bytes(bpf_cast_to_kern_ctx(xdp)))
		bpf_tail_call_static(xdp, &express_program, 0);
	return XDP_PASS;
}

/* behind pf_ingress and before pf_egress, for what they do not see */
SEC("netfilter")
int pf_guard(struct bpf_nf_ctx *ctx)
{
	return guard(ctx);
}

/* on skipstepd's device, instead of the two */
SEC("tc")
int pf_return(struct __sk_buff *skb)
{
	return come_back(skb);
}

/* on skipstepd's device for diverted packets */
/* Differs from OpenBSD: linux.md, "Next hop of a diverted packet" */
/* Differs from OpenBSD: linux.md, "Diverted packets between own addresses" */
SEC("tc")
int pf_give_back(struct __sk_buff *skb)
{
	return come_back_from_program(skb);
}

/* on skipstepd's device for delayed packets */
SEC("tc")
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
