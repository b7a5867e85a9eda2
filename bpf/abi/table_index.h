/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Part of the ABI: the index of a table with many entries (crates/classifier/src/table_index.rs
 * builds it). All data is cells of one cache line, written once and then only read: a table that
 * changes gets a new index.
 *
 * The head comes first, then the entries, two in a cell; then buckets of hosts, nodes of networks,
 * and their values. The result of a search is a word: 0 if nothing was found, else the number of
 * the entry, from 1. PF_INDEX_NEGATED in it says that the address is not in the table. A value may
 * also be the number of a node, from 0, with PF_INDEX_NODE.
 *
 * A bucket has the keys of up to 14 hosts, whose entries are consecutive. An IPv4 key is the
 * address. An IPv6 key is a number from the address's hash, and the entry confirms the address. Key
 * 0 is an unused place. A host without room in its bucket, or with key 0, is stored among the
 * networks; PF_LINE_GOES_ON in the bucket says so.
 *
 * A node branches by one byte of an address. Most of its 256 values equal the value before. Only
 * values that differ have a bit in `starts`, and are stored, consecutively. An address that differs
 * from the leading bytes that all networks below the node share needs no further search: its value
 * is `otherwise`.
 */
#ifndef SKIPSTEP_ABI_TABLE_INDEX_H
#define SKIPSTEP_ABI_TABLE_INDEX_H

#define PF_INDEX_NODE		0x80000000
#define PF_INDEX_NEGATED	0x40000000
#define PF_LINE_KEYS		14
#define PF_LINE_GOES_ON		0x80000000
#define PF_INDEX_WORDS		16	/* 32-bit words in a cell */

struct pf_index_cell {
	__u32 word[PF_INDEX_WORDS];
};

/* Arrays are [IPv4, IPv6]. */
struct pf_index_head {
	__u32 secret[4];		/* of the keyed hash */
	__u32 lines[2];			/* number of buckets; 0: no hosts */
	__u32 first_line[2];		/* cell of the first bucket */
	/* value where the search for networks begins; 0: no networks */
	__u32 networks[2];
	__u32 first_node;		/* cell */
	__u32 first_value;		/* cell */
	__u32 entries;			/* number of entries */
	__u32 pad[3];
};

struct pf_index_line {
	__u32 first;			/* number of the entry of the first key */
	/* bit n: the entry of key n is negated; also PF_LINE_GOES_ON */
	__u32 flags;
	__u32 key[PF_LINE_KEYS];
};

struct pf_index_node {
	__u64 starts[4];
	__u32 first;			/* its first value, counted from `first_value` */
	__u32 otherwise;
	__u8 before[4];			/* bits set in the words of `starts` before each word */
	/* number of leading bytes that all networks below share; the next byte branches */
	__u8 depth;
	__u8 pad[3];
	__u8 common[16];
};

/* An entry with its key. */
struct pf_index_entry {
	struct pf_table_entry entry;
	__u32 family;
	__u8 address[16];
};

#endif /* SKIPSTEP_ABI_TABLE_INDEX_H */
