/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The short way: an ordinary packet of a state that wants nothing of its packets but to judge and count
 * them. Most packets are such, so what filter.h does with them is done here at once, from the bytes of the
 * frame. What is not ordinary steps aside: nothing has happened then, and the long way begins.
 */
#ifndef PF_SHORTCUT_H
#define PF_SHORTCUT_H

#include "act.h"
#include "config.h"
#include "interface.h"
#include "kern.h"
#include "mark.h"
#include "packet.h"
#include "path.h"
#include "queue.h"
#include "reason.h"
#include "scratch.h"
#include "state.h"
#include "tcp.h"
#include "time.h"
#include "track.h"

/* what the program returns, if the packet has not to go the long way */
#define STEP_ASIDE	(-2)

/* ---- ordinary packets: one header behind the other, each as it should be --------------------------- */

struct pf_bytes {
	void *data;
	void *end;
};

__inline bool read_ordinary_tcp(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct tcp *tcp = frame.data + at;
	__u32 header_length;

	if ((void *)(tcp + 1) > frame.end || (tcp->flags & (TH_SYN | TH_FIN | TH_RST | TH_ACK)) != TH_ACK)
		return false;
	header_length = (tcp->offset >> 4) * 4;
	if (header_length < sizeof(*tcp) || pd->offset + header_length > pd->length ||
	    !tcp->destination || tcp->offset & 0x0f || (tcp->urgent && !(tcp->flags & TH_URG)))
		return false;
	pd->payload = pd->length - pd->offset - header_length;
	pd->tcp = *tcp;
	pd->source_port = tcp->source;
	pd->destination_port = tcp->destination;
	return true;
}

__inline bool read_ordinary_udp(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct udp *udp = frame.data + at;
	__u32 length;

	if ((void *)(udp + 1) > frame.end)
		return false;
	length = bpf_ntohs(udp->length);
	if (length < sizeof(*udp) || pd->offset + length > pd->length || !udp->destination)
		return false;
	pd->source_port = udp->source;
	pd->destination_port = udp->destination;
	return true;
}

__inline bool read_ordinary_ip(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct ip *ip = frame.data + at;

	if ((void *)(ip + 1) > frame.end || ip->version_ihl != 0x45 ||
	    ip->offset & ~bpf_htons(IP_DF))
		return false;
	pd->family = AF_INET;
	pd->length = bpf_ntohs(ip->length);
	pd->offset = sizeof(*ip);
	pd->protocol = ip->protocol;
	pd->ttl = ip->ttl;
	pd->tos = ip->tos;
	pd->source.half[0] = pd->source.half[1] = 0;
	pd->destination.half[0] = pd->destination.half[1] = 0;
	pd->source.word[0] = ip->source;
	pd->destination.word[0] = ip->destination;
	return true;
}

__inline bool read_ordinary_ip6(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct ip6 *ip = frame.data + at;

	if ((void *)(ip + 1) > frame.end || (bpf_ntohl(ip->flow) >> 28) != 6)
		return false;
	pd->family = AF_INET6;
	pd->length = bpf_ntohs(ip->payload_length) + sizeof(*ip);
	pd->offset = sizeof(*ip);
	pd->protocol = ip->next_header;
	pd->ttl = ip->hop_limit;
	pd->tos = 0;
	__builtin_memcpy(&pd->source, ip->source, sizeof(ip->source));
	__builtin_memcpy(&pd->destination, ip->destination, sizeof(ip->destination));
	return true;
}

/* Reads the headers of a packet whose frame has `length` bytes and an Ethernet header, or none. */
__inline bool read_ordinary(struct pf_bytes frame, struct pf_pdesc *pd, __u32 length, __be16 type,
			    bool has_link_header)
{
	struct ethernet *ethernet = frame.data;
	__u32 at = 0;

	if (has_link_header) {
		if ((void *)(ethernet + 1) > frame.end)
			return false;
		type = ethernet->type;
		at = sizeof(*ethernet);
	}
	pd->ip = at;
	if (type == bpf_htons(ETHERTYPE_IP)) {
		if (!read_ordinary_ip(frame, pd, at))
			return false;
		at += sizeof(struct ip);
	} else if (type == bpf_htons(ETHERTYPE_IPV6)) {
		if (!read_ordinary_ip6(frame, pd, at))
			return false;
		at += sizeof(struct ip6);
	} else {
		return false;
	}
	if (pd->ip + pd->length > length)
		return false;
	pd->virtual_protocol = pd->protocol;
	if (pd->protocol == IPPROTO_TCP)
		return read_ordinary_tcp(frame, pd, at);
	return pd->protocol == IPPROTO_UDP && read_ordinary_udp(frame, pd, at);
}

/* Whether the packet carries nothing from hook to hook, or from rules that had it before. */
__inline bool carries_nothing(const struct __sk_buff *skb, __u8 direction)
{
	return !(skb->mark & PF_MARK_MASK) && !carried_queue(skb) && !carried_delay(skb) &&
	       !(direction == PF_OUT && skb->cb[1] == ROUTED_MAGIC);
}

/* ---- their state ----------------------------------------------------------------------------------- */

/* Finds the state of s->key, bound or floating, among those whose keys are plain. */
__inline struct pf_state *find_plain_state(const struct pf_status *status, struct pf_scratch *s,
					   __u32 interface)
{
	struct pf_state_ref *ref = NULL;
	struct pf_state *state;

	if (status->bound && interface) {
		s->key.interface = interface;
		ref = bpf_map_lookup_elem(&state_keys, &s->key);
		s->key.interface = 0;
	}
	if (!ref)
		ref = bpf_map_lookup_elem(&state_keys, &s->key);
	if (!ref)
		return NULL;
	s->ref = *ref;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state || state->serial != s->ref.serial || !(state->flags & PF_STATE_SIMPLE) ||
	    state->timeout >= PF_TIMEOUT_PURGE ||
	    expired(state->rule_slot, state->timeout, state->expire, s->generation, s->now))
		return NULL;
	return state;
}

/* Lets the state of s->ref judge the packet, and count it if it fits: else it is for the long way. */
__global int fits_state(struct pf_scratch *s)
{
	struct pf_state_ref onward;
	struct pf_peer *x, *y;
	struct pf_state *state;
	bool fits, forward;

	if (!s)
		return 0;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return 0;
	bpf_spin_lock(&state->lock);
	fits = state->serial == s->ref.serial && state->timeout < PF_TIMEOUT_PURGE;
	forward = state->direction == s->pd.direction;
	x = forward ? &state->src : &state->dst;
	y = forward ? &state->dst : &state->src;
	if (!fits)
		;
	else if (s->pd.protocol == IPPROTO_TCP)
		fits = x->state == PF_TCPS_ESTABLISHED && y->state == PF_TCPS_ESTABLISHED &&
		       !x->seqdiff && !y->seqdiff && track_tcp(state, s, x, y) == PF_TRACK_PASS;
	else
		fits = track_other(state, s, x, y) == PF_TRACK_PASS;
	if (fits && forward) {
		state->packets[0] += s->segments;
		state->bytes[0] += s->bytes;
	} else if (fits) {
		state->packets[1] += s->segments;
		state->bytes[1] += s->bytes;
	}
	onward = state->onward;
	bpf_spin_unlock(&state->lock);
	s->against_state = !forward;
	s->onward = onward;
	return fits;
}

/* ---- what is remembered ---------------------------------------------------------------------------- */

/* Counts the packet that the state of s->ref passes, as account() does for any. */
__global int count_shortly(struct pf_scratch *s)
{
	struct pf_rule_states *rule;
	struct pf_state *state;
	__u32 slot, out;

	if (!s)
		return 0;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return 0;
	slot = state->rule_slot;
	out = s->pd.direction == PF_OUT;
	count_state(PF_COUNT_SEARCHES);
	count_interface(s, false);
	rule = bpf_map_lookup_elem(&rule_states, &slot);
	if (rule && (rule->tables[0].used || rule->tables[1].used)) {
		/* what it asks beside the packet's ends, and the packet before has left */
		s->has_state = 1;
		s->cross_to = 0;
		keep_original(&s->pd);
		count_rule(s, slot, out, PF_TABLE_PASS);
	} else {
		count_slot(s, slot, out);
	}
	if (state->anchor_slot != PF_IDLE_SLOT)
		count_slot(s, state->anchor_slot, out);
	return 0;
}

/* What a test learns of the packet. */
__inline void tell_test(struct pf_scratch *s, const struct pf_state *state)
{
	__builtin_memset(&s->outcome, 0, sizeof(s->outcome));
	s->outcome.state_id = state->id;
	s->outcome.verdict = PF_VERDICT_PASS;
	s->outcome.rtable = !s->against_state;
	s->rule.slot = state->rule_slot;
	s->rule.anchor_slot = state->anchor_slot;
	s->rule.number = s->rule.anchor_number = -1;
	recall_rule(s);
	s->outcome.rule = s->rule.number;
	s->outcome.anchor_rule = s->rule.anchor_number;
	s->outcome.anchor = s->rule.anchor;
}

/* Takes the path of the state that knows the packet where it leaves, if there is one. Returns what the
 * program returns. */
__global int take_path(struct __sk_buff *skb, struct pf_scratch *s, __u32 fast_forward)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	const struct net *net = kern->dev->nd_net.net;
	struct pf_state *state;
	__u32 serial;

	if (!s || !s->onward.serial || s->pd.ip != sizeof(struct ethernet) ||
	    skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return PF_TCX_NEXT;
	state = bpf_map_lookup_elem(&states, &s->onward.index);
	if (!state)
		return PF_TCX_NEXT;
	bpf_spin_lock(&state->lock);
	s->path = state->path;
	serial = state->serial;
	bpf_spin_unlock(&state->lock);
	if (serial != s->onward.serial || state->timeout >= PF_TIMEOUT_PURGE ||
	    !is_open(&s->path, s, skb->ifindex, number_of_routes(net, s->pd.family)) ||
	    !only_forwards(kern->dev, net, s->pd.family, fast_forward) ||
	    expired(state->rule_slot, state->timeout, state->expire, s->generation, s->now))
		return PF_TCX_NEXT;

	s->ref = s->onward;
	s->pd.direction = PF_OUT;
	s->interface.id = s->path.interface;
	if (!fits_state(s))
		return PF_TCX_NEXT;
	count_shortly(s);
	if (!write_hop((void *)(long)skb->data, (void *)(long)skb->data_end, &s->path,
		       s->pd.family))
		return PF_TCX_DROP;
	if (s->pd.family == AF_INET)
		skb->priority = priority_of(s->pd.tos);
	write_mark(skb, PF_MARK_GENERATED, PF_GENERATED_GIVEN_BACK, PF_DEFAULT_PRIO);
	return bpf_redirect(s->path.leaves_by, 0);
}

/* Takes the packet the short way, if it can. Returns what the program returns, or STEP_ASIDE. */
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

	if (!s || !status || !status->running || status->translated ||
	    !carries_nothing(skb, direction))
		return STEP_ASIDE;
	s->generation = status->generation;
	s->pd.direction = direction;
	config = pf_config(s->generation);
	if (!config || config->fast_forward == PF_FAST_FORWARD_NO)
		return STEP_ASIDE;
	if (!read_ordinary(frame, &s->pd, skb->len, skb->protocol, has_ethernet_header(skb)))
		return STEP_ASIDE;
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface || skipped(interface, s->generation))
		return STEP_ASIDE;
	s->interface.id = interface->id;
	s->pd.rdomain = interface->rdomain;
	s->now = uptime();
	set_key(&s->key, &s->pd, s->pd.direction);
	state = find_plain_state(status, s, interface->id);
	if (!state)
		return STEP_ASIDE;
	count_segments(skb, s);
	s->crosses_back = 0;
	if (!fits_state(s))
		return STEP_ASIDE;
	count_shortly(s);
	if (driven_by_test()) {
		tell_test(s, state);
		return PF_TCX_NEXT;
	}
	if (s->pd.direction == PF_IN)
		return take_path(skb, s, config->fast_forward);
	s->came_in_by = came_in_by(skb);
	if (s->came_in_by) {
		keep_original(&s->pd);
		note_path(skb, s);
	}
	return PF_TCX_NEXT;
}

#endif /* PF_SHORTCUT_H */
