/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Part of the ABI: trees that find the deciding rule among many (crates/classifier/src/tree builds
 * them). All data is nodes of one cache line; a place is the index of a node.
 *
 * A superblock of rules has two nodes, for packets in and out. Their words:
 * - the index of the rule behind the superblock;
 * - for each kind of packet (pf_tree_set_of, plus PF_TREE_SET_OF_INET6 for IPv6) the place of its
 *   tree set. PF_TREE_SET_NONE says that no rule can match, PF_TREE_SET_WALK that skip steps are
 *   faster than a search;
 * - PF_SUPERBLOCK_MEETS_ALL: not 0 if each matching rule takes effect in order. Then an order is a
 *   position in the superblock, with and without `quick`;
 * - PF_SUPERBLOCK_FIRST: the index of the first rule;
 * - PF_SUPERBLOCK_METADATA: the metadata dimension, which is the last axis of the trees.
 *
 * Only these two nodes have absolute indexes of rules and nodes. All other nodes stay valid
 * wherever they are copied to.
 *
 * In nodes an order is shifted. The bit below the order is set if the rule has criteria beyond its
 * hyper-rectangle.
 *
 * A tree set: the number of trees; the number of nodes that the longest search of it reads; then
 * for each tree its distance behind the tree set and its least order, ascending by order. These
 * words continue in the following nodes.
 *
 * A node: the distance to its children; the axis in the lower 16 bits and, in a leaf, the number of
 * rules in the upper 16; the last values before its cuts, ascending. The number of these values
 * below the packet's value on the axis is the number of the next child.
 *
 * A leaf is a node of axis 255. In place of cuts it has its first rules. In place of children it
 * has lines with the other rules, which are at the same words: two of IPv4 or one of IPv6 each.
 *
 * A rule: source and destination; first and last port of either side, 16 bits each; then protocol,
 * class of the interface (0: any), prefix lengths of source and of destination, 8 bits each; its
 * order.
 *
 * All nodes are one list, kept in chunks of one size. A chunk is the only value of an array, and as
 * large as a value may be. Lookups in arrays of different sizes are function calls. In most rule
 * sets all nodes are in the first chunk, which a search looks up once.
 */
#ifndef SKIPSTEP_ABI_TREE_SET_H
#define SKIPSTEP_ABI_TREE_SET_H

#define PF_NODE_WORDS	16
#define PF_NODE_CUTS	14		/* maximum; unused words are 0xffffffff */
#define PF_NODE_RULES	2		/* word of a leaf, or of a line, where its rules begin */
#define PF_RULE_WORDS	6		/* of an IPv4 rule; an IPv6 rule has twice as many */
#define PF_CHUNK_BITS	16		/* a chunk has 1 << PF_CHUNK_BITS nodes, 4 MB */
#define PF_CHUNKS	64		/* maximum number of chunks in a generation */
#define PF_AXIS_LEAF	255
/* the order of a `quick` rule is its position in the superblock, of another rule this minus its
 * position */
#define PF_ORDER_LAST	0x40000000
#define PF_ORDER_SHIFT	1		/* shift of an order in a node */
/* bit below the order: criteria beyond the hyper-rectangle */
#define PF_ORDER_ASKS_MORE	1
/* class of all interfaces with this id or a higher one; a lower id is its own class */
#define PF_CLASS_OTHER	255
#define PF_TREE_SETS	10		/* tree sets in either direction */
#define PF_SUPERBLOCK_MEETS_ALL	11	/* word: not 0 if each matching rule takes effect */
#define PF_SUPERBLOCK_FIRST	12	/* word: index of the superblock's first rule */
#define PF_SUPERBLOCK_METADATA	13		/* word: pf_superblock_metadata */
#define PF_METADATA_UNKNOWN	0xfffffffe	/* value of a tag or owner that has not been read */
#define PF_TREE_SET_NONE	0
#define PF_TREE_SET_WALK	1		/* node 1 is never a tree set */

/* Kinds of packets with a tree set of their own. */
enum pf_tree_set_of {
	PF_TREE_SET_OF_TCP = 0,		/* segments that begin a connection */
	PF_TREE_SET_OF_TCP_FOLLOWS = 1,	/* all other segments */
	PF_TREE_SET_OF_UDP = 2,
	PF_TREE_SET_OF_OTHER = 3,
	PF_TREE_SET_OF_ICMP_FOLLOWS = 4,	/* answers to queries */
	PF_TREE_SET_OF_INET6 = 5,
};

/* The metadata dimension of a superblock's trees. */
enum pf_superblock_metadata {
	PF_SUPERBLOCK_METADATA_NOTHING = 0,
	PF_SUPERBLOCK_METADATA_TAG = 1,
	PF_SUPERBLOCK_METADATA_USER = 2,
	PF_SUPERBLOCK_METADATA_GROUP = 3,
};

struct pf_node {
	__u32 word[PF_NODE_WORDS];
};

#endif /* SKIPSTEP_ABI_TREE_SET_H */
