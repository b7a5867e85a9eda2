/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Interfaces, their groups and their counters.
 */
#ifndef PF_INTERFACE_H
#define PF_INTERFACE_H

#include "kern.h"
#include "scratch.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PF_MAX_INTERFACES);
	__type(key, __u32);
	__type(value, struct pf_interface);
} interfaces SEC(".maps");

/* The same of those whose ifindex is small, for an array is asked without a call. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_NEAR_INTERFACES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pf_near_interface);
} near_interfaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_MAX_INTERFACES);
	__type(key, __u32);
	__type(value, __u32);
} interface_indexes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PF_MAX_INTERFACES);
	__type(key, __u32);
	__type(value, struct pf_interface_stats);
} interface_stats SEC(".maps");

/* Returns the entry that userland wrote for an interface, or NULL if there is none yet. In a
 * namespace that has lived for long ifindexes may be large. */
__inline struct pf_interface *interface_at(__u32 ifindex)
{
	struct pf_near_interface *near = bpf_map_lookup_elem(&near_interfaces, &ifindex);
	__u32 known = near ? now_in(near->known) : 0;

	return known ? &near->one[(known - 1) & 1] : bpf_map_lookup_elem(&interfaces, &ifindex);
}

/* The same in a place of its own; all zero if nobody did yet. */
__inline void find_interface(struct pf_interface *to, __u32 ifindex)
{
	struct pf_interface *known = interface_at(ifindex);

	if (known)
		*to = *known;
	else
		__builtin_memset(to, 0, sizeof(*to));
}

__inline bool skipped(const struct pf_interface *interface, __u32 generation)
{
	return interface->flags & (PF_INTERFACE_SKIP << pf_copy(generation));
}

/* Whether it is a port of a bridge, ours or the kernel's. */
__inline bool is_port(const struct pf_interface *interface)
{
	return interface->flags & PF_INTERFACE_PORT;
}

/* Whether the packet leaves by a bridge that it came in by: routes have no part in it. */
__inline bool is_bridged(const struct pf_scratch *s)
{
	return s->pd.direction == PF_OUT && is_port(&s->interface) && is_port(&s->received);
}

/* Whether a packet that came in stays on its bridge. */
__inline bool stays_on_bridge(const struct __sk_buff *skb, const struct pf_scratch *s)
{
	return is_port(&s->interface) && skb->pkt_type != PACKET_HOST;
}

/* Whether the packet comes in by a bridge's port and is to leave by another one, or leaves so. */
__inline bool stays_between_ports(const struct __sk_buff *skb, const struct pf_scratch *s)
{
	return s->pd.direction == PF_IN ? stays_on_bridge(skb, s) : is_bridged(s);
}

/* Whether the kernel's bridge takes it from there, which passes on nothing that is longer than a
 * link. */
__inline bool goes_to_kernel_bridge(struct __sk_buff *skb, const struct pf_scratch *s)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);

	return s->pd.direction == PF_IN && stays_on_bridge(skb, s) && kern->dev->rx_handler;
}

/* True if macvlan devices stand on the device: each takes the frames for its own link address. */
__inline bool is_macvlan_port(const struct net_device *device)
{
	return BPF_CORE_READ_BITFIELD(device, priv_flags) &
	       bpf_core_enum_value(enum netdev_priv_flags, IFF_MACVLAN_PORT);
}

/* True if filters of a clsact qdisc see the packets of a hook of tcx, behind its programs. */
__inline bool has_clsact_filters(const struct bpf_mprog_entry *programs)
{
	const void *bundle = programs ? programs->parent : NULL;
	const struct tcx_entry *entry;

	if (!bundle)
		return false;
	entry = bpf_core_cast(bundle - bpf_core_field_offset(struct tcx_entry, bundle),
			      struct tcx_entry);
	return entry->miniq;
}

/* True if others than our one program see the packets of a hook of tcx. */
__inline bool has_others(const struct bpf_mprog_entry *programs)
{
	return programs && (programs->parent->count > 1 || has_clsact_filters(programs));
}

/* Whether `on` names this interface. */
__inline bool match_interface(__u8 how, __u32 id, const struct pf_interface *interface)
{
	switch (how) {
	case PF_IFMATCH_NONE:
	case PF_IFMATCH_RDOMAIN:	/* names no interface */
		return true;
	case PF_IFMATCH_NAME:
		return interface->id == id && id;
	case PF_IFMATCH_GROUP:
		return interface->groups & (1ull << (id & 63));
	case PF_IFMATCH_ANY:
		return !(interface->flags & PF_INTERFACE_LOOPBACK);
	}
	return false;
}

/* Counts packets of an interface, unless userland has not told of it: then its id is 0. */
__inline void count_packets(__u32 id, __u32 six, __u32 out, __u32 blocked, __u32 packets,
			    __u64 bytes)
{
	struct pf_interface_stats *stats = id ? bpf_map_lookup_elem(&interface_stats, &id) : NULL;

	if (!stats)
		return;
	stats->packets[six & 1][out & 1][blocked & 1] += packets;
	stats->bytes[six & 1][out & 1][blocked & 1] += bytes;
}

__inline void count_interface(struct pf_scratch *s, bool blocked)
{
	count_packets(s->interface.id, s->pd.family == AF_INET6, s->pd.direction == PF_OUT,
		      blocked, s->segments, s->bytes);
}

#endif /* PF_INTERFACE_H */
