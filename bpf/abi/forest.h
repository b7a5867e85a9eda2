/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Of the ABI: trees that find the deciding rule among many (crates/classifier/src/tree says how
 * they come about). All is made of cells of one cache line; places are indexes of cells.
 *
 * A stretch of rules is two cells, for packets in and out: index of the rule behind it, then the
 * place of the forest for each kind of packet, PF_FOREST_NONE if no rule can match, PF_FOREST_WALK
 * if skip steps are faster than a search. A kind's number is its pf_forest_of, and
 * PF_FOREST_OF_INET6 more of IPv6. Behind these, whether it is a stretch in which all rules that
 * match are met: their orders are their places in it, `quick` or not; the index of its first rule;
 * and what its trees cut along besides headers, on the last axis. These two cells alone say where
 * rules and cells are. All others go on being true wherever they are moved to.
 *
 * Orders are shifted in cells, with a bit below them that says whether a rule's box says all that
 * the rule asks.
 *
 * A forest: how many trees, how many cells the longest search of it looks at, then for each tree
 * how far behind the forest it is and the least order in it, ascending; these words go on in the
 * cells behind.
 *
 * A node: how far behind it its children are; axis and, of a leaf, number of rules (in its lower
 * and upper 16 bits); the last values before its cuts, ascending. The number of these that are
 * below the point's value on that axis is the number of the child that is next.
 *
 * A leaf is a node of axis 255: where cuts would be it has its first rules, and where children
 * would be, lines with the others, which have them in the same places: two of IPv4 or one of IPv6
 * each.
 *
 * A rule: source and destination, from and to of either port in 16 and 16 bits; protocol, class of
 * the interface (0: any), bits that matter of source and of destination, in 8 bits each; its order.
 *
 * All cells are one list that is kept in chunks of one size, each the one value of an array and as
 * large as a value may be: arrays of different sizes are looked up by a call, and in most rule sets
 * all cells are in the first chunk, which a search looks up once.
 */
#ifndef SKIPSTEP_ABI_FOREST_H
#define SKIPSTEP_ABI_FOREST_H

#define PF_CELL_WORDS	16
#define PF_CELL_CUTS	14		/* at most; the rest of words are 0xffffffff */
#define PF_CELL_RULES	2		/* word of a leaf, or a line, in which its rules begin */
#define PF_RULE_WORDS	6		/* of a rule of IPv4 there; one of IPv6 has twice as many */
#define PF_CHUNK_BITS	16		/* a chunk has 1 << so many cells, 4 MB … */
#define PF_CHUNKS	64		/* … and there are so many of them in a generation */
#define PF_AXIS_LEAF	255
#define PF_ORDER_LAST	0x40000000	/* a rule's order is its place in the stretch if it is `quick`, else this less it */
#define PF_ORDER_SHIFT	1		/* in cells it is shifted by so much, with this bit below … */
#define PF_ORDER_ASKS_MORE	1	/* … if the rule's box does not say all that it asks */
#define PF_CLASS_OTHER	255		/* of interfaces whose ids are not below it, which are their own classes */
#define PF_FORESTS	10		/* in either direction */
#define PF_STRETCH_MEETS_ALL	11	/* word of a stretch's cells: not 0 if all that match are met */
#define PF_STRETCH_FIRST	12	/* word of a stretch's cells: index of its first rule */
#define PF_STRETCH_ASKS	13		/* word of a stretch's cells: pf_stretch_asks */
#define PF_ASKED_UNKNOWN	0xfffffffe	/* the value of what nobody has looked at */
#define PF_FOREST_NONE	0
#define PF_FOREST_WALK	1		/* the second cell is none of a forest */

/* packets that have a forest of their own */
enum pf_forest_of {
	PF_FOREST_OF_TCP = 0,		/* first segments */
	PF_FOREST_OF_TCP_FOLLOWS = 1,	/* all others */
	PF_FOREST_OF_UDP = 2,
	PF_FOREST_OF_OTHER = 3,
	PF_FOREST_OF_ICMP_FOLLOWS = 4,	/* the answer to a query */
	PF_FOREST_OF_INET6 = 5,
};

/* what trees cut along besides, if rules ask it */
enum pf_stretch_asks {
	PF_STRETCH_ASKS_NOTHING = 0,
	PF_STRETCH_ASKS_TAG = 1,
	PF_STRETCH_ASKS_USER = 2,
	PF_STRETCH_ASKS_GROUP = 3,
};

struct pf_cell {
	__u32 word[PF_CELL_WORDS];
};

#endif /* SKIPSTEP_ABI_FOREST_H */
