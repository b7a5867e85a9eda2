/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Where a bridge of ours would send a frame, asked in XDP before the programs of tc have had it:
 * for an ordinary packet from a station that is known to be where it comes from, to one that is
 * known to be elsewhere. All that has to be learned, flooded or asked of rules for frames is for
 * bridge.h.
 *
 * Packets that leave by tc show the properties of the device where the frame leaves: when none has
 * done so for a second, one will.
 */
#ifndef PF_BRIDGE_HOP_H
#define PF_BRIDGE_HOP_H

#include "bridge.h"
#include "hop.h"
#include "interface.h"
#include "kern.h"
#include "onward.h"
#include "scratch.h"

/* Whether nobody but the filter, and a bridge behind it, has frames that come in by the device. */
__inline bool only_bridges(const struct net_device *device)
{
	const struct bpf_mprog_entry *programs = device->tcx_ingress;

	return !device->rx_handler && programs && programs->parent->count == 2;
}

/* Whether the frame is from one station to another, neither of which is this host. */
__inline bool is_between_stations(const struct ethernet *ethernet, const struct net_device *device)
{
	return !is_for_group(ethernet->source) && !is_for_group(ethernet->destination) &&
	       !same_link_address(ethernet->destination, device->dev_addr_shadow);
}

/* The port that the frame came in by, if its source is known to be there; that it was seen is
 * noted. */
__inline struct pf_bridge_port *find_entry_port(struct pf_scratch *s, const struct ethernet *ethernet,
						__u32 ifindex)
{
	struct pf_bridge_key station = {};
	struct pf_bridge_address *known;
	struct pf_bridge_port *port;
	__u32 *number = bpf_map_lookup_elem(&bridge_numbers, &ifindex);

	port = number ? bpf_map_lookup_elem(&bridge_ports, number) : NULL;
	if (!port || port->ifindex != ifindex || port->rules[0])
		return NULL;
	station.bridge = port->bridge;
	__builtin_memcpy(station.address, ethernet->source, sizeof(station.address));
	known = bpf_map_lookup_elem(&bridge_addresses, &station);
	if (!known || known->port != *number || is_aged(known, port->timeout, s->now))
		return NULL;
	if (known->seen != s->now)
		known->seen = s->now;
	s->crossed.in = *number;
	return port;
}

/* The port of the same bridge that the frame's destination is known to be behind. */
__inline struct pf_bridge_port *find_exit_port(struct pf_scratch *s, const struct ethernet *ethernet,
					       const struct pf_bridge_port *entry)
{
	struct pf_bridge_key station = {};
	struct pf_bridge_port *port;
	__u32 number;

	station.bridge = entry->bridge;
	__builtin_memcpy(station.address, ethernet->destination, sizeof(station.address));
	number = find_station(&station, entry->timeout, s->now);
	port = number ? bpf_map_lookup_elem(&bridge_ports, &number) : NULL;
	if (!port || port == entry || port->bridge != entry->bridge || port->rules[1])
		return NULL;
	s->crossed.out = number;
	return port;
}

/* Whether the packet may leave by the interface, straight to its driver: s->hop says how then, and
 * s->leaving what it is judged by there. `length` is that of the frame. */
__inline bool may_leave_by(struct xdp_md *xdp, struct pf_scratch *s, __u32 ifindex, __u32 length)
{
	struct pf_leaving_device *device = leave_by(s, ifindex);
	/* 0 would ask about what is in one piece alone */
	__u32 packet = length - sizeof(struct ethernet);

	if (!device)
		return false;
	s->hop.leaves_by = ifindex;
	s->hop.express = device->express;
	return takes_frame(s, &s->hop) &&
	       bpf_check_mtu(xdp, ifindex, &packet, 0, 0) == BPF_MTU_CHK_RET_SUCCESS;
}

/* Looks for the way across the bridge of a packet that has passed where it came in. True if it has
 * but to cross. */
__global int find_bridge_hop(struct xdp_md *xdp, struct pf_scratch *s, __u32 length)
{
	struct ethernet *ethernet = (void *)(long)xdp->data;
	struct pf_bridge_port *entry, *exit;

	if (!s || (void *)(ethernet + 1) > (void *)(long)xdp->data_end)
		return false;
	entry = find_entry_port(s, ethernet, xdp->ingress_ifindex);
	exit = entry ? find_exit_port(s, ethernet, entry) : NULL;
	return exit && may_leave_by(xdp, s, exit->ifindex, length);
}

/* The same as find_way_past(), for a port of a bridge. */
__inline int find_way_across(struct xdp_md *xdp, struct pf_scratch *s, __u32 length)
{
	return find_bridge_hop(xdp, s, length) ? judge_leaving(s) : PF_PLAINLY_UNKNOWN;
}

/* Counts the frame at both ports. */
__inline void count_crossed(const struct pf_scratch *s, __u32 length)
{
	const __u32 ports[] = { s->crossed.in, s->crossed.out };
	struct pf_bridge_stats *stats;

	for (int way = 0; way < 2; way++) {
		stats = bpf_map_lookup_elem(&bridge_stats, &ports[way]);
		if (!stats)
			continue;
		stats->packets[way]++;
		stats->bytes[way] += length;
	}
}

#endif /* PF_BRIDGE_HOP_H */
