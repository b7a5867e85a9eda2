/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Where the kernel would send a packet, asked before it has had it: for packets whose state has
 * noted no path (path.h), or that no state knows. The routes say where, and what the kernel looks
 * at besides is looked at here.
 */
#ifndef PF_HOP_H
#define PF_HOP_H

#include "interface.h"
#include "kern.h"
#include "memo.h"
#include "neighbour.h"
#include "path.h"
#include "reason.h"
#include "scratch.h"
#include "table.h"

/* seconds that what a packet has shown of a device holds */
#define DEVICE_LIFE	1

/* What a device is like, by pf_interface.id */
struct pf_leaving_device {
	__u32 second;			/* when it was looked at */
	__u32 express;			/* pf_express */
	__u32 ethernet;			/* its frames have such headers */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_MAX_INTERFACES);
	__type(key, __u32);
	__type(value, struct pf_leaving_device);
} leaving_devices SEC(".maps");

/* Notes what the device is like that the packet leaves by. */
__inline void note_device(struct __sk_buff *skb, const struct pf_scratch *s)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	struct pf_leaving_device *device;
	__u32 id = s->interface.id;

	device = bpf_map_lookup_elem(&leaving_devices, &id);
	if (!device || device->second == s->now)
		return;
	device->express = takes_frames(kern->dev);
	device->ethernet = has_ethernet_header(skb);
	device->second = s->now;
}

/* ---- what the kernel looks at before it forwards --------------------------------------------- */

/* Addresses that stand for no host, or for one on the link alone. */
__inline bool is_for_forwarding(__u8 family, const struct pf_addr *address)
{
	__u32 first = bpf_ntohl(address->word[0]);

	if (family == AF_INET)
		return first >> 24 != 0 && first >> 24 != 127 && first < 0xe0000000;
	return first && first >> 24 != 0xff && (first & 0xffc00000) != 0xfe800000;
}

/* `rp_filter` of the device: 0, or as strict as the number says */
__inline int strictness(const struct net_device *device, const struct net *net)
{
	return max(device->ip_ptr->cnf.data[DEVCONF_RP_FILTER],
		   net->ipv4.devconf_all->data[DEVCONF_RP_FILTER]);
}

/* Whether the way back to the packet's source is one that `rp_filter` likes. */
__inline bool has_way_back(void *ctx, struct pf_scratch *s, int strictness)
{
	struct bpf_fib_lookup *lookup = &s->lookup;
	__u32 came_in_by = lookup->ifindex;
	long result;

	lookup->tot_len = 0;
	lookup->ipv4_src = s->pd.destination.word[0];
	lookup->ipv4_dst = s->pd.source.word[0];
	result = bpf_fib_lookup(ctx, lookup, sizeof(*lookup), PF_FIB_LOOKUP_SKIP_NEIGH);
	return result == BPF_FIB_LKUP_RET_SUCCESS &&
	       (strictness > 1 || lookup->ifindex == came_in_by);
}

/* The same question as that of a flow, for rules of routing that name protocols or ports. */
__inline void set_flow_lookup(struct pf_scratch *s, __u32 ifindex)
{
	set_lookup(s, ifindex);
	s->lookup.l4_protocol = s->pd.protocol;
	s->lookup.sport = s->pd.source_port;
	s->lookup.dport = s->pd.destination_port;
}

/* Whether the kernel would take the packet's source for one that may be there. */
__inline bool may_come_from_there(void *ctx, struct pf_scratch *s, int strictness, __u32 ifindex)
{
	if (s->pd.family == AF_INET && strictness > 0) {
		set_flow_lookup(s, ifindex);
		return has_way_back(ctx, s, strictness);
	}
	return !find_entry(PF_SELF_TABLE, s->pd.family, &s->pd.source);
}

/* Notes in s->leaving the interface that judges the packet where it leaves, as the interface is
 * now. False if packets that leave by it are not for the fast path. */
__inline bool set_leaving(struct pf_scratch *s, __u32 ifindex)
{
	struct pf_interface *interface = interface_at(ifindex);

	if (!interface || skipped(interface, s->generation) || interface->rdomain)
		return false;
	s->leaving = *interface;
	return true;
}

/* Where one like this packet went before. False if that does not hold for it, or any more. */
__inline bool recall_hop(struct pf_scratch *s, const struct pf_memo *memo, __u32 ifindex,
			 __u32 routes, int strictness, enum pf_forwarded hook)
{
	if (memo->strictness != strictness)
		return false;
	s->path = memo->path;
	return take_hop(s, ifindex, routes, hook) && set_leaving(s, s->hop.leaves_by);
}

/* Notes in s->hop that frames go to the neighbour that s->lookup has found as it says, by
 * s->leaving. */
__inline void note_hop(struct pf_scratch *s, struct pf_hop *hop, __u8 express)
{
	hop->leaves_by = s->lookup.ifindex;
	hop->interface = s->leaving.id;
	hop->express = express;
	confirm(hop, s->lookup.dmac, s->lookup.smac, s->now);
	s->hop = *hop;
}

/* Returns the properties of the device that a packet is to leave by, if it may and a packet has
 * shown them a moment ago, else NULL. Sets s->leaving, the interface that the packet is judged on
 * there. */
__inline struct pf_leaving_device *leave_by(struct pf_scratch *s, __u32 ifindex)
{
	struct pf_leaving_device *device;

	if (!set_leaving(s, ifindex))
		return NULL;
	device = bpf_map_lookup_elem(&leaving_devices, &s->leaving.id);
	return device && s->now - device->second <= DEVICE_LIFE ? device : NULL;
}

/* Asks the kernel where it would send the packet that has come in by the device. True if it would
 * forward it and do nothing else: s->path and s->hop say how, and s->leaving where it leaves.
 * `hook` is the one that asks, `ctx` its packet. */
__inline bool find_hop(void *ctx, struct pf_scratch *s, const struct net_device *device,
		       const struct net *net, __u32 ifindex, enum pf_forwarded hook)
{
	/* of packets that rules have passed where they came in */
	struct pf_memo *memo = s->has_state ? NULL : same_memo(s);
	__u32 routes = number_of_routes(net, s->pd.family);
	struct bpf_fib_lookup *lookup = &s->lookup;
	int strict = strictness(device, net);
	struct pf_leaving_device *leaving;
	struct pf_hop *hop;

	if (memo && recall_hop(s, memo, ifindex, routes, strict, hook))
		return true;
	if (s->pd.ttl <= 1 || !is_for_forwarding(s->pd.family, &s->pd.source) ||
	    !is_for_forwarding(s->pd.family, &s->pd.destination) || !is_router(net, s->pd.family) ||
	    !may_come_from_there(ctx, s, strict, ifindex))
		return false;
	set_flow_lookup(s, ifindex);
	lookup->tot_len = min(s->length, 0xffff);
	/* by the way it came: then the kernel tells the sender of a shorter one */
	if (bpf_fib_lookup(ctx, lookup, sizeof(*lookup), 0) != BPF_FIB_LKUP_RET_SUCCESS ||
	    lookup->ifindex == ifindex)
		return false;
	hop = hop_of(number_of_neighbour(s));
	if (!hop || !is_kept_alive(hop, hook, s->now))
		return false;
	leaving = leave_by(s, lookup->ifindex);
	if (!leaving || !leaving->ethernet)
		return false;
	note_hop(s, hop, leaving->express);
	set_path(s, ifindex, hop->number, routes);
	if (memo) {
		memo->strictness = strict;
		memo->path = s->path;
	}
	return true;
}

#endif /* PF_HOP_H */
