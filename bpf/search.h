/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The compiled evaluator: of a superblock of rules that do nothing but decide, the one that does is
 * sought in trees, in time that hardly grows with their number (abi/tree_set.h says what stands
 * where).
 *
 * A rule whose box has the packet, and says all that it asks, matches. Of those that ask more, such
 * as tables or owners, the search hands out one after the other, and the walk tests them. A tree is
 * through once a rule of it has matched, or those left in the leaf give way to the best so far; the
 * search is over when that is true of all trees.
 *
 * Where rules act on the way (`match`, `anchor`, `tag` …) each one that matches is to be met, and
 * in their order. There the search goes through all trees and notes each rule whose box has the
 * packet; the walk then goes from one of these candidates to the next. Who gives the packet other
 * addresses, or another tag, moves it in the space, and forgets them.
 *
 * What rules ask besides headers, a tag or an owner, may be an axis, too. A search looks at
 * neither: for a packet at which nobody has looked the rules that ask hide each other, the first of
 * them that is tested looks, and the search begins anew.
 */
#ifndef PF_SEARCH_H
#define PF_SEARCH_H

#include "kern.h"
#include "scratch.h"

struct pf_chunk {
	struct pf_node node[1 << PF_CHUNK_BITS];
};

/* All of one size, and without BPF_F_INNER_MAP: then no function is called to look something up.
 * An array that can be mapped begins with a page, so that a node is one cache line. Other arrays
 * have 16 bytes in front. */
struct array_of_a_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, sizeof(struct pf_chunk));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PF_COPIES * PF_CHUNKS);
	__type(key, __u32);
	__array(values, struct array_of_a_chunk);
} tree_sets SEC(".maps");

#define NO_RULE		(~0u)

/* what the node in hand is */
enum {
	SEARCH_SUPERBLOCK,			/* has the places of its tree sets */
	SEARCH_ROOTS,			/* has the place of the tree in hand */
	SEARCH_NODE,
	SEARCH_LINE,
	SEARCH_OVER,
	SEARCH_FAILED,
};

/* One of the chunks of the generation that is searched. */
__inline struct pf_chunk *chunk_at(const struct pf_tree_search *search, __u32 number)
{
	__u32 place = search->chunks + number, only = 0;
	void *chunk = bpf_map_lookup_elem(&tree_sets, &place);

	return chunk ? bpf_map_lookup_elem(chunk, &only) : NULL;
}

/* A node; the first chunk has been looked up. */
__inline struct pf_node *node_at(const struct pf_tree_search *search, struct pf_chunk *first,
				 __u32 place)
{
	struct pf_chunk *chunk = first;

	if (place >> PF_CHUNK_BITS) {
		chunk = chunk_at(search, place >> PF_CHUNK_BITS);
		if (!chunk)
			return NULL;
	}
	return &chunk->node[place & ((1 << PF_CHUNK_BITS) - 1)];
}

/* Goes to a tree. Returns 1 if there are no more. */
__inline int go_to_tree(struct pf_tree_search *search, __u32 tree)
{
	search->tree = tree;
	search->node = search->tree_set + (2 + 2 * tree) / PF_NODE_WORDS;
	search->at = tree < search->trees ? SEARCH_ROOTS : SEARCH_OVER;
	return search->at == SEARCH_OVER;
}

/* Returns 1 if the trees from here on have nothing better. */
__inline int enter_tree(struct pf_tree_search *search, const struct pf_node *node)
{
	__u32 word = (2 + 2 * search->tree) & (PF_NODE_WORDS - 2);

	if (node->word[word + 1] >= search->best) {
		search->at = SEARCH_OVER;
		return 1;
	}
	search->node = search->tree_set + node->word[word];
	search->at = SEARCH_NODE;
	return 0;
}

/* 1 if one number is less than the other, by the sign of their difference: BPF has no comparison
 * without a jump, and clang is not to see that this is one. */
__inline __u64 is_less(__u64 one, __u64 other)
{
	__u64 difference = one - other;

	barrier_var(difference);
	return difference >> 63;
}

/* Returns the distance from a node to the child that a value leads to. */
__inline __u32 child_of(const struct pf_node *node, __u64 value)
{
	__u64 passed = 0;

#pragma unroll
	for (int i = 0; i < PF_NODE_CUTS; i++)
		passed += is_less(node->word[2 + i], value);
	return node->word[0] + passed;
}

/* Not 0 if a value is outside of what two ports, or types, have between them. */
__inline __u64 is_outside(__u64 value, __u32 ports)
{
	return is_less(value, ports & 0xffff) | is_less(ports >> 16, value);
}

/* Not 0 if it is another one than is wanted, 0 being any. */
__inline __u64 is_other(__u32 value, __u32 wanted)
{
	return (value ^ wanted) * is_less(0, wanted);
}

__inline __u64 has_other_prefix(__u32 one, __u32 other, __u32 bits)
{
	return (__u64)(one ^ other) >> ((32 - bits) & 63);
}

__inline bool same_prefix6(const __u32 *one, const __u32 *other, __u32 bits)
{
	__u64 high = (__u64)(one[0] ^ other[0]) << 32 | (one[1] ^ other[1]);
	__u64 low = (__u64)(one[2] ^ other[2]) << 32 | (one[3] ^ other[3]);

	if (!bits)
		return true;
	if (bits <= 64)
		return !(high >> ((64 - bits) & 63));
	return !high && !(low >> ((128 - bits) & 63));
}

/* Ports, protocol and interface, which are alike in both families. */
__inline __u64 lacks_rest(const __u32 *box, const __u32 *point)
{
	return is_outside(point[0], box[0]) | is_outside(point[1], box[1]) |
	       is_other(point[2], box[2] & 0xff) | is_other(point[3], box[2] >> 8 & 0xff);
}

/* Whether a box has the packet. All is tested at once: a jump that the processor cannot foresee
 * costs more. */
__inline bool has_inet(const __u32 *box, const __u32 *point)
{
	return !(has_other_prefix(box[0], point[0], box[4] >> 16 & 0xff) |
		 has_other_prefix(box[1], point[1], box[4] >> 24) | lacks_rest(box + 2, point + 2));
}

__inline bool has_inet6(const __u32 *box, const __u32 *point)
{
	return !lacks_rest(box + 8, point + 8) && same_prefix6(box, point, box[10] >> 16 & 0xff) &&
	       same_prefix6(box + 4, point + 4, box[10] >> 24);
}

/* Notes a rule whose box has the packet. */
__inline void note_candidate(struct pf_tree_search *search, __u32 order)
{
	struct pf_candidates *candidates = &search->candidates;

	if (candidates->count < PF_CANDIDATES)
		candidates->index[candidates->count++] = search->first + (order >> PF_ORDER_SHIFT);
	else
		candidates->every = 1;
}

/* Looks at the rules of a node, from the next one on. Returns 1 if one is to be tested, or the
 * search is over. */
__inline int look_at_rules(struct pf_tree_search *search, const struct pf_node *node)
{
	__u32 looked = search->rule;

#pragma unroll
	for (__u32 half = 0; half < 2; half++) {
		const __u32 *box = &node->word[PF_NODE_RULES + half * PF_RULE_WORDS];
		/* IPv6 has one rule in the place of two */
		__u32 order = search->six ? node->word[PF_NODE_RULES + 2 * PF_RULE_WORDS - 1]
					  : box[PF_RULE_WORDS - 1];

		if (search->six ? half : half < (looked & 1))
			continue;
		if (search->rule >= search->rules || order >= search->best)
			return go_to_tree(search, search->tree + 1);
		search->rule++;
		if (!(search->six ? has_inet6(box, search->point) : has_inet(box, search->point)))
			continue;
		if (search->meets_all) {
			note_candidate(search, order);
			continue;
		}
		if (!(order & PF_ORDER_ASKS_MORE)) {
			search->best = order;
			return go_to_tree(search, search->tree + 1);
		}
		search->candidate = order;
		if (search->six || half)
			search->node = search->line++;
		return 1;
	}
	search->node = search->line++;
	return search->rule < search->rules ? 0 : go_to_tree(search, search->tree + 1);
}

/* Nodes that one step goes down from: most trees are less deep. The verifier walks through each of
 * them in each of STEPS_AT_ONCE steps. */
#define NODES_A_STEP	8

/* Goes down from a node, and looks at the first rules of the leaf that it comes to. */
__inline int descend(struct pf_tree_search *search, struct pf_chunk *first,
		     const struct pf_node *node)
{
	__u32 axis, place = search->node;

#pragma clang loop unroll(disable)
	for (int n = 0; n < NODES_A_STEP; n++) {
		axis = node->word[1] & 0xff;
		if (axis == PF_AXIS_LEAF) {
			search->node = place;
			search->line = place + node->word[0];
			search->rule = 0;
			search->rules = node->word[1] >> 16;
			search->at = SEARCH_LINE;
			return look_at_rules(search, node);
		}
		place += child_of(node, search->point[axis & (PF_AXES - 1)]);
		node = node_at(search, first, place);
		if (!node) {
			search->at = SEARCH_FAILED;
			return 1;
		}
	}
	search->node = place;
	return 0;
}

/* Steps before bpf_loop begins, and then in each of its rounds: where the kernel guards calls and
 * returns, a round costs more than a node. Few searches are longer than the first steps, and the
 * verifier's time grows with both. */
#define STEPS_AT_ONCE	32
#define STEPS_A_ROUND	8

/* Looks at the next nodes, at most `steps`, a constant. Returns 1 if a rule is to be tested, or the
 * search is over. */
__inline int look_at_nodes(struct pf_tree_search *search, struct pf_chunk *first, int steps)
{
	struct pf_node *node;
	int ends;

#pragma clang loop unroll(disable)
	for (int n = 0; n < steps; n++) {
		node = node_at(search, first, search->node);
		if (!node) {
			search->at = SEARCH_FAILED;
			return 1;
		}
		if (search->at == SEARCH_ROOTS)
			ends = enter_tree(search, node);
		else if (search->at == SEARCH_NODE)
			ends = descend(search, first, node);
		else
			ends = look_at_rules(search, node);
		if (ends)
			return 1;
	}
	return 0;
}

static int look_at_more_nodes(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_tree_search *search = &loop->s->search;
	struct pf_chunk *first = chunk_at(search, 0);

	return first ? look_at_nodes(search, first, STEPS_A_ROUND) : 1;
}

/* Where the packet is on the axis of what rules ask besides headers. A plain walk looks at none of
 * it. */
__inline __u32 find_asked(const struct pf_scratch *s, __u32 asks)
{
	const struct pf_test_ctx *test = &s->test;
	__u32 id = asks == PF_SUPERBLOCK_METADATA_USER ? s->owner_uid : s->owner_gid;

	if (s->counts_later)
		return PF_METADATA_UNKNOWN;
	if (asks == PF_SUPERBLOCK_METADATA_TAG)
		return test->act.tag || !s->tag ? test->act.tag : PF_METADATA_UNKNOWN;
	if (!s->owner_sought)
		return PF_METADATA_UNKNOWN;
	/* as crates/classifier/src/metadata.rs has it */
	return id == PF_METADATA_UNKNOWN ? PF_METADATA_UNKNOWN - 1 : id;
}

/* Where the packet is in the space that the trees cut. Returns what is unknown of that,
 * pf_superblock_metadata. */
__inline __u32 find_point(struct pf_scratch *s, __u32 asks)
{
	__u32 *point = s->search.point;
	const struct pf_pdesc *pd = &s->pd;
	__u32 words = s->search.six ? 4 : 1;

	for (int i = 0; i < 4; i++) {
		if (i && !s->search.six)
			break;
		point[i] = bpf_ntohl(pd->source.word[i]);
		point[words + i] = bpf_ntohl(pd->destination.word[i]);
	}
	point += 2 * words;
	point[0] = point[1] = 0;
	switch (pd->virtual_protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
		point[0] = bpf_ntohs(pd->source_port);
		point[1] = bpf_ntohs(pd->destination_port);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		point[0] = s->test.icmp_type;
		point[1] = s->test.icmp_code;
	}
	point[2] = pd->protocol;
	point[3] = min(s->interface.id, PF_CLASS_OTHER);
	if (asks == PF_SUPERBLOCK_METADATA_NOTHING)
		return PF_SUPERBLOCK_METADATA_NOTHING;
	point[4] = find_asked(s, asks);
	return point[4] == PF_METADATA_UNKNOWN ? asks : PF_SUPERBLOCK_METADATA_NOTHING;
}

__inline __u32 kind_of_packet(const struct pf_scratch *s)
{
	switch (s->pd.virtual_protocol) {
	case IPPROTO_TCP:
		return (s->pd.tcp.flags & (TH_SYN | TH_ACK)) == TH_SYN ? PF_TREE_SET_OF_TCP
								       : PF_TREE_SET_OF_TCP_FOLLOWS;
	case IPPROTO_UDP:
		return PF_TREE_SET_OF_UDP;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return s->test.icmp_reply ? PF_TREE_SET_OF_ICMP_FOLLOWS : PF_TREE_SET_OF_OTHER;
	}
	return PF_TREE_SET_OF_OTHER;
}

/* Begins to search the superblock whose nodes are at `superblock`. */
__inline void begin_search(struct pf_tree_search *search, __u32 superblock)
{
	search->goes_on = 1;
	search->at = SEARCH_SUPERBLOCK;
	search->node = search->superblock = superblock;
}

/* Whether it is known which of the rules may match, from this one on. */
__inline bool knows_candidates(const struct pf_candidates *candidates, __u32 rule)
{
	return rule >= candidates->from && rule < candidates->end;
}

__inline void forget_candidates(struct pf_scratch *s)
{
	s->search.candidates.end = 0;
}

/* So often what was known of tags is forgotten; then rules that ask for them are walked. */
#define RETAGGED	PF_MATCH_RULES

/* A rule gives the packet another tag: those that ask for it were passed over. */
__inline void change_tag(struct pf_scratch *s, __u16 tag)
{
	struct pf_test_ctx *test = &s->test;

	if (tag == test->act.tag)
		return;
	test->act.tag = tag;
	if (s->search.candidates.asks != PF_SUPERBLOCK_METADATA_TAG || test->retagged >= RETAGGED)
		return;
	test->retagged++;
	forget_candidates(s);
}

/* Whether a rule has looked by now at what nobody had looked at. */
__inline bool is_known_now(const struct pf_scratch *s, __u32 unknown)
{
	return unknown == PF_SUPERBLOCK_METADATA_TAG ? s->test.act.tag : unknown && s->owner_sought;
}

/* A rule was tested. If it was the first one to look, the trees hid others behind it: what they
 * said is forgotten. */
__inline void note_look(struct pf_scratch *s)
{
	struct pf_tree_search *search = &s->search;

	if (is_known_now(s, search->candidates.unknown)) {
		search->candidates.unknown = 0;
		forget_candidates(s);
	}
}

/* Goes to the tree set of packets like this one, if there is one and it is to be searched. */
__inline void enter_superblock(struct pf_scratch *s, struct pf_chunk *first)
{
	struct pf_tree_search *search = &s->search;
	struct pf_node *node;
	__u32 tree_set, asks;

	search->at = SEARCH_FAILED;
	search->best = NO_RULE;
	search->six = s->pd.family == AF_INET6;
	node = node_at(search, first, search->node + (s->pd.direction == PF_OUT));
	if (!node)
		return;
	search->first = node->word[PF_SUPERBLOCK_FIRST];
	search->end = node->word[0];
	tree_set = 1 + kind_of_packet(s) + (search->six ? PF_TREE_SET_OF_INET6 : 0);
	search->tree_set = node->word[tree_set & (PF_NODE_WORDS - 1)];
	search->goes_on = search->tree_set != PF_TREE_SET_WALK;
	asks = node->word[PF_SUPERBLOCK_METADATA];
	if (asks == PF_SUPERBLOCK_METADATA_TAG && s->test.retagged >= RETAGGED)
		search->goes_on = 0;
	search->unknown = PF_SUPERBLOCK_METADATA_NOTHING;
	search->meets_all = !!node->word[PF_SUPERBLOCK_MEETS_ALL];
	if (search->meets_all) {
		search->candidates.from = s->test.next;
		search->candidates.end = search->end;
		search->candidates.count = 0;
		search->candidates.every = !search->goes_on;
		search->candidates.asks = asks;
		search->candidates.unknown = PF_SUPERBLOCK_METADATA_NOTHING;
	}
	if (search->tree_set == PF_TREE_SET_NONE) {
		search->at = SEARCH_OVER;
		return;
	}
	node = search->goes_on ? node_at(search, first, search->tree_set) : NULL;
	if (!node)
		return;
	search->trees = node->word[0];
	search->steps = node->word[1];
	search->unknown = find_point(s, asks);
	if (search->meets_all)
		search->candidates.unknown = search->unknown;
	go_to_tree(search, 0);
}

/* The index of the rule with this order, as nodes have it. */
__inline __u32 index_of(const struct pf_tree_search *search, __u32 order)
{
	order >>= PF_ORDER_SHIFT;
	return search->first + (order < PF_ORDER_LAST / 2 ? order : PF_ORDER_LAST - order);
}

/* Index of the next rule to test, or NO_RULE if the search is over, or has failed, or does not go
 * on since skip steps are faster. The rule before has not matched, or was taken. */
__global __u32 next_candidate(struct pf_scratch *s)
{
	struct pf_loop loop = { .s = s };
	struct pf_tree_search *search;
	struct pf_chunk *first;

	if (!s)
		return NO_RULE;
	search = &s->search;
	search->chunks = pf_copy(s->generation) * PF_CHUNKS;
	first = chunk_at(search, 0);
	if (!first) {
		search->at = SEARCH_FAILED;
		return NO_RULE;
	}
	if (search->at == SEARCH_SUPERBLOCK)
		enter_superblock(s, first);
	if (search->at == SEARCH_LINE && search->rule >= search->rules)
		go_to_tree(search, search->tree + 1);
	if (search->at >= SEARCH_OVER)
		return NO_RULE;
	search->candidate = NO_RULE;
	if (!look_at_nodes(search, first, STEPS_AT_ONCE))
		bpf_loop(search->steps / STEPS_A_ROUND + 1, look_at_more_nodes, &loop, 0);
	if (search->candidate != NO_RULE)
		return index_of(search, search->candidate);
	/* who made the tree set knows how long a search is at most */
	if (search->at != SEARCH_OVER)
		search->at = SEARCH_FAILED;
	return NO_RULE;
}

/* The first of the candidates that are left, or the rule behind their superblock. */
__global __u32 nearest_candidate(struct pf_scratch *s)
{
	const struct pf_candidates *candidates;
	__u64 next, nearest, index;

	if (!s)
		return NO_RULE;
	candidates = &s->search.candidates;
	next = s->test.next;
	nearest = candidates->end;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < PF_CANDIDATES && i < candidates->count; i++) {
		index = candidates->index[i];
		/* without a jump, as in child_of */
		nearest += (index - nearest) * (is_less(index, nearest) & ~is_less(index, next));
	}
	return nearest;
}

/* The candidate matches: what gives way to it need not be asked. */
__inline void take_candidate(struct pf_tree_search *search)
{
	search->best = search->candidate;
	go_to_tree(search, search->tree + 1);
}

/* Whether trees may find what decides about the packet: they know nothing of fragments, and where
 * each rule that matches is logged it must be met. */
__inline bool is_searched_for(const struct pf_scratch *s)
{
	return s->test.evaluator == PF_EVALUATOR_COMPILED &&
	       s->pd.virtual_protocol == s->pd.protocol &&
	       !(s->test.log & PF_RULE_LOG_MATCHES);
}

#endif /* PF_SEARCH_H */
