/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Part of the ABI: tables, and the pools that choose an address. */
#ifndef SKIPSTEP_ABI_TABLE_H
#define SKIPSTEP_ABI_TABLE_H

/* ---- tables -------------------------------------------------------------------------------- */

/* Key of the one LPM trie for all tables without an index; prefixlen counts the bits behind
 * itself. */
struct pf_table_key {
	__u32 prefixlen;		/* 64 plus the prefix length */
	__u32 version;			/* pf_table.version; for counters pf_table.counters */
	__u32 family;			/* 2 or 10 */
	__u8 address[16];
};

struct pf_table_entry {
	/* wall-clock second of its creation, or of the last clearing of its counters */
	__u32 cleared;
	/* in PF_SELF_TABLE: id of the interface that has the address */
	__u32 interface;
	__u16 weight;			/* relative weight of the entry in a pool; 0: not set */
	/* prefix length of the entry, which a longest match does not return */
	__u8 prefix;
	/* a longest match with this entry means: not in the table */
	__u8 negated;
};

/* bit of a version: the table has an index, at 2 * slot + (version & 1) */
#define PF_TABLE_INDEXED	0x80000000

/* Indexed by slot. A replaced table is written under a new version beside the previous one. */
struct pf_table {
	/* of the valid entries, with PF_TABLE_INDEXED; 0: the table is empty */
	__u32 version;
	__u32 counters;			/* version of the entries' counters; 0: no counters */
	/* slot of the table's own counters, which stays when the table moves to another slot */
	__u32 stats;
	__u32 list;			/* version of its pool_blocks; 0: no pool uses the table */
	__u32 total;			/* entries of both families, negated ones included */
	__u32 weighted;			/* some entries have weights */
	__u32 gcd;			/* greatest common divisor of the weights */
	__u32 heaviest;			/* greatest weight */
};

enum pf_table_op {			/* results of packets, as pfctl -vvT show counts them */
	PF_TABLE_BLOCK = 0,
	PF_TABLE_MATCH,
	PF_TABLE_PASS,
	/* passed by a state, but the table no longer has the address */
	PF_TABLE_XPASS,
	PF_TABLE_OP_MAX,
};

/* Per CPU, indexed by slot: [in, out][pf_table_op]. */
struct pf_table_stats {
	__u64 match;
	__u64 nomatch;
	__u64 packets[2][PF_TABLE_OP_MAX];
	__u64 bytes[2][PF_TABLE_OP_MAX];
};

/* Counters of an entry in a table with counters, shared by all CPUs. PF_TABLE_XPASS is missing: an
 * entry is not counted if only a state passes its packet. */
struct pf_entry_stats {
	__u64 packets[2][PF_TABLE_XPASS];
	__u64 bytes[2][PF_TABLE_XPASS];
	/* prefix length of the entry: a longest match may find a wider entry */
	__u32 prefix;
	__u32 pad;
};

/* ---- pools --------------------------------------------------------------------------------- */

enum pf_purpose {
	PF_POOL_NAT = 0,
	PF_POOL_RDR = 1,
	PF_POOL_ROUTE = 2,
};

enum pf_route_kind {			/* values of OpenBSD's PF_ROUTETO and its like */
	PF_HOP_NO = 0,
	PF_HOP_ROUTE_TO = 1,
	PF_HOP_DUP_TO = 2,
	PF_HOP_REPLY_TO = 3,
};

enum pf_pool_kind {
	PF_POOL_NONE = 0,		/* the first address of the pool */
	PF_POOL_BITMASK,
	PF_POOL_RANDOM,
	PF_POOL_SOURCE_HASH,
	PF_POOL_ROUND_ROBIN,
	PF_POOL_LEAST_STATES,
};

struct pf_pool_key {
	__u32 slot;			/* of the rule */
	__u32 purpose;			/* pf_purpose */
};

struct pf_pool {
	__u8 kind;			/* pf_pool_kind */
	__u8 listed;			/* addresses come from the table, else from the network */
	__u8 single;			/* the network is a single address */
	__u8 sticky;			/* sticky-address: a source keeps its address */
	__u32 table;			/* slot */
	__u16 low;			/* new ports, host order; both 0: the packet's port stays */
	__u16 high;
	__u16 first;			/* lowest port of the rule's criterion, which maps to low */
	/* af-to: length of the IPv6 prefix in front of an IPv4 address */
	__u8 prefix;
	/* a legacy rule's pool: FreeBSD's behaviour where OpenBSD's differs */
	__u8 old;
	__u8 address[16];		/* the network */
	__u8 mask[16];
	__u8 key[16];			/* key of source-hash */
	__u16 port_set;			/* map-e-portset: id of the port set */
	/* map-e-portset: bits in front of the id, 0 without the option */
	__u8 set_offset;
	__u8 set_length;		/* map-e-portset: bits of the id */
	__u16 members;			/* members of a legacy rule's list; 0: not a list */
	__u8 binat;			/* `binat`: host bits come from the replaced address */
	/* a UDP endpoint has the same translation for all its peers */
	__u8 endpoint_independent;
	/* id of the interface where the next hops are; 0: the routes decide */
	__u32 interface;
	__u8 prefer_ipv6;		/* IPv4 packets may get an IPv6 next hop */
	__u8 family;			/* of the network; 0 matches both */
	__u8 pad[2];
	__u32 trial;			/* the generation on trial that has another table, or 0 */
	__u32 trial_table;		/* slot of that table */
	/* The position of the choice. Two CPUs at once may choose the same address. */
	__u8 counter[16];		/* the next or the last address; 0 at the beginning */
	__u32 index;			/* index of the block that has counter */
	/* weighted round-robin: minimum weight of a block in this round */
	__s32 turn;
	__u32 member;			/* list: index of the member that has counter */
	__u32 turned;			/* prefer_ipv6: 1 while IPv4 addresses are chosen */
};

/* A member of a legacy rule's list, in the order of the text. */
struct pf_pool_member_key {
	__u32 slot;			/* slot and purpose as in pf_pool_key */
	__u32 purpose;
	__u32 index;
};

struct pf_pool_member {
	__u8 listed;			/* all fields as in pf_pool */
	__u8 family;			/* of the network; 0 matches both */
	__u8 pad[2];
	__u32 table;
	__u32 interface;
	__u8 address[16];
	__u8 mask[16];
	__u32 trial;			/* as in pf_pool */
	__u32 trial_table;
};

/* The entries of a table that pools use, in the order of a radix tree, without negated entries. An
 * entry that contains smaller entries has several parts: the addresses between these. */
struct pf_pool_block_key {
	__u32 list;			/* pf_table.list */
	__u16 family;
	__u16 part;
	__u32 index;
};

struct pf_pool_block {
	__u8 base[16];			/* of the entry: base, mask, weight, parts */
	__u8 mask[16];
	__u16 weight;
	__u16 parts;
	__u8 low[16];			/* of the part: low, high */
	__u8 high[16];
};

/* endpoint-independent: an endpoint inside, which maps to the endpoint outside, or the reverse. */
struct pf_endpoint {
	__u32 rdomain;
	__u8 family;
	__u8 outside;
	__be16 port;
	__u8 address[16];
};

struct pf_mapping {
	struct pf_endpoint other;
	/* inside endpoints: states, and packets that may create one */
	__u32 uses;
};

/* Number of states with this address of a table, for least-states. */
struct pf_pool_load_key {
	/* pf_table.stats, which stays when contents and slot change */
	__u32 table;
	__u32 family;
	__u8 address[16];
};

#endif /* SKIPSTEP_ABI_TABLE_H */
