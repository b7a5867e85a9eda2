/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: tables, and the pools that choose an address. */
#ifndef SKIPSTEP_ABI_TABLE_H
#define SKIPSTEP_ABI_TABLE_H

/* ---- tables -------------------------------------------------------------------------------- */

/* key of the one LPM trie that holds all tables without an index; prefixlen counts the bits after
 * itself */
struct pf_table_key {
	__u32 prefixlen;		/* 64 + the prefix's */
	__u32 version;			/* pf_table.version; of counters pf_table.counters */
	__u32 family;			/* 2 or 10 */
	__u8 address[16];
};

struct pf_table_entry {
	__u32 cleared;			/* wall-clock second when it was written, or its counters cleared */
	__u32 interface;		/* in PF_SELF_TABLE: id of the interface that has the address */
	__u16 weight;			/* how often a pool takes it, compared with the others; or 0 */
	__u8 prefix;			/* the length of its own, which a longest match does not tell */
	__u8 negated;			/* the longest match says: not in the table */
};

#define PF_TABLE_INDEXED	0x80000000	/* in a version: it has an index, at 2 * slot + (version & 1) */

/* indexed by slot. Contents are replaced by writing a new version beside the old one */
struct pf_table {
	__u32 version;			/* 0: empty, nothing to look up. PF_TABLE_INDEXED */
	__u32 counters;			/* what those of its entries are kept under; 0: they have none */
	__u32 stats;			/* slot of its own counters, the same whatever slot it moves to */
	__u32 list;			/* version of its pool_blocks, which only tables have that pools use */
	__u32 total;			/* entries of both families, negated ones too */
	__u32 weighted;			/* some have weights, of which … */
	__u32 gcd;			/* … this is the greatest common divisor … */
	__u32 heaviest;			/* … and this the greatest */
};

enum pf_table_op {			/* what was done with a packet, as pfctl -vvT show counts it */
	PF_TABLE_BLOCK = 0,
	PF_TABLE_MATCH,
	PF_TABLE_PASS,
	PF_TABLE_XPASS,			/* passed by a state, but the table no longer holds the address */
	PF_TABLE_OP_MAX,
};

/* per CPU, indexed by slot: [in, out][pf_table_op] */
struct pf_table_stats {
	__u64 match;
	__u64 nomatch;
	__u64 packets[2][PF_TABLE_OP_MAX];
	__u64 bytes[2][PF_TABLE_OP_MAX];
};

/* shared by all CPUs: of an entry that was hit, in a table with counters. An entry that passes its
 * packet only because of a state is not counted, so there is no PF_TABLE_XPASS */
struct pf_entry_stats {
	__u64 packets[2][PF_TABLE_XPASS];
	__u64 bytes[2][PF_TABLE_XPASS];
	__u32 prefix;			/* the entry's: a longest match may find a wider one's */
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
	PF_POOL_NONE = 0,		/* the first address */
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
	__u8 listed;			/* choose from the table, not from the network */
	__u8 single;			/* the network is one address */
	__u8 sticky;			/* sticky-address: a source keeps the one that it got */
	__u32 table;			/* slot */
	__u16 low;			/* new ports, host order; 0 and 0 keep the packet's */
	__u16 high;
	__u16 first;			/* the lowest port that the rule looks for: where low belongs */
	__u8 prefix;			/* af-to: its length in front of an IPv4 address */
	__u8 old;			/* of an old rule: FreeBSD's ways where they differ */
	__u8 address[16];		/* the network */
	__u8 mask[16];
	__u8 key[16];			/* of source-hash */
	__u16 port_set;			/* of map-e-portset: the set's id, … */
	__u8 set_offset;		/* … the bits in front of it, 0 if there is no such option … */
	__u8 set_length;		/* … and its own */
	__u16 members;			/* of a list of an old rule; 0: it is none */
	__u8 binat;			/* of `binat`: host bits are those of the address it replaces */
	__u8 endpoint_independent;	/* UDP from one endpoint looks the same to all */
	__u32 interface;		/* id of the one by which its next hops are; 0: as the routes say */
	__u8 prefer_ipv6;		/* IPv4 packets can have a next hop with an IPv6 address */
	__u8 family;			/* of the network; 0 fits both */
	__u8 pad[2];
	/* where the choice stands; two CPUs at once may choose alike */
	__u8 counter[16];		/* the address that is next or was last; 0 at the beginning */
	__u32 index;			/* the block that it is in */
	__s32 turn;			/* weighted round-robin: blocks of at least this weight have it */
	__u32 member;			/* of a list: the member that counter is in */
	__u32 turned;			/* prefer_ipv6: IPv4 addresses have their turn */
};

/* A member of a list of an old rule, in the order in which they are written */
struct pf_pool_member_key {
	__u32 slot;			/* as pf_pool_key, as the next */
	__u32 purpose;
	__u32 index;
};

struct pf_pool_member {
	__u8 listed;			/* as in pf_pool, as the rest */
	__u8 family;			/* of the network; 0 fits both */
	__u8 pad[2];
	__u32 table;
	__u32 interface;
	__u8 address[16];
	__u8 mask[16];
};

/* The entries of a table that pools use, in the order of a radix tree, without negated ones. One
 * with smaller entries inside of it is in several parts: what those leave of it. */
struct pf_pool_block_key {
	__u32 list;			/* pf_table.list */
	__u16 family;
	__u16 part;
	__u32 index;
};

struct pf_pool_block {
	__u8 base[16];			/* of the entry, as the next three */
	__u8 mask[16];
	__u16 weight;
	__u16 parts;
	__u8 low[16];			/* of the part */
	__u8 high[16];
};

/* endpoint-independent: an endpoint inside, which leads to the one outside, or the other way
 * round */
struct pf_endpoint {
	__u32 rdomain;
	__u8 family;
	__u8 outside;
	__be16 port;
	__u8 address[16];
};

struct pf_mapping {
	struct pf_endpoint other;
	__u32 uses;			/* of one inside: states, and packets that may get one */
};

/* how many states have this address from a table: for least-states */
struct pf_pool_load_key {
	__u32 table;			/* pf_table.stats, which stays when contents and slot change */
	__u32 family;
	__u8 address[16];
};

#endif /* SKIPSTEP_ABI_TABLE_H */
