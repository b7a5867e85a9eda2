/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The way of a packet through the filter (pf-semantics section 3): header checks, fragments, state,
 * rules. Everything that decides about it is called from here, in this order.
 */
#ifndef PF_FILTER_H
#define PF_FILTER_H

#include "act.h"
#include "config.h"
#include "create.h"
#include "hidden.h"
#include "interface.h"
#include "kern.h"
#include "mark.h"
#include "normalize.h"
#include "packet.h"
#include "reason.h"
#include "scratch.h"
#include "stamp.h"
#include "syncookie.h"
#include "track.h"
#include "way_back.h"

/* Forgets what rules said. Arrays that have a count are left as they are. */
__inline void forget_rules(struct pf_scratch *s)
{
	s->outcome.state_id = ~0ull;
	s->outcome.decision = PF_DECISION_NONE;
	__builtin_memset(&s->test, 0, offsetof(struct pf_test_ctx, match));
	__builtin_memset(&s->act, 0, sizeof(s->act));
	forget_rule(s);
	__builtin_memset(&s->reply, 0, sizeof(s->reply));
	s->match_count = 0;
	s->cross_to = s->crosses_back = s->convertible = 0;
	s->translated = s->rewrite_id = s->icmp_answer = s->route = 0;
	s->nat_slot = s->rdr_slot = s->last_slot = PF_IDLE_SLOT;
	__builtin_memset(s->source_nodes, 0, sizeof(s->source_nodes));
	s->connected = 0;
	s->log_force = s->log_reason = 0;
	s->log_anchor_rule = -1;
	s->log_anchor = 0;
	s->has_state = s->state_hit = s->raced = s->too_fast = s->against_state = 0;
	s->has_sequence = s->consumed = 0;
	s->sack_difference = s->quoted_difference = 0;
	__builtin_memset(&s->stamp, 0, sizeof(s->stamp));
}

/* Forgets the packet before. */
__inline void begin(struct pf_scratch *s, __u32 generation)
{
	__builtin_memset(&s->outcome, 0, sizeof(s->outcome));
	s->outcome.rule = s->outcome.anchor_rule = -1;
	forget_rules(s);
	__builtin_memset(&s->copy, 0, sizeof(s->copy));
	s->generation = generation;
	s->held = s->reassembled = 0;
	s->empty_ack = s->owner_sought = s->systems_known = s->uncounted = 0;
	s->cookie_mss = 0;
}

/* max-pkt-size drops what is longer, be it passed by a rule or by a state. */
__inline bool too_long(struct pf_scratch *s)
{
	return exceeds_pkt_size(s, s->act.max_pkt_size) && !bad_packet(s, PF_REASON_NORMALIZE);
}

/* Lets the rules decide. The nodes of sources that pools chose for are held by the state, if there
 * is one; else they stay until they are swept. So is the mapping of the packet's endpoint, which
 * else goes. */
__inline bool ask_rules(struct __sk_buff *skb, struct pf_scratch *s)
{
	bool pass = test_rules(skb, s);

	if (!s->has_state)
		forget_sources(s, false);
	if (s->mapped)
		let_go_of_mapping(s);
	return pass;
}

/* Whether a `scrub` rule wants the fragment left alone: the first that matches decides. */
__inline bool leaves_alone(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_config *config = pf_config(s->generation);
	bool leaves;

	if (!config || !(config->reassemble & PF_REASSEMBLE_BY_RULE))
		return false;
	s->test.asks_fragment = 1;
	leaves = test_rules(skb, s);
	s->test.asks_fragment = 0;
	s->test.act.tag = 0;		/* a `tagged` may have asked */
	return leaves;
}

/* Fragments that are not put together are matched by rules alone. */
__inline bool filter_fragment(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (!normalize_fragment(s))
		return bad_packet(s, PF_REASON_FRAGMENT);
	keep_original(&s->pd);
	if (s->held && !leaves_alone(skb, s))
		return false;
	s->held = 0;
	if (ask_rules(skb, s))
		return true;
	reason_set(s, PF_REASON_FRAGMENT);
	return false;
}

/*
 * The rules judge the SYN with which the client began, as if it came only now: logged and counted
 * like any other. False if it makes no state because they, or a limit, refuse it.
 */
__inline bool replay_syn(struct __sk_buff *skb, struct pf_scratch *s, __u32 cookie)
{
	bool pass;

	describe_syn(s, cookie);
	count_state(PF_COUNT_SEARCHES);
	pass = ask_rules(skb, s) && !too_long(s);
	account(skb, s, pass);
	describe_packet(s);
	return pass || s->consumed;
}

/* Decides about a packet without a state that may bring a cookie back: if its SYN makes a state,
 * the client has shaken hands already. PF_KNOWN_NO: the rules are asked about the packet itself. */
__inline enum pf_known redeem_cookie(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	int cookie = valid_cookie(s), track;
	bool replayed, made;

	if (cookie < 0 || !status)
		return PF_KNOWN_NO;
	replayed = replay_syn(skb, s, cookie);
	made = s->has_state;
	if (s->consumed)
		s->copy = s->reply;
	forget_rules(s);
	s->outcome.decision = PF_DECISION_DEFAULT;
	s->outcome.reason = PF_REASON_MATCH;
	if (!replayed) {
		/* a state that was made all the same has won no race against the packet */
		s->first_id = status->next_state_id;
		return PF_KNOWN_NO;
	}

	s->uncounted = 1;
	/* OpenBSD looks the state up; here it may count as expired already (adaptive.end) */
	count_state(PF_COUNT_SEARCHES);
	if (!made || too_fast_for_state(s)) {
		answer_to_syn(s);
		return PF_KNOWN_DROP;
	}
	track = ask_with_cookie(s);
	if (track == PF_TRACK_GONE)
		return PF_KNOWN_DROP;
	s->consumed = track == PF_TRACK_PROXY;
	reason_set(s, PF_REASON_SYNPROXY);
	return PF_KNOWN_DROP;
}

/* State first, then rules. Whether the packet passes. */
__inline bool filter_packet(struct __sk_buff *skb, struct pf_scratch *s)
{
	int known = test_state(skb, s);

	if (known == PF_KNOWN_NO && may_have_cookie(s))
		known = redeem_cookie(skb, s);
	if (known == PF_KNOWN_NO) {
		if (ask_rules(skb, s))
			return true;
		if (!s->raced)
			return false;
		/* two first packets at once: this is the second one of the other's state */
		restore_original(&s->pd);
		known = test_state(skb, s);
		if (known == PF_KNOWN_NO)
			reason_count(s, PF_REASON_STATE_INSERT);
	}
	if (known != PF_KNOWN_PASS)
		return false;
	/* a packet that crosses to the other family loses them */
	if (s->pd.bad_options && !s->cross_to && !(s->act.flags & PF_STATE_ALLOW_OPTS))
		return bad_packet(s, PF_REASON_IP_OPTION);
	return true;
}

/* True if the header of an IPv4 packet that came in is damaged. OpenBSD drops such before pf sees
 * them (ipv4_check, of routers and of bridges), we before a translation would make the checksum
 * right. A datagram that came in fragments has the checksum of the first. */
/* Differs from OpenBSD: linux.md, "Checksums" */
__global int has_bad_checksum(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (!s || s->pd.family != AF_INET || s->pd.direction != PF_IN || s->reassembled)
		return 0;
	return fold(sum_packet(skb, s, s->pd.ip, s->pd.ip_header, 0)) != 0xffff;
}

/* Whether the packet passes. */
__inline bool filter(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_pdesc *pd = &s->pd;
	int reason = setup_pdesc(skb, s);

	if (!reason && has_bad_checksum(skb, s)) {
		reason = PF_REASON_PROTO_CKSUM;
		pd->length = 0;		/* as of any packet with a bad header */
	}
	keep_original(pd);
	count_segments(skb, s);
	if (s->uncounted)	/* set skip: only its length is still looked at */
		return true;
	s->outcome.decision = PF_DECISION_DEFAULT;
	if (reason)
		return bad_packet(s, reason);

	switch (pd->virtual_protocol) {
	case PF_VPROTO_FRAGMENT:
		return filter_fragment(skb, s);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		/* each family has its own */
		if ((pd->virtual_protocol == IPPROTO_ICMP) != (pd->family == AF_INET)) {
			reason_set(s, PF_REASON_NORMALIZE);
			return false;
		}
		break;
	case IPPROTO_TCP:
		if (pd->direction == PF_IN && (pd->tcp.flags & (TH_SYN | TH_ACK)) == TH_SYN &&
		    send_cookie(skb, s))
			return false;
		s->empty_ack = pd->tcp.flags & TH_ACK && !pd->payload;
		if (!normalize_tcp(s)) {
			reason_count(s, PF_REASON_NORMALIZE);
			return false;
		}
	}
	return filter_packet(skb, s);
}

/* Gives a fragment to the daemon; if there is none, drops it. */
__inline int hold(struct __sk_buff *skb, struct pf_scratch *s)
{
	int result = hand_over(skb, s, PF_HANDOFF_FRAGMENT);

	if (result < 0)
		return act(skb, s, bad_packet(s, PF_REASON_FRAGMENT));
	s->outcome.decision = PF_DECISION_NONE;
	s->outcome.verdict = PF_VERDICT_HELD;
	return result;
}

/* A fragment that the daemon does not want: dropped as if it had just come where it came. */
__inline int refuse_fragment(struct __sk_buff *skb, struct pf_scratch *s, struct pf_handoff *frame)
{
	struct pf_status *status = pf_status();

	if (!status)
		return PF_TCX_DROP;
	begin(s, status->generation);
	find_interface(&s->interface, frame->ifindex);
	s->pd.direction = frame->direction;
	if (find_ip(skb, &s->pd) != PF_PAYLOAD_IP || setup_pdesc(skb, s))
		return PF_TCX_DROP;
	keep_original(&s->pd);
	count_segments(skb, s);
	s->outcome.decision = PF_DECISION_DEFAULT;
	if (frame->reason < PF_REASON_MAX)
		reason_set(s, frame->reason);
	s->log_force = 1;
	return act(skb, s, false);
}

/* What programs give back comes in by the daemon's other device, and goes on where it was. */
__inline int come_back_from_program(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct pf_diverter *daemon = bpf_map_lookup_elem(&diverter, &zero);
	struct pf_diverted frame;

	if (!daemon || bpf_skb_load_bytes(skb, sizeof(struct ethernet), &frame, sizeof(frame)) ||
	    !is_from_daemon(skb, frame.nonce, daemon->ifindex, daemon->nonce) ||
	    bpf_skb_adjust_room(skb, -(__s32)sizeof(frame), BPF_ADJ_ROOM_MAC, 0))
		return PF_TCX_DROP;
	if (frame.vlan_protocol && bpf_skb_vlan_push(skb, frame.vlan_protocol, frame.vlan_tag))
		return PF_TCX_DROP;
	/* on lo what goes out comes in as it is, and it was for nobody on this device */
	bpf_skb_change_type(skb, PACKET_HOST);
	skb->mark = frame.mark & ~PF_MARK_MASK;
	write_mark(skb, PF_MARK_GENERATED, PF_GENERATED_GIVEN_BACK, PF_DEFAULT_PRIO);
	return bpf_redirect(frame.ifindex, frame.direction == PF_IN ? BPF_F_INGRESS : 0);
}

/* What comes in by the daemon's device goes on where it belongs. */
__inline int come_back(struct __sk_buff *skb)
{
	__u32 zero = 0, length = skb->len - sizeof(struct pf_handoff);
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct pf_reassembler *daemon = bpf_map_lookup_elem(&reassembler, &zero);
	struct pf_handoff frame;

	if (!s || !daemon || bpf_skb_load_bytes(skb, length, &frame, sizeof(frame)) ||
	    !is_from_daemon(skb, frame.nonce, daemon->ifindex, daemon->nonce))
		return PF_TCX_DROP;
	switch (frame.order) {
	case PF_HANDOFF_WHOLE:
		sign_mark(skb, frame.mark | PF_MARK_REASSEMBLED);
		skb->priority = frame.priority;
		bpf_set_hash(skb, HASH_MAGIC | frame.longest);
		skb->cb[0] = frame.received;
		return bpf_redirect(frame.ifindex, frame.direction == PF_IN ? BPF_F_INGRESS : 0);
	case PF_HANDOFF_SEND:
		if (bpf_skb_change_tail(skb, length, 0))
			return PF_TCX_DROP;
		sign_mark(skb, (frame.mark & ~PF_MARK_MASK) | PF_MARK_GENERATED);
		skb->priority = frame.priority;
		if (!carry_delay(skb, frame.delay))
			return PF_TCX_DROP;
		if (frame.direction == PF_OUT)
			return bpf_redirect(frame.ifindex, 0);
		write_mark(skb, PF_MARK_GENERATED, PF_GENERATED_GIVEN_BACK, PF_DEFAULT_PRIO);
		return bpf_redirect(frame.ifindex, BPF_F_INGRESS);
	case PF_HANDOFF_REFUSED:
		return refuse_fragment(skb, s, &frame);
	}
	return PF_TCX_DROP;
}

/* Decides about a frame that came in for another station's link address, before pf does: Linux
 * hears such frames where an interface is promiscuous. They belong to a device on top of the
 * interface, which has programs of its own, or to nobody (ether_input of OpenBSD drops them).
 * Returns STEP_ASIDE if pf judges the frame, because a bridge, or something like one, may take
 * it. */
/* Differs from OpenBSD: linux.md, "Frames for other stations" */
__global int turn_away(struct __sk_buff *skb)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	const struct net_device *device = kern->dev;
	struct pf_status *status = pf_status();
	struct pf_interface *interface = interface_at(skb->ifindex);
	__u32 zero = 0;
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	bool has_tag = skb->vlan_present || is_vlan_tag(skb->protocol);

	if (!s || !status || !status->running ||
	    (interface && (is_port(interface) || skipped(interface, status->generation))))
		return STEP_ASIDE;
	if (device->rx_handler && !is_macvlan_port(device))
		return STEP_ASIDE;
	if (driven_by_test()) {
		begin(s, status->generation);
		s->outcome.verdict = has_tag ? PF_VERDICT_PASS : PF_VERDICT_DROP;
	}
	return has_tag || device->rx_handler ? PF_TCX_NEXT : PF_TCX_DROP;
}

/* True if the packet passed as it is, and no socket of `divert-to` takes it. */
__inline bool goes_on(const struct pf_scratch *s)
{
	return s->outcome.verdict == PF_VERDICT_PASS && !s->outcome.divert;
}

/* Judges a packet that is not of ours. Returns the program's result. */
__inline int pf_test(struct __sk_buff *skb, __u8 direction)
{
	__u32 zero = 0;
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct pf_status *status = pf_status();
	bool pass;
	int result;

	if (!s || !status)
		return PF_TCX_DROP;
	begin(s, status->generation);
	s->first_id = status->next_state_id;
	if (!status->running)
		return PF_TCX_NEXT;
	find_interface(&s->interface, skb->ifindex);
	/* Differs from OpenBSD: linux.md, "Routing domains" */
	s->pd.rdomain = s->interface.rdomain;
	s->came_in_by = came_in_by(skb);
	s->routed_here = direction == PF_OUT && s->came_in_by && skb->cb[1] == ROUTED_MAGIC;
	s->uncounted = skipped(&s->interface, s->generation);
	if (s->uncounted && !s->routed_here)
		return PF_TCX_NEXT;
	s->pd.direction = direction;
	switch (find_ip(skb, &s->pd)) {
	case PF_PAYLOAD_OTHER:
		return PF_TCX_NEXT;
	case PF_PAYLOAD_LABELLED:
		if (may_keep_label(s))
			return PF_TCX_NEXT;
		return drop_hidden(skb, s);
	case PF_PAYLOAD_HIDDEN:
		return drop_hidden(skb, s);
	case PF_PAYLOAD_IP:
		break;
	}

	if (direction == PF_IN)
		s->received = s->interface;
	else
		find_interface(&s->received, s->came_in_by);
	s->now = uptime();
	read_mark(skb, s);
	pass = filter(skb, s) && !too_long(s) && !refuse_unwrapped(skb, s);
	result = s->held ? hold(skb, s) : act(skb, s, pass);
	if (direction == PF_IN && result == PF_TCX_NEXT && goes_on(s))
		result = lead_back(skb, s);
	if (direction == PF_IN && result == PF_TCX_NEXT)
		stamp(skb, s->pd.ip);
	return result;
}

#endif /* PF_FILTER_H */
