/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Forwarding past the kernel's own way. The program of the interface where a packet of a state
 * leaves notes the path that the kernel has chosen for it: where it came in, the neighbour that it
 * goes to, and which state knew it there. While the routes stay as they are, and the kernel goes on
 * to reach the neighbour so (neighbour.h), the packets behind it take that path at once from where
 * they come in, with the same two states to judge and count them. After five minutes the routes
 * are asked once more (hop.h), whatever the number that changes with them says; those of IPv6 after
 * a second or two. Where the kernel has more to do with packets than to forward them nobody takes a
 * path.
 */
#ifndef PF_PATH_H
#define PF_PATH_H

#include "interface.h"
#include "kern.h"
#include "neighbour.h"
#include "netfilter.h"
#include "scratch.h"
#include "state.h"
#include "state_key.h"

/* seconds that a path is good for. Of IPv6 the number of routes does not change with all that there
 * is: not when a route is deleted, nor with `forwarding`. */
/* Differs from OpenBSD: linux.md, "Cached routes" */
#define PATH_LIFE	300
#define PATH_LIFE_INET6	1

/* A number that changes with the routes of a family: of IPv4 with all that they hang on (links,
 * addresses, rules, `ip_forward`), of IPv6 when there are new ones. */
__inline __u32 number_of_routes(const struct net *net, __u8 family)
{
	return family == AF_INET ? net->ipv4.rt_genid.counter : net->ipv6.fib6_sernum.counter;
}

/* A number that changes with the rules and with the routes, of which `routes` is the number.
 * Neither ever goes back, and a path does not live long enough for them to come to the same sum
 * again. */
__inline __u32 path_epoch(const struct pf_scratch *s, __u32 routes)
{
	return routes + (s->generation << 16);
}

/* Whether IPsec has a policy for what goes on or out. */
__inline bool has_ipsec(const struct net *net)
{
	return bpf_core_field_exists(net->xfrm) &&
	       (net->xfrm.policy_count[XFRM_POLICY_OUT] || net->xfrm.policy_count[XFRM_POLICY_FWD]);
}

/* For whom a packet that comes in by the device is the kernel's, which would do more with it than
 * to forward it. */
/* Differs from OpenBSD: linux.md, "The fast path" */
__inline enum pf_left_to left_to(const struct net_device *device, const struct net *net, __u8 family,
				 __u32 fast_forward)
{
	if (device->rx_handler)
		return PF_LEFT_TO_UPPER;
	/* a bridge of ours is a second program, too */
	if (has_others(device->tcx_ingress))
		return PF_LEFT_TO_PROGRAM;
	if (has_ipsec(net))
		return PF_LEFT_TO_IPSEC;
	if (fast_forward == PF_FAST_FORWARD_YES)
		return PF_LEFT_TO_NOBODY;
	if ((bpf_core_field_exists(device->nf_hooks_ingress) && device->nf_hooks_ingress) ||
	    has_netfilter(net, family))
		return PF_LEFT_TO_NETFILTER;
	return PF_LEFT_TO_NOBODY;
}

/* Whether the device's queueing discipline is one that the kernel gives devices by itself: nobody
 * wants packets to wait there for their turn. */
__inline bool has_no_queue_of_its_own(const struct net_device *device)
{
	const char *id = device->qdisc->ops->id;

	return (id[0] == 'n' && id[1] == 'o') ||	/* noqueue */
	       (id[0] == 'm' && id[1] == 'q' && !id[2]) ||
	       (id[0] == 'p' && id[5] == '_') ||	/* pfifo_fast */
	       (id[0] == 'f' && id[1] == 'q');		/* fq, fq_codel */
}

/* Returns which frames a device takes straight from another one's driver, past all that would look
 * at them on their way out but us: enum pf_express. */
__inline __u8 takes_frames(const struct net_device *device)
{
	if (!(device->xdp_features & NETDEV_XDP_ACT_NDO_XMIT) || !has_no_queue_of_its_own(device) ||
	    has_others(device->tcx_egress) ||
	    (bpf_core_field_exists(device->nf_hooks_egress) && device->nf_hooks_egress))
		return PF_EXPRESS_NOT;
	return device->xdp_features & NETDEV_XDP_ACT_NDO_XMIT_SG ? PF_EXPRESS_ANY : PF_EXPRESS_SHORT;
}

/* Asks in s->lookup for the way of the packet, with the ends that it has now, if it came in by an
 * interface. */
__inline void set_lookup(struct pf_scratch *s, __u32 came_in_by)
{
	struct bpf_fib_lookup *lookup = &s->lookup;

	__builtin_memset(lookup, 0, sizeof(*lookup));
	lookup->family = s->pd.family;
	lookup->ifindex = came_in_by;
	if (s->pd.family == AF_INET) {
		lookup->tos = s->pd.tos;
		lookup->ipv4_src = s->pd.source.word[0];
		lookup->ipv4_dst = s->pd.destination.word[0];
	} else {
		__builtin_memcpy(lookup->ipv6_src, &s->pd.source, 16);
		__builtin_memcpy(lookup->ipv6_dst, &s->pd.destination, 16);
	}
}

/* Asks the routes what the kernel has asked them for a packet that leaves by skb->ifindex and that
 * nobody has translated here. Returns the MTU of its path, or 0 if they do not say what the kernel
 * did. */
__inline __u32 ask_routes(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup *lookup = &s->lookup;

	set_lookup(s, s->came_in_by);
	lookup->tot_len = 1;		/* any: then the answer has the MTU */
	if (bpf_fib_lookup(skb, lookup, sizeof(*lookup), PF_FIB_LOOKUP_SKIP_NEIGH) ||
	    lookup->ifindex != skb->ifindex)
		return 0;
	return lookup->mtu_result;
}

/* Leads a state, whose place is s->far, onward to s->ref. False if it leads there already. */
__inline bool lead_onward(struct pf_scratch *s, struct pf_state *state)
{
	bool changes = false;

	bpf_spin_lock(&state->lock);
	if (state->serial == s->far.serial) {
		changes = state->peer.index != s->ref.index ||
			  state->peer.serial != s->ref.serial;
		state->peer = s->ref;
	}
	bpf_spin_unlock(&state->lock);
	return changes;
}

/* The same, and so does its entry in the table of keys. */
__inline void lead_entry_onward(struct pf_scratch *s, struct pf_state *state)
{
	if (lead_onward(s, state))
		point_onward(&state->key[near_side(state->key[PF_WIRE].made, PF_IN)], s->far.index,
			     s->ref.index);
}

/* Leads the state of s->key, if it has one of a kind, onward to s->ref. */
__global int link_one(struct pf_scratch *s, __u32 made)
{
	struct pf_state *state;

	if (!s)
		return 0;
	set_made(&s->key, made);
	if (!find_key(&s->key, &s->far))
		return 0;
	state = bpf_map_lookup_elem(&states, &s->far.index);
	if (state && (!made || same_key(&s->key, &state->key[PF_STACK])))
		lead_entry_onward(s, state);
	return 0;
}

/* Leads the state that knew the packet where it came in to the one that knows it here: s->ref.
 * There may be several that could have been it, and each would have sent it here as it is. */
__inline void link_onward(const struct pf_status *status, struct pf_scratch *s)
{
	const __u32 interfaces[] = { 0, status->bound ? s->received.id : 0 };

	set_key(&s->key, &s->pd, PF_IN);
	for (int i = 0; i < 2; i++) {
		if (i && !interfaces[i])
			break;
		s->key.interface = interfaces[i];
		link_one(s, PF_MADE_PLAIN);
		if (status->translated) {
			link_one(s, PF_MADE_IN);
			link_one(s, PF_MADE_OUT);
		}
	}
}

/* Notes s->path in the state of s->ref. */
__inline void store_path(struct pf_scratch *s, struct pf_state *state)
{
	bpf_spin_lock(&state->lock);
	if (state->serial == s->ref.serial)
		state->path = s->path;
	bpf_spin_unlock(&state->lock);
}

/* Writes to s->path that packets like this one, of which s->lookup has the answer of the routes, go
 * to the neighbour with the number. */
__inline void set_path(struct pf_scratch *s, __u32 came_in_by, __u32 hop, __u32 routes)
{
	struct pf_path *path = &s->path;

	path->came_in_by = came_in_by;
	path->hop = hop;
	path->second = s->now;
	path->epoch = path_epoch(s, routes);
	path->mtu = min(s->lookup.mtu_result, 0xffff);
	path->tos = s->pd.tos;
	path->pad = 0;
}

/* Whether the path was noted this very second for packets like this one, and what frames look like
 * on it. */
__inline bool is_noted(const struct pf_path *path, const struct pf_scratch *s, __u32 routes)
{
	const struct pf_hop *hop;

	if (path->second != s->now || path->came_in_by != s->came_in_by ||
	    path->epoch != path_epoch(s, routes) || path->tos != s->pd.tos)
		return false;
	if (!path->hop)
		return true;
	hop = known_hop(path->hop);
	return hop && hop->confirmed == s->now;
}

/* Notes what the frame looks like, for a neighbour that the routes have led it to. False if it has
 * no such header. */
__inline bool confirm_hop(struct __sk_buff *skb, struct pf_scratch *s, struct pf_hop *hop)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	struct ethernet *ethernet = (void *)(long)skb->data;

	if ((void *)(ethernet + 1) > (void *)(long)skb->data_end)
		return false;
	hop->leaves_by = skb->ifindex;
	hop->interface = s->interface.id;
	hop->express = takes_frames(kern->dev);
	confirm(hop, ethernet->destination, ethernet->source, s->now);
	return true;
}

/* Notes the path of a packet that the kernel has forwarded and that the state of s->ref passes. */
__global int note_path(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	struct pf_status *status = pf_status();
	struct pf_interface *received;
	struct pf_state *state;
	struct pf_hop *hop;
	__u32 routes, number = 0;

	if (!s || !status || driven_by_test() || !has_ethernet_header(skb) || s->pd.rdomain)
		return 0;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	received = interface_at(s->came_in_by);
	if (!state || !received || received->rdomain)
		return 0;
	routes = number_of_routes(kern->dev->nd_net.net, s->pd.family);
	if (is_noted(&state->path, s, routes))
		return 0;
	s->received.id = received->id;
	link_onward(status, s);
	if (ask_routes(skb, s)) {
		number = number_of_neighbour(s);
		hop = hop_of(number);
		if (!hop || !confirm_hop(skb, s, hop))
			return 0;
	}
	set_path(s, s->came_in_by, number, routes);
	store_path(s, state);
	return 0;
}

/* Notes s->path for those behind the packet, which has not gone by the kernel: the state of s->ref
 * knows it where it leaves, and has the path already if it was made of it; that of s->far where it
 * came in. */
__global int keep_path(struct pf_scratch *s)
{
	struct pf_state *state;

	if (!s)
		return 0;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return 0;
	if (!s->made)
		store_path(s, state);
	state = bpf_map_lookup_elem(&states, &s->far.index);
	if (!state)
		return 0;
	if (!s->far_made)
		lead_entry_onward(s, state);
	else if (lead_onward(s, state))
		point_entry_onward(&s->far_entry, s->ref.index);
	return 0;
}

/* Whether the kernel has sent a packet of the state of s->onward elsewhere than its routes say. */
__inline bool goes_astray(const struct pf_scratch *s)
{
	struct pf_state *onward = bpf_map_lookup_elem(&states, &s->peer.index);

	return onward && onward->path.second && !onward->path.hop;
}

/* Whether the packet may take the path now, as far as routes are concerned. */
__inline bool is_open(const struct pf_path *path, const struct pf_scratch *s, __u32 ifindex,
		      __u32 routes)
{
	const __u32 life = s->pd.family == AF_INET ? PATH_LIFE : PATH_LIFE_INET6;

	return path->hop && path->came_in_by == ifindex &&
	       path->epoch == path_epoch(s, routes) && s->now - path->second <= life &&
	       path->tos == s->pd.tos && s->length <= path->mtu && s->pd.ttl > 1;
}

/* Takes s->path, if it is open and its neighbour known to be reached: s->hop says how then. One
 * that is for the kernel, to keep the neighbour alive, does not take it either. */
__inline bool take_hop(struct pf_scratch *s, __u32 ifindex, __u32 routes, enum pf_forwarded hook)
{
	struct pf_hop *hop;

	if (!is_open(&s->path, s, ifindex, routes))
		return false;
	hop = known_hop(s->path.hop);
	if (!hop || !is_confirmed(hop, s->now) || !is_kept_alive(hop, hook, s->now))
		return false;
	s->hop = *hop;
	return true;
}

/* What the kernel takes a packet's place in queues from: its ip_tos2prio. */
__inline __u32 priority_of(__u8 tos)
{
	static const __u8 priority[16] = { 0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4 };

	return priority[(tos >> 1) & 15];
}

/* Writes the packet as it leaves. False if its bytes are not where they were. */
__inline bool write_hop(void *data, void *end, const struct pf_hop *hop, __u8 family)
{
	struct ethernet *ethernet = data;
	struct ip *ip = data + sizeof(*ethernet);
	struct ip6 *ip6 = data + sizeof(*ethernet);
	__u32 sum;

	if ((void *)(ip + 1) > end)
		return false;
	if (family == AF_INET) {
		ip->ttl--;
		/* RFC 1624: the header's sum, with one less in its upper byte */
		sum = ip->checksum + bpf_htons(0x0100);
		ip->checksum = sum + (sum >= 0xffff);
	} else {
		if ((void *)(ip6 + 1) > end)
			return false;
		ip6->hop_limit--;
	}
	__builtin_memcpy(ethernet->destination, hop->neighbour, sizeof(hop->neighbour));
	__builtin_memcpy(ethernet->source, hop->own, sizeof(hop->own));
	return true;
}

#endif /* PF_PATH_H */
