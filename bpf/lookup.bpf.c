/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * For `xtask bench --lookup`: the data plane with programs that do nothing but look up the rule
 * that decides, for many packets in a row, and what that is compared with. Packets are headers in a
 * list; a run goes on in it where the one before stopped. crates/testing/src/lookup.rs
 * mirrors the structs.
 */
#include "programs.bpf.c"

#define LOOKUP_PACKETS	65536
#define LOOKUP_BATCH	512	/* in a run */
#define LOOKUP_KEYS	1000

struct lookup_packet {
	struct pf_addr source;
	struct pf_addr destination;
	__be16 source_port;
	__be16 destination_port;
	__u8 family;
	__u8 protocol;
	__u8 tcp_flags;
	__u8 tos;
	__u32 interface;		/* its id */
	__u32 decided;			/* index of the rule, ~0 for none, ~1 for a lookup that failed;
					 * 1 if the table has the source, else 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOOKUP_PACKETS);
	__type(key, __u32);
	__type(value, struct lookup_packet);
} lookup_packets SEC(".maps");

/* the unit */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LOOKUP_KEYS);
	__type(key, struct pf_addr);
	__type(value, __u64);
} lookup_hash SEC(".maps");

struct lookup_order {
	__u32 next;			/* packet */
	__u32 superblock;			/* of the first rule, or slot of the table */
	__u64 found;			/* in lookup_hash */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lookup_order);
} lookup_order SEC(".maps");

#define LOOKUP_FAILED	(~1u)

enum lookup_what {
	LOOKUP_NOTHING,			/* what each of the others does besides */
	LOOKUP_HASH,
	LOOKUP_TREES,			/* rules whose box has the packet are taken to match */
	LOOKUP_WALK,			/* as plain.h does it, but for its memos */
	LOOKUP_TABLE,			/* of the source in a table */
};

/* As if the packet had been parsed. */
__inline void take_headers(struct pf_scratch *s, const struct lookup_packet *packet)
{
	struct pf_pdesc *pd = &s->pd;

	pd->source = packet->source;
	pd->destination = packet->destination;
	pd->source_port = packet->source_port;
	pd->destination_port = packet->destination_port;
	pd->family = packet->family;
	pd->protocol = pd->virtual_protocol = packet->protocol;
	pd->tcp.flags = packet->tcp_flags;
	pd->tos = packet->tos;
	pd->direction = PF_IN;
	pd->rdomain = 0;
	s->interface.id = packet->interface;
	s->interface.groups = 0;
	s->interface.flags = 0;
}

static int take_next_candidate(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;

	if (next_candidate(s) == NO_RULE)
		return 1;
	take_candidate(&s->search);
	return 0;
}

/* Index of the rule that the trees find. */
__inline __u32 search_trees(struct pf_scratch *s, __u32 superblock)
{
	struct pf_loop loop = { .s = s };

	begin_search(&s->search, superblock);
	if (!take_next_candidate(0, &loop))
		bpf_loop(PF_MAX_RULES, take_next_candidate, &loop, 0);
	if (!s->search.goes_on)		/* it is walked */
		return NO_RULE;
	if (s->search.at == SEARCH_FAILED)
		return LOOKUP_FAILED;
	return s->search.best == NO_RULE ? NO_RULE : index_of(&s->search, s->search.best);
}

__inline __u32 walk(struct pf_scratch *s)
{
	__u32 generation = pf_copy(s->generation);
	struct pf_config *config = pf_config(generation);
	void *rules = bpf_map_lookup_elem(&rulesets, &generation);

	if (!config || !rules)
		return LOOKUP_FAILED;
	walk_plainly(s, &s->plain[0], rules, config);
	return s->test.failed || has_rules_left(&s->test) ? LOOKUP_FAILED : s->test.decided;
}

/* One of the keys in lookup_hash: neighbours in the list have ones that are far apart. */
__inline void make_key(struct pf_addr *key, __u32 place)
{
	__u32 number = (place * 0x9e3779b1u >> 16) * LOOKUP_KEYS >> 16;

	key->word[0] = number;
	key->word[1] = ~number;
	key->word[2] = number << 16;
	key->word[3] = 7;
}

struct lookup_run {
	struct pf_scratch *s;
	struct lookup_order *order;
	enum lookup_what what;
};

static int look_up(__unused __u32 i, void *arg)
{
	struct lookup_run *run = arg;
	struct lookup_order *order = run->order;
	__u32 place = order->next++ % LOOKUP_PACKETS;
	struct lookup_packet *packet = bpf_map_lookup_elem(&lookup_packets, &place);
	struct pf_addr key;
	__u64 *value;

	if (!packet)
		return 1;
	take_headers(run->s, packet);
	switch (run->what) {
	case LOOKUP_NOTHING:
		break;
	case LOOKUP_HASH:
		make_key(&key, place);
		value = bpf_map_lookup_elem(&lookup_hash, &key);
		if (value)
			order->found += *value;
		break;
	case LOOKUP_TREES:
		packet->decided = search_trees(run->s, order->superblock);
		break;
	case LOOKUP_WALK:
		packet->decided = walk(run->s);
		break;
	case LOOKUP_TABLE:
		packet->decided = match_table(run->s, order->superblock, &run->s->pd.source);
	}
	return 0;
}

__inline int run_lookups(enum lookup_what what)
{
	__u32 zero = 0;
	struct lookup_run run = { .what = what };
	struct pf_status *status = pf_status();

	run.s = bpf_map_lookup_elem(&scratch, &zero);
	run.order = bpf_map_lookup_elem(&lookup_order, &zero);
	if (!run.s || !run.order || !status)
		return 0;
	run.s->generation = status->generation;
	run.s->counts_later = false;
	return bpf_loop(LOOKUP_BATCH, look_up, &run, 0);
}

SEC("tc")
int lookup_nothing(__unused struct __sk_buff *skb)
{
	return run_lookups(LOOKUP_NOTHING);
}

SEC("tc")
int lookup_one_key(__unused struct __sk_buff *skb)
{
	return run_lookups(LOOKUP_HASH);
}

SEC("tc")
int lookup_in_trees(__unused struct __sk_buff *skb)
{
	return run_lookups(LOOKUP_TREES);
}

SEC("tc")
int lookup_plainly(__unused struct __sk_buff *skb)
{
	return run_lookups(LOOKUP_WALK);
}

SEC("tc")
int lookup_in_table(__unused struct __sk_buff *skb)
{
	return run_lookups(LOOKUP_TABLE);
}
