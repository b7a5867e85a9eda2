/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The compiled evaluator: of a stretch of rules that do nothing but decide, the one that does is sought in trees,
 * in time that hardly grows with their number (abi/forest.h says what stands where).
 *
 * A search hands out one rule after the other whose box has the packet, and the walk tests it as any other if its box
 * does not say all that it asks, such as tables or owners. A tree is through once a rule of it has matched, or those left
 * in the leaf give way to the best so far; the search is over when that is true of all trees.
 */
#ifndef PF_SEARCH_H
#define PF_SEARCH_H

#include "kern.h"
#include "scratch.h"

/* Made to the measure of their rule set. What can be mapped begins with a page, so that a cell is one cache line; other
 * arrays have 16 bytes in front. */
struct cells_of_one_set {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_cell);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, struct cells_of_one_set);
} forests SEC(".maps");

#define NO_RULE		(~0u)

/* what the cell in hand is */
enum {
	SEARCH_ROOTS,			/* has the place of the tree in hand */
	SEARCH_NODE,
	SEARCH_LINE,
	SEARCH_OVER,
	SEARCH_FAILED,
};

__inline void *forests_of(__u32 generation)
{
	__u32 index = generation & 1;

	return bpf_map_lookup_elem(&forests, &index);
}

/* Goes to a tree. Returns 1 if there are no more. */
__inline int go_to_tree(struct pf_tree_search *search, __u32 tree)
{
	search->tree = tree;
	search->cell = search->forest + (2 + 2 * tree) / PF_CELL_WORDS;
	search->at = tree < search->trees ? SEARCH_ROOTS : SEARCH_OVER;
	return search->at == SEARCH_OVER;
}

/* A function of its own, because clang describes a struct in BTF that is an argument, but not one that only the
 * maps in a map of maps have. */
static __attribute__((noinline)) int enter_tree(struct pf_tree_search *search, const struct pf_cell *cell)
{
	__u32 word = (2 + 2 * search->tree) & (PF_CELL_WORDS - 2);

	/* the trees behind it have nothing better */
	if (cell->word[word + 1] >= search->best) {
		search->at = SEARCH_OVER;
		return 1;
	}
	search->cell = cell->word[word];
	search->at = SEARCH_NODE;
	return 0;
}

/* How far behind a node the cell is that a value leads to. */
__inline __u32 child_of(const struct pf_cell *cell, __u64 value)
{
	__u32 cuts = cell->word[1] >> 8 & 0xff;
	__u64 passed = 0;

	/* the sign of what is less, for there is no comparison without a jump */
#pragma unroll
	for (int i = 0; i < PF_CELL_CUTS; i++)
		passed += ((__u64)cell->word[2 + i] - 1 - value) >> 63;
	return cell->word[0] + min((__u32)passed, cuts);
}

/* Goes to the cell that a node leads to, or to the first rules of a leaf. Returns 1 if it has none in the last tree. */
__inline int descend(struct pf_tree_search *search, const struct pf_cell *cell)
{
	__u32 axis = cell->word[1] & 0xff;

	if (axis != PF_AXIS_LEAF) {
		search->cell += child_of(cell, search->point[axis & (PF_AXES - 1)]);
		return 0;
	}
	search->cell += cell->word[0];
	search->rule = 0;
	search->rules = cell->word[1] >> 16;
	search->at = SEARCH_LINE;
	return search->rules ? 0 : go_to_tree(search, search->tree + 1);
}

__inline bool between(__u32 value, __u32 low, __u32 high)
{
	return value >= low && value <= high;
}

/* Ports, protocol and interface, which are alike in both families. */
__inline bool has_rest(const __u32 *box, const __u32 *point)
{
	return between(point[0], box[0] & 0xffff, box[0] >> 16) &&
	       between(point[1], box[1] & 0xffff, box[1] >> 16) &&
	       between(point[2], box[2] & 0xff, box[2] >> 8 & 0xff) &&
	       between(point[3], box[2] >> 16 & 0xff, box[2] >> 24);
}

__inline bool has_inet(const __u32 *box, const __u32 *point)
{
	return between(point[0], box[0], box[1]) && between(point[1], box[2], box[3]) &&
	       has_rest(box + 4, point + 2);
}

__inline bool same_prefix(const __u32 *one, const __u32 *other, __u32 bits)
{
	__u64 high = (__u64)(one[0] ^ other[0]) << 32 | (one[1] ^ other[1]);
	__u64 low = (__u64)(one[2] ^ other[2]) << 32 | (one[3] ^ other[3]);

	if (!bits)
		return true;
	if (bits <= 64)
		return !(high >> ((64 - bits) & 63));
	return !high && !(low >> ((128 - bits) & 63));
}

__inline bool has_inet6(const __u32 *box, const __u32 *point)
{
	return same_prefix(box, point, box[11] & 0xff) &&
	       same_prefix(box + 4, point + 4, box[11] >> 8 & 0xff) && has_rest(box + 8, point + 8);
}

/* Returns 1 with the first rule of a line whose box has the packet, and goes on behind it the next time. */
__inline int look_at_rules(struct pf_tree_search *search, const struct pf_cell *cell)
{
	__u32 looked = search->rule;

#pragma unroll
	for (__u32 half = 0; half < 2; half++) {
		const __u32 *box = &cell->word[half * PF_CELL_WORDS / 2];
		__u32 order = search->six ? cell->word[PF_CELL_WORDS - 1] : box[7];

		if (search->six ? half : half < (looked & 1))
			continue;
		if (search->rule >= search->rules || order >= search->best)
			return go_to_tree(search, search->tree + 1);
		search->rule++;
		if (search->six ? has_inet6(box, search->point) : has_inet(box, search->point)) {
			search->cell += search->six || half;
			search->candidate = order;
			return 1;
		}
	}
	search->cell++;
	return search->rule < search->rules ? 0 : go_to_tree(search, search->tree + 1);
}

/* Cells that a step of bpf_loop looks at: where returns are guarded, a call costs more than a cell. */
#define CELLS_A_STEP	8

static int look_at_cells(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_tree_search *search = &loop->s->search;
	struct pf_cell *cell;
	__u32 place;
	int ends;

#pragma clang loop unroll(disable)
	for (int n = 0; n < CELLS_A_STEP; n++) {
		place = search->cell;
		cell = bpf_map_lookup_elem(loop->map, &place);
		if (!cell) {
			search->at = SEARCH_FAILED;
			return 1;
		}
		if (search->at == SEARCH_ROOTS)
			ends = enter_tree(search, cell);
		else if (search->at == SEARCH_NODE)
			ends = descend(search, cell);
		else
			ends = look_at_rules(search, cell);
		if (ends)
			return 1;
	}
	return 0;
}

/* The index of the rule with this order, as cells have it. */
__inline __u32 index_of(__u32 order)
{
	order >>= PF_ORDER_SHIFT;
	return order < PF_ORDER_LAST / 2 ? order : PF_ORDER_LAST - order;
}

/* Whether the box of the candidate says all that its rule asks: it matches. */
__inline bool is_certain(const struct pf_tree_search *search)
{
	return search->goes_on && !(search->candidate & PF_ORDER_ASKS_MORE);
}

/* Index of the next rule to test, or NO_RULE if the search is over, or has failed. */
__global __u32 next_candidate(struct pf_scratch *s)
{
	struct pf_loop loop = { .s = s };
	struct pf_tree_search *search;

	if (!s)
		return NO_RULE;
	search = &s->search;
	/* the last candidate did not match */
	if (search->at == SEARCH_LINE && search->rule >= search->rules)
		go_to_tree(search, search->tree + 1);
	if (search->at >= SEARCH_OVER)
		return NO_RULE;
	loop.map = forests_of(s->generation);
	search->candidate = NO_RULE;
	if (loop.map)
		bpf_loop(search->steps / CELLS_A_STEP + 1, look_at_cells, &loop, 0);
	if (search->candidate != NO_RULE)
		return index_of(search->candidate);
	/* who made the forest knows how long a search is at most */
	if (search->at != SEARCH_OVER)
		search->at = SEARCH_FAILED;
	return NO_RULE;
}

/* The candidate matches: what gives way to it need not be asked. */
__inline void take_candidate(struct pf_tree_search *search)
{
	search->best = search->candidate;
	go_to_tree(search, search->tree + 1);
}

/* Where the packet is in the space that the trees cut. */
__inline void find_point(struct pf_scratch *s)
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
}

__inline __u32 kind_of_packet(const struct pf_scratch *s)
{
	switch (s->pd.virtual_protocol) {
	case IPPROTO_TCP:
		return (s->pd.tcp.flags & (TH_SYN | TH_ACK)) == TH_SYN ? PF_FOREST_OF_TCP
								       : PF_FOREST_OF_TCP_FOLLOWS;
	case IPPROTO_UDP:
		return PF_FOREST_OF_UDP;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return s->test.icmp_reply ? PF_FOREST_OF_ICMP_FOLLOWS : PF_FOREST_OF_OTHER;
	}
	return PF_FOREST_OF_OTHER;
}

/* Begins to search the stretch whose cells are at `segment`. Returns 0 if it is to be walked. */
__global int begin_search(struct pf_scratch *s, __u32 segment)
{
	struct pf_tree_search *search;
	struct pf_cell *cell;
	__u32 forest;
	void *map;

	if (!s)
		return 0;
	search = &s->search;
	search->goes_on = 1;
	search->at = SEARCH_FAILED;
	search->best = NO_RULE;
	search->six = s->pd.family == AF_INET6;
	map = forests_of(s->generation);
	if (!map)
		return 1;
	segment += s->pd.direction == PF_OUT;
	cell = bpf_map_lookup_elem(map, &segment);
	if (!cell)
		return 1;
	search->end = cell->word[0];
	forest = 1 + kind_of_packet(s) + (search->six ? PF_FOREST_OF_INET6 : 0);
	search->forest = cell->word[forest & (PF_CELL_WORDS - 1)];
	if (search->forest == PF_FOREST_WALK) {
		search->goes_on = 0;
		return 0;
	}
	if (search->forest == PF_FOREST_NONE) {
		search->at = SEARCH_OVER;
		return 1;
	}
	cell = bpf_map_lookup_elem(map, &search->forest);
	if (!cell)
		return 1;
	search->trees = cell->word[0];
	search->steps = cell->word[1];
	find_point(s);
	go_to_tree(search, 0);
	return 1;
}

/* Whether trees may find what decides about the packet: they know nothing of fragments, and where each rule that
 * matches is logged it must be met. */
__inline bool is_searched_for(const struct pf_scratch *s)
{
	return s->test.evaluator == PF_EVALUATOR_COMPILED &&
	       s->pd.virtual_protocol == s->pd.protocol &&
	       !(s->test.log & PF_RULE_LOG_MATCHES);
}

/* The search is over: the best rule decides, and the walk goes on behind the stretch. Returns 1 if that ends
 * the walk, too. */
__inline int end_search(struct pf_test_ctx *test, struct pf_tree_search *search)
{
	search->goes_on = 0;
	if (search->at == SEARCH_FAILED) {
		test->failed = 1;
		return 1;
	}
	test->next = search->end;
	if (search->best == NO_RULE)
		return 0;
	test->decided = index_of(search->best);
	test->decided_by = test->caller;
	test->over = search->best >> PF_ORDER_SHIFT < PF_ORDER_LAST / 2;
	return test->over;
}

#endif /* PF_SEARCH_H */
