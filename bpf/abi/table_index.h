/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Of the ABI: the index of a table with many entries (crates/classifier/src/table_index.rs makes
 * it). All is made of cells of one cache line, written once and only read from then on: a table
 * that changes gets a new index.
 *
 * The head is first, then the entries, two in a cell; then lines of hosts, nodes of networks, and
 * their values. What a search comes to is a word: 0 for nothing; else the number of the entry, from
 * 1 on, with PF_INDEX_NEGATED if it says that the address is not in the table. In values it can
 * also be the number of a node, from 0 on, with PF_INDEX_NODE.
 *
 * A line has the keys of up to 14 hosts, whose entries stand one behind the other: of IPv4 the
 * address, of IPv6 a number from its hash, and the entry says whether it is that address. 0 is no
 * key. A host that found no room in its line, or whose key is 0, is among the networks.
 * PF_LINE_GOES_ON says that these may have what the line has not.
 *
 * A node branches by one byte of an address. The 256 values that it would have are mostly the same
 * as the one before; those that are not have a bit in `starts`, and stand one behind the other.
 * An address that begins otherwise than all networks behind the node need not be looked at further:
 * its value is `otherwise`.
 */
#ifndef SKIPSTEP_ABI_TABLE_INDEX_H
#define SKIPSTEP_ABI_TABLE_INDEX_H

#define PF_INDEX_NODE		0x80000000
#define PF_INDEX_NEGATED	0x40000000
#define PF_LINE_KEYS		14
#define PF_LINE_GOES_ON		0x80000000
#define PF_INDEX_WORDS		16	/* in a cell */

struct pf_index_cell {
	__u32 word[PF_INDEX_WORDS];
};

/* arrays are [IPv4, IPv6] */
struct pf_index_head {
	__u32 secret[4];		/* of the hash */
	__u32 lines[2];			/* how many; 0: no hosts there */
	__u32 first_line[2];		/* cell */
	__u32 networks[2];		/* a value: where the search for networks begins; 0: none there */
	__u32 first_node;		/* cell */
	__u32 first_value;		/* cell */
	__u32 entries;			/* how many */
	__u32 pad[3];
};

struct pf_index_line {
	__u32 first;			/* number of the first key's entry */
	__u32 flags;			/* bit n: the entry of key n is negated; PF_LINE_GOES_ON */
	__u32 key[PF_LINE_KEYS];
};

struct pf_index_node {
	__u64 starts[4];
	__u32 first;			/* the first of its values, from `first_value` on */
	__u32 otherwise;
	__u8 before[4];			/* bits in the words of `starts` before this one */
	__u8 depth;			/* bytes that all behind it have in common; the next one decides */
	__u8 pad[3];
	__u8 common[16];
};

/* An entry, with what a map would have as its key */
struct pf_index_entry {
	struct pf_table_entry entry;
	__u32 family;
	__u8 address[16];
};

#endif /* SKIPSTEP_ABI_TABLE_INDEX_H */
