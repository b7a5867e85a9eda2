/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * A transparent bridge of our own. A port has one program more, behind the one that filters what
 * comes in: what that one lets go on is sent out of another port here, whose program filters it on
 * its way out. So pf sees a frame that crosses as it sees a packet that is forwarded, and where it
 * is disabled the bridge goes on.
 *
 * A bridge learns by which port a station is from the frames that come from it. What is for one it
 * does not know, or for many, leaves by all ports but the one it came in by.
 */
#ifndef PF_BRIDGE_H
#define PF_BRIDGE_H

#include "config.h"
#include "frame.h"
#include "kern.h"
#include "mark.h"
#include "time.h"
#include "wire.h"

/* ifindex -> number of the port */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PF_BRIDGE_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} bridge_numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_BRIDGE_PORTS);
	__type(key, __u32);
	__type(value, struct pf_bridge_port);
} bridge_ports SEC(".maps");

/* No flood of addresses drives those out that are known: what there is no room for is not
 * learned. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PF_BRIDGE_ADDRESSES);
	__type(key, struct pf_bridge_key);
	__type(value, struct pf_bridge_address);
} bridge_addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PF_BRIDGE_ALL_RULES);
	__type(key, struct pf_bridge_rule_key);
	__type(value, struct pf_bridge_rule);
} bridge_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PF_BRIDGE_PORTS);
	__type(key, __u32);
	__type(value, struct pf_bridge_stats);
} bridge_stats SEC(".maps");

/* ---- a frame ----------------------------------------------------------------------------------- */

struct pf_bridge_frame {
	struct ethernet header;
	__u16 vlan;			/* of the outer tag, 0 for none */
	__be16 inner;			/* EtherType behind all tags */
	__u32 now;
};

__inline bool is_for_group(const __u8 *address)
{
	return address[0] & 1;
}

/* 01:80:c2:00:00:00 to 0f are for the next device on the link alone: spanning trees, link
 * aggregation, LLDP */
__inline bool is_link_local(const __u8 *address)
{
	return address[0] == 0x01 && address[1] == 0x80 && address[2] == 0xc2 && !address[3] &&
	       !address[4] && address[5] < 0x10;
}

/* The kernel has taken the outer tag off. */
__inline bool read_frame(struct __sk_buff *skb, struct pf_bridge_frame *frame)
{
	struct vlan_tag tag;
	__u32 at = sizeof(frame->header);

	if (bpf_skb_load_bytes(skb, 0, &frame->header, sizeof(frame->header)))
		return false;
	frame->vlan = skb->vlan_present ? skb->vlan_tci & 0x0fff : 0;
	frame->inner = frame->header.type;
	if (frame->inner == bpf_htons(ETHERTYPE_VLAN) || frame->inner == bpf_htons(ETHERTYPE_QINQ)) {
		if (bpf_skb_load_bytes(skb, at, &tag, sizeof(tag)))
			return false;
		frame->inner = tag.type;
	}
	return true;
}

__inline bool is_ip_or_its_arp(__be16 type)
{
	return is_ip(type) || type == bpf_htons(ETHERTYPE_ARP) ||
	       type == bpf_htons(ETHERTYPE_REVARP);
}

/* ---- ports ------------------------------------------------------------------------------------- */

__inline void count_bridge_drop(__u32 port, enum pf_bridge_drop why)
{
	struct pf_bridge_stats *stats = bpf_map_lookup_elem(&bridge_stats, &port);

	if (stats)
		stats->dropped[why]++;
}

__inline void count_bridged(struct __sk_buff *skb, __u32 port, bool out)
{
	struct pf_bridge_stats *stats = bpf_map_lookup_elem(&bridge_stats, &port);

	if (!stats)
		return;
	stats->packets[out & 1] += max(skb->gso_segs, 1);
	stats->bytes[out & 1] += skb->len;
}

struct pf_bridge_walk {
	struct pf_bridge_rule_key key;
	const struct pf_bridge_frame *frame;
	__u32 rules;
	__u32 blocked;
};

static int visit_bridge_rule(__u32 i, void *arg)
{
	struct pf_bridge_walk *walk = arg;
	const struct ethernet *header = &walk->frame->header;
	struct pf_bridge_rule *rule;

	if (i >= walk->rules)
		return 1;
	walk->key.number = i;
	rule = bpf_map_lookup_elem(&bridge_rules, &walk->key);
	if (!rule)
		return 0;
	if ((rule->match & PF_BRIDGE_MATCH_SOURCE && !same_link_address(rule->source, header->source)) ||
	    (rule->match & PF_BRIDGE_MATCH_DESTINATION &&
	     !same_link_address(rule->destination, header->destination)) ||
	    (rule->match & PF_BRIDGE_MATCH_TYPE && rule->type != header->type))
		return 0;
	walk->blocked = rule->action == PF_ACTION_BLOCK;
	return 1;
}

/* Whether the port takes the frame in this direction, or gives it: else it is counted there. */
__inline bool admits(const struct pf_bridge_port *port, __u32 number, __u16 direction,
		     const struct pf_bridge_frame *frame)
{
	struct pf_bridge_walk walk = {
		.key = { .ifindex = port->ifindex, .direction = direction },
		.frame = frame,
		.rules = port->rules[direction == PF_OUT],
	};

	if (port->flags & PF_BRIDGE_BLOCK_NON_IP && !is_ip_or_its_arp(frame->inner)) {
		count_bridge_drop(number, PF_BRIDGE_DROP_NON_IP);
		return false;
	}
	if (walk.rules)
		bpf_loop(PF_BRIDGE_RULES, visit_bridge_rule, &walk, 0);
	if (walk.blocked)
		count_bridge_drop(number, PF_BRIDGE_DROP_RULE);
	return !walk.blocked;
}

/* Whether the frame leaves by the port. One that was put together of fragments will be in pieces
 * again there. */
__inline bool may_leave(struct __sk_buff *skb, const struct pf_bridge_port *port, __u32 number,
			const struct pf_bridge_frame *frame)
{
	__u32 mtu = 0;

	if (!admits(port, number, PF_OUT, frame))
		return false;
	if (!(skb->mark & PF_MARK_REASSEMBLED) &&
	    bpf_check_mtu(skb, port->ifindex, &mtu, 0, 0) == BPF_MTU_CHK_RET_FRAG_NEEDED) {
		count_bridge_drop(number, PF_BRIDGE_DROP_TOO_BIG);
		return false;
	}
	count_bridged(skb, number, true);
	return true;
}

/* ---- stations ---------------------------------------------------------------------------------- */

/* Notes that the station is behind the port. */
__inline void learn(const struct pf_bridge_key *station, __u32 port, __u32 now)
{
	struct pf_bridge_address *known = bpf_map_lookup_elem(&bridge_addresses, station);
	struct pf_bridge_address new = { .port = port, .seen = now };
	struct pf_bridge_stats *stats;

	if (known) {
		if (known->port != port)
			known->port = port;
		if (known->seen != now)
			known->seen = now;
		return;
	}
	if (!bpf_map_update_elem(&bridge_addresses, station, &new, BPF_NOEXIST))
		return;
	stats = bpf_map_lookup_elem(&bridge_stats, &port);
	if (stats)
		stats->unlearned++;
}

/* Whether nothing has come from a station for so long that it may be elsewhere. Another CPU's clock
 * may be ahead. */
__inline bool is_aged(const struct pf_bridge_address *known, __u32 timeout, __u32 now)
{
	return timeout && (__s32)(now - known->seen) > (__s32)timeout;
}

/* The port that the station is behind, 0 if that is not known. */
__inline __u32 find_station(const struct pf_bridge_key *station, __u32 timeout, __u32 now)
{
	struct pf_bridge_address *known = bpf_map_lookup_elem(&bridge_addresses, station);

	return known && !is_aged(known, timeout, now) ? known->port : 0;
}

static long forget_station(void *map, const void *key, void *value, void *arg)
{
	const struct pf_bridge_address *known = value;
	__u32 number = known->port;
	struct pf_bridge_port *port = bpf_map_lookup_elem(&bridge_ports, &number);

	if (port && is_aged(known, port->timeout, *(__u32 *)arg))
		bpf_map_delete_elem(map, key);
	return 0;
}

/* Makes room: forgets the stations that nothing comes from any more. */
__inline void sweep_stations(void)
{
	__u32 now = uptime();

	bpf_for_each_map_elem(&bridge_addresses, forget_station, &now, 0);
}

/* ---- on its way -------------------------------------------------------------------------------- */

struct pf_flood {
	struct __sk_buff *skb;
	const struct pf_bridge_frame *frame;
	__u32 bridge;
	__u32 came_in_by;		/* the number of that port, as the next */
	__u32 last;			/* by which it leaves itself; a copy leaves by the others */
};

__inline void copy_to_port(struct __sk_buff *skb, __u32 number)
{
	struct pf_bridge_port *port = bpf_map_lookup_elem(&bridge_ports, &number);

	if (port)
		bpf_clone_redirect(skb, port->ifindex, 0);
}

static int flood_port(__u32 i, void *arg)
{
	struct pf_flood *flood = arg;
	struct pf_bridge_port *port = bpf_map_lookup_elem(&bridge_ports, &i);

	if (!port || !port->ifindex || port->bridge != flood->bridge || i == flood->came_in_by ||
	    !may_leave(flood->skb, port, i, flood->frame))
		return 0;
	if (flood->last)
		copy_to_port(flood->skb, flood->last);
	flood->last = i;
	return 0;
}

/* Sends the frame out of all other ports, and to this host too if it `hears`. Returns what the
 * program returns. */
__inline int flood(struct __sk_buff *skb, const struct pf_bridge_frame *frame, __u32 bridge,
		   __u32 came_in_by, bool hears)
{
	struct pf_flood flood = {
		.skb = skb,
		.frame = frame,
		.bridge = bridge,
		.came_in_by = came_in_by,
	};
	struct pf_bridge_stats *stats = bpf_map_lookup_elem(&bridge_stats, &came_in_by);
	struct pf_bridge_port *last;

	if (stats)
		stats->flooded++;
	bpf_loop(PF_BRIDGE_PORTS, flood_port, &flood, 0);
	if (hears) {
		if (flood.last)
			copy_to_port(skb, flood.last);
		return PF_TCX_NEXT;
	}
	last = flood.last ? bpf_map_lookup_elem(&bridge_ports, &flood.last) : NULL;
	return last ? bpf_redirect(last->ifindex, 0) : PF_TCX_DROP;
}

/* Takes a frame that came in by a port, and that the filter lets go on, across the bridge. Returns
 * what the program returns. */
/* Differs from OpenBSD: linux.md, "Order of frame rules" */
/* Differs from OpenBSD: linux.md, "Spanning tree" */
/* Differs from OpenBSD: linux.md, "The host on a bridge" */
__inline int cross_bridge(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, number, *found = bpf_map_lookup_elem(&bridge_numbers, &ifindex);
	struct pf_bridge_port *port = found ? bpf_map_lookup_elem(&bridge_ports, found) : NULL;
	struct pf_status *status = pf_status();
	struct pf_bridge_frame frame = {};
	struct pf_bridge_key station = {};
	struct pf_bridge_port *to;
	__u32 bridge, leaves_by;

	if (!port || port->ifindex != ifindex || !status)
		return PF_TCX_NEXT;	/* it is a port no more */
	if (!read_frame(skb, &frame))
		return PF_TCX_DROP;
	number = *found;
	bridge = port->bridge;
	count_bridged(skb, number, false);
	if (is_for_group(frame.header.source)) {
		count_bridge_drop(number, PF_BRIDGE_DROP_SOURCE);
		return PF_TCX_DROP;
	}
	if (!admits(port, number, PF_IN, &frame))
		return PF_TCX_DROP;
	frame.now = uptime_about(status);
	station.bridge = bridge;
	station.vlan = frame.vlan;
	__builtin_memcpy(station.address, frame.header.source, sizeof(station.address));
	learn(&station, number, frame.now);

	if (is_diverted(skb)) {		/* a rule hands it to a socket of this host */
		bpf_skb_change_type(skb, PACKET_HOST);
		return PF_TCX_NEXT;
	}
	if (skb->pkt_type == PACKET_HOST || is_link_local(frame.header.destination))
		return PF_TCX_NEXT;
	if (is_for_group(frame.header.destination))
		return flood(skb, &frame, bridge, number, port->flags & PF_BRIDGE_HEARS);
	__builtin_memcpy(station.address, frame.header.destination, sizeof(station.address));
	leaves_by = find_station(&station, port->timeout, frame.now);
	to = leaves_by ? bpf_map_lookup_elem(&bridge_ports, &leaves_by) : NULL;
	if (!to || to->bridge != bridge)
		return flood(skb, &frame, bridge, number, false);
	if (leaves_by == number || !may_leave(skb, to, leaves_by, &frame))
		return PF_TCX_DROP;
	return bpf_redirect(to->ifindex, 0);
}

#endif /* PF_BRIDGE_H */
