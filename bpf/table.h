/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Tables of addresses (pf-semantics section 17), and the host's routes, which two kinds of address
 * ask for.
 *
 * Those with few entries, and those that the data plane adds to, live in one LPM trie; others have
 * an index each. The key in the trie begins with the version of the table's contents, and that says
 * where an index is, so new contents are written beside the old ones and come into force with one
 * store.
 */
#ifndef PF_TABLE_H
#define PF_TABLE_H

#include "config.h"
#include "kern.h"
#include "scratch.h"
#include "table_index.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_TABLE_SLOTS);
	__type(key, __u32);
	__type(value, struct pf_table);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1000000);
	__type(key, struct pf_table_key);
	__type(value, struct pf_table_entry);
} table_entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PF_TABLE_SLOTS);
	__type(key, __u32);
	__type(value, struct pf_table_stats);
} table_stats SEC(".maps");

/* A trie as large as that of the entries, for it takes memory only for entries that were hit. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1000000);
	__type(key, struct pf_table_key);
	__type(value, struct pf_entry_stats);
} entry_stats SEC(".maps");

__inline struct pf_table_stats *find_table_stats(__u32 slot)
{
	struct pf_table *table = bpf_map_lookup_elem(&tables, &slot);

	return table ? bpf_map_lookup_elem(&table_stats, &table->stats) : NULL;
}

/* The longest match for the address in the trie. */
__inline struct pf_table_entry *find_in_trie(__u32 version, __u8 family,
					     const struct pf_addr *address)
{
	struct pf_table_key key;

	key.prefixlen = 64 + (family == AF_INET ? 32 : 128);
	key.version = version;
	key.family = family;
	__builtin_memcpy(key.address, address, sizeof(key.address));
	return bpf_map_lookup_elem(&table_entries, &key);
}

/* The version of a table's contents, 0 if it is empty. Who looks something up reads it once. */
__inline __u32 version_of(__u32 slot)
{
	const struct pf_table *table = bpf_map_lookup_elem(&tables, &slot);

	return table ? *(const volatile __u32 *)&table->version : 0;
}

/* The longest match for the address in a table. */
__inline struct pf_table_entry *find_entry(__u32 slot, __u8 family, const struct pf_addr *address)
{
	__u32 version = version_of(slot);

	if (version & PF_TABLE_INDEXED)
		return find_in_index(slot, version, family, address);
	return version ? find_in_trie(version, family, address) : NULL;
}

/* Whether the longest match for the address is there, and not negated. */
__inline bool has_match(__u32 slot, __u8 family, const struct pf_addr *address)
{
	__u32 version = version_of(slot), number;
	const struct pf_table_entry *entry;

	if (version & PF_TABLE_INDEXED) {
		/* the entry itself need not be looked at */
		number = search_index(slot, version, family, address);
		return number && !(number & PF_INDEX_NEGATED);
	}
	entry = version ? find_in_trie(version, family, address) : NULL;
	return entry && !entry->negated;
}

/* A rule has asked a table for an address. */
__inline void count_answer(__u32 slot, bool match)
{
	struct pf_table_stats *stats = find_table_stats(slot);

	if (!stats)
		return;
	if (match)
		stats->match++;
	else
		stats->nomatch++;
}

/* Whether the table of a rule holds the address: the longest match decides, and says no if it is
 * negated. */
__inline bool match_table(struct pf_scratch *s, __u32 slot, const struct pf_addr *address)
{
	bool match = has_match(slot, s->pd.family, address);

	if (s->counts_later)
		note_visit(s, slot, match ? PF_VISIT_MATCH : PF_VISIT_NO_MATCH);
	else
		count_answer(slot, match);
	return match;
}

/* Names an entry of a table's contents. */
__inline void set_entry_key(struct pf_table_key *key, __u32 version, __u8 family,
			    const void *address, __u32 prefix)
{
	key->prefixlen = 64 + prefix;
	key->version = version;
	key->family = family;
	__builtin_memcpy(key->address, address, sizeof(key->address));
}

/* Adds a network to a table, if there is room for it and it is not there yet. Tables that this is
 * done to have no index. */
__inline void put_entry(__u32 slot, __u8 family, const void *address, __u32 prefix, __u32 most,
			__u32 now)
{
	struct pf_table *table = bpf_map_lookup_elem(&tables, &slot);
	struct pf_status *status = pf_status();
	struct pf_table_entry entry = {};
	struct pf_table_key key;

	if (!table || !table->version || table->version & PF_TABLE_INDEXED || !status)
		return;
	if (__sync_fetch_and_add(&status->table_entries, 1) < most) {
		set_entry_key(&key, table->version, family, address, prefix);
		entry.prefix = prefix;
		entry.cleared = status->boot_time + now;
		if (!bpf_map_update_elem(&table_entries, &key, &entry, BPF_NOEXIST))
			return;
	}
	__sync_fetch_and_sub(&status->table_entries, 1);
}

/* Takes a network out of a table, with what was counted for it. */
__inline void take_entry(__u32 slot, __u8 family, const void *address, __u32 prefix)
{
	struct pf_table *table = bpf_map_lookup_elem(&tables, &slot);
	struct pf_status *status = pf_status();
	struct pf_table_key key;

	if (!table || !table->version || !status)
		return;
	set_entry_key(&key, table->version, family, address, prefix);
	if (bpf_map_delete_elem(&table_entries, &key))
		return;
	__sync_fetch_and_sub(&status->table_entries, 1);
	key.version = table->counters;
	bpf_map_delete_elem(&entry_stats, &key);
}

/* Counts the packet for the entry of a table that its address was found by. Counters are made for
 * the first packet. */
__inline void count_entry(struct pf_scratch *s, __u32 counters, __u32 prefix,
			  const struct pf_addr *address, __u32 op)
{
	__u32 out = s->pd.direction == PF_OUT, left = prefix;
	struct pf_entry_stats *stats;
	struct pf_table_key key = {
		.prefixlen = 64 + prefix,
		.version = counters,
		.family = s->pd.family,
	};

	if (op >= PF_TABLE_XPASS)
		return;
	for (int i = 0; i < 4; i++) {
		__u32 bits = min(left, 32);
		__u32 word = address->word[i];

		if (bits < 32)
			word &= bpf_htonl(~(0xffffffffu >> bits));
		__builtin_memcpy(key.address + 4 * i, &word, sizeof(word));
		left -= bits;
	}
	stats = bpf_map_lookup_elem(&entry_stats, &key);
	if (!stats || stats->prefix != prefix) {
		s->no_traffic.prefix = prefix;
		bpf_map_update_elem(&entry_stats, &key, &s->no_traffic, BPF_NOEXIST);
		stats = bpf_map_lookup_elem(&entry_stats, &key);
	}
	if (!stats || stats->prefix != prefix)
		return;
	__sync_fetch_and_add(&stats->packets[out & 1][op], s->segments);
	__sync_fetch_and_add(&stats->bytes[out & 1][op], s->bytes);
}

enum pf_route {
	PF_ROUTE_NONE,			/* nobody knows the way */
	PF_ROUTE_UNKNOWN,		/* the kernel does not say: it does not forward, or not this */
	PF_ROUTE_WRAPPED,		/* a route that wraps packets, or unwraps them */
	PF_ROUTE_LOCAL,			/* one of our own addresses */
	PF_ROUTE_BROADCAST,		/* to all on a link of ours */
	PF_ROUTE_REFUSED,		/* the table says that nobody may go there */
	PF_ROUTE_FOUND,
};

/* Groups of IPv6, and addresses of a link, are on every link: the kernel knows no way to them that
 * it would forward by. To those of IPv4 it has the way of any other address, as PF. */
__inline bool is_everywhere(__u8 family, const struct pf_addr *address)
{
	__u32 first = bpf_ntohl(address->word[0]);

	return family == AF_INET6 && (first >> 24 == 0xff || (first & 0xffc00000) == 0xfe800000);
}

/* Among the flags of a lookup: the packet came in, and the host would only forward it. */
/* Differs from OpenBSD: linux.md, "Forwarding of loopback" */
#define FORWARDS	(1U << 31)

/* Asks the kernel's routing tables, or just this one if it is not 0, for the way to an address: to
 * params->ifindex, and if it is asked for (PF_FIB_LOOKUP_SRC) which of our addresses a packet that
 * goes there has. This is the only place that does. */
__inline enum pf_route find_route_in(struct __sk_buff *skb, struct bpf_fib_lookup *params,
				     __u8 family, const struct pf_addr *address, __u32 flags,
				     __u32 table)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	struct pf_table_entry *self;
	bool forwards = flags & FORWARDS;
	long result;

	flags &= ~FORWARDS;
	__builtin_memset(params, 0, sizeof(*params));
	if (is_everywhere(family, address) ||
	    (forwards && !is_router(kern->dev->nd_net.net, family)))
		return PF_ROUTE_UNKNOWN;
	params->family = family;
	params->ifindex = skb->ifindex;
	__builtin_memcpy(params->ipv6_dst, address, sizeof(params->ipv6_dst));
	if (family == AF_INET) {
		__builtin_memset(params->ipv6_dst, 0, sizeof(params->ipv6_dst));
		params->ipv4_dst = address->word[0];
	}
	if (table) {
		/* tbid, which Debian 12's headers do not know yet, is in its place */
		__builtin_memcpy(&params->h_vlan_proto, &table, sizeof(table));
		flags |= BPF_FIB_LOOKUP_DIRECT | PF_FIB_LOOKUP_TBID;
	}
	result = bpf_fib_lookup(skb, params, sizeof(*params), flags);
	/* where rules route on a host that does not forward, pfctl has let loopback do so to be
	 * asked: for packets of our own, and those that a rule sends another way */
	if (result == BPF_FIB_LKUP_RET_FWD_DISABLED && !forwards) {
		params->ifindex = LOOPBACK_IFINDEX;
		result = bpf_fib_lookup(skb, params, sizeof(*params), flags);
	}
	switch (result) {
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return PF_ROUTE_REFUSED;
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		return PF_ROUTE_UNKNOWN;
	case BPF_FIB_LKUP_RET_UNSUPP_LWT:
		return PF_ROUTE_WRAPPED;
	}
	if (result < 0)
		return PF_ROUTE_UNKNOWN;
	/* the kernel has one answer for "that is me" and "no idea" */
	if (result != BPF_FIB_LKUP_RET_NOT_FWDED)
		return PF_ROUTE_FOUND;
	self = find_entry(PF_SELF_TABLE, family, address);
	if (!self)
		return PF_ROUTE_NONE;
	return self->negated ? PF_ROUTE_BROADCAST : PF_ROUTE_LOCAL;
}

__inline enum pf_route find_route(struct __sk_buff *skb, struct bpf_fib_lookup *params,
				  __u8 family, const struct pf_addr *address, __u32 flags)
{
	return find_route_in(skb, params, family, address, flags, 0);
}

/* no-route, urpf-failed. Where the kernel does not tell, neither holds. */
/* Differs from OpenBSD: linux.md, "Forwarding" */
/* Differs from OpenBSD: linux.md, "Routes with several paths" */
__inline bool match_route(struct __sk_buff *skb, struct pf_scratch *s, __u8 kind,
			  const struct pf_addr *address)
{
	struct bpf_fib_lookup params;
	struct pf_table_entry *self;
	enum pf_route route;

	route = find_route(skb, &params, s->pd.family, address, 0);
	if (kind == PF_ADDRESS_NO_ROUTE)
		return route == PF_ROUTE_NONE;
	switch (route) {
	case PF_ROUTE_NONE:
	case PF_ROUTE_REFUSED:
		return true;
	case PF_ROUTE_LOCAL:
	case PF_ROUTE_BROADCAST:
		/* the way to our own address is the interface that has it */
		self = find_entry(PF_SELF_TABLE, s->pd.family, address);
		return !self || self->interface != s->interface.id;
	case PF_ROUTE_FOUND:
		return params.ifindex != skb->ifindex;
	default:
		return false;
	}
}

#endif /* PF_TABLE_H */
