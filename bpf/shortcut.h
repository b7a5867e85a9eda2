/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The short way of ordinary packets on the tc hooks. What is not ordinary steps aside: nothing has
 * happened then, and the long way begins.
 */
#ifndef PF_SHORTCUT_H
#define PF_SHORTCUT_H

#include "mark.h"
#include "onward.h"
#include "ordinary.h"
#include "queue.h"
#include "stamp.h"

/* Whether the packet carries nothing from hook to hook, or from rules that had it before. */
__inline bool carries_nothing(const struct __sk_buff *skb, __u8 direction)
{
	return !(skb->mark & PF_MARK_MASK) && !carried_queue(skb) && !carried_delay(skb) &&
	       !(direction == PF_OUT && skb->cb[1] == ROUTED_MAGIC);
}

/* What a test learns of the packet. */
__inline void tell_test(struct pf_scratch *s, const struct pf_state *state)
{
	s->outcome.verdict = PF_VERDICT_PASS;
	s->outcome.decision = PF_DECISION_DEFAULT;
	s->outcome.rtable = !s->against_state;
	s->rule.slot = state->rule_slot;
	s->rule.anchor_slot = state->anchor_slot;
	s->rule.number = s->rule.anchor_number = -1;
	recall_rule(s);
	s->outcome.rule = s->rule.number;
	s->outcome.anchor_rule = s->rule.anchor_number;
	s->outcome.anchor = s->rule.anchor;
}

/* The same of one that the rules have decided about. */
__inline void tell_test_plainly(struct pf_scratch *s, bool pass)
{
	s->outcome.verdict = pass ? PF_VERDICT_PASS : PF_VERDICT_DROP;
	s->outcome.decision = s->rule.number < 0 ? PF_DECISION_DEFAULT : PF_DECISION_RULE;
	s->outcome.rtable = pass;
	s->outcome.rule = s->rule.number;
	s->outcome.anchor_rule = s->rule.anchor_number;
	s->outcome.anchor = s->rule.anchor;
}

/* Sends the packet as s->hop says. Returns what the program returns. */
__inline int send_on(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (s->translated)
		rewrite_packet(skb, s);
	if (!write_hop((void *)(long)skb->data, (void *)(long)skb->data_end, &s->hop,
		       s->pd.family))
		return PF_TCX_DROP;
	/* a card may have summed up the whole packet: what changes of IPv4 its header's own sum
	 * makes up for */
	if (s->pd.family == AF_INET)
		skb->priority = priority_of(s->pd.tos);
	else
		bpf_csum_update(skb, ~(__u32)bpf_htons(1));
	write_mark(skb, PF_MARK_GENERATED, PF_GENERATED_GIVEN_BACK, PF_DEFAULT_PRIO);
	count_forwarded(PF_FORWARDED_TC);
	return bpf_redirect(s->hop.leaves_by, 0);
}

/* Whether the packet is of a state none of whose packets was ever forwarded. */
__inline bool is_likely_for_us(const struct pf_scratch *s)
{
	return s->has_state && !s->made && !s->peer.serial;
}

/* Sends the packet, which has passed here, on past the kernel, if it has a way. Returns what the
 * program returns. */
__inline int take_path(struct __sk_buff *skb, struct pf_scratch *s, __u32 fast_forward)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	const struct net_device *device = kern->dev;
	const struct net *net = device->nd_net.net;
	enum pf_left_to who;
	int verdict;

	if (s->pd.ip != sizeof(struct ethernet) || s->pd.rdomain ||
	    skb->pkt_type != PACKET_HOST || skb->vlan_present || is_likely_for_us(s))
		return PF_TCX_NEXT;
	who = left_to(device, net, s->pd.family, fast_forward);
	if (who != PF_LEFT_TO_NOBODY) {
		count_left_to(who);
		return PF_TCX_NEXT;
	}
	verdict = find_way_past(skb, s, device, net, skb->ifindex, PF_FORWARDED_TC);
	if (verdict == PF_PLAINLY_UNKNOWN)
		return PF_TCX_NEXT;
	if (verdict == PF_PLAINLY_DROP) {
		if (must_be_reported())
			return PF_TCX_NEXT;
		count_if_unreported();
	}
	count_judged(s);
	return verdict == PF_PLAINLY_DROP ? PF_TCX_DROP : send_on(skb, s);
}

/* Takes the packet the short way, if it can. Returns what the program returns, or STEP_ASIDE. */
/* Differs from OpenBSD: linux.md, "The fast path" */
__global int take_shortcut(struct __sk_buff *skb, __u8 direction)
{
	__u32 zero = 0, ifindex = skb->ifindex;
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct pf_status *status = pf_status();
	struct pf_config *config;
	struct pf_interface *interface;
	struct pf_state *state;
	struct pf_bytes frame = {
		.data = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
	};
	int verdict;

	if (!s || !status)
		return STEP_ASIDE;
	/* those of the packet before */
	s->plain[0].known = s->plain[1].known = 0;
	if (!status->running || status->crossing || !carries_nothing(skb, direction))
		return STEP_ASIDE;
	s->generation = status->generation;
	s->pd.direction = direction;
	config = pf_config(s->generation);
	if (!config || config->fast_forward == PF_FAST_FORWARD_NO)
		return STEP_ASIDE;
	if (!read_ordinary(frame, &s->pd, skb->len, skb->protocol, has_ethernet_header(skb)))
		return STEP_ASIDE;
	interface = interface_at(ifindex);
	if (!interface || skipped(interface, s->generation))
		return STEP_ASIDE;
	s->interface.id = interface->id;
	s->pd.rdomain = interface->rdomain;
	seek_state(status, s);
	s->now = uptime_about(status);
	if (direction == PF_OUT)
		note_device(skb, s);
	keep_original(&s->pd);
	count_segments(skb, s);
	s->crosses_back = 0;
	verdict = judge_shortly(s, status, interface, false);
	if (verdict == PF_PLAINLY_KEEP)
		verdict = keep_plainly(s, false) ? PF_PLAINLY_UNKNOWN : PF_PLAINLY_PASS;
	if (verdict == PF_PLAINLY_UNKNOWN)
		return STEP_ASIDE;
	if (verdict == PF_PLAINLY_DROP) {
		if (must_be_reported())
			return STEP_ASIDE;
		count_if_unreported();
	}
	if (s->has_state && !s->made) {
		s->came_in_by = direction == PF_OUT ? came_in_by(skb) : 0;
		if (s->came_in_by && !is_port(interface))
			note_path(skb, s);
	}
	if (driven_by_test())
		__builtin_memset(&s->outcome, 0, sizeof(s->outcome));
	count_judged(s);
	if (s->translated)
		rewrite_packet(skb, s);
	if (driven_by_test()) {
		state = s->has_state ? bpf_map_lookup_elem(&states, &s->ref.index) : NULL;
		s->outcome.state_id = state ? state->id : ~0ull;
		if (state && !s->made)
			tell_test(s, state);
		else
			tell_test_plainly(s, verdict == PF_PLAINLY_PASS);
	} else if (direction == PF_IN && verdict == PF_PLAINLY_PASS) {
		verdict = take_path(skb, s, config->fast_forward);
		if (verdict == PF_TCX_NEXT)
			stamp(skb, s->pd.ip);
		return verdict;
	}
	return verdict == PF_PLAINLY_PASS ? PF_TCX_NEXT : PF_TCX_DROP;
}

#endif /* PF_SHORTCUT_H */
