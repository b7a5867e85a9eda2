/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * What is known about the packet in hand: one value per CPU, because the stack has but 512 bytes.
 *
 * Nothing in it outlives the packet, and nothing here runs nested: a packet that we send ourselves
 * is handed to the kernel by the return code, after we are done. Only a copy that we send besides
 * comes by the programs while we are at work; its mark keeps them from this value.
 */
#ifndef PF_SCRATCH_H
#define PF_SCRATCH_H

#include "kern.h"
#include "wire.h"

struct pf_addr {
	union {
		__u8 bytes[16];
		__be32 word[4];
		__u64 half[2];
	};
};

/* stands in for the protocol of a fragment, which no protocol's rules may match */
#define PF_VPROTO_FRAGMENT	256

enum pf_bad_options {
	PF_OPT_ROUTER_ALERT = 1 << 0,
	PF_OPT_JUMBO = 1 << 1,
	PF_OPT_OTHER = 1 << 2,
};

/* A packet, or one quoted by an ICMP error. Offsets count from the outer IP header. */
struct pf_pdesc {
	struct pf_addr source;		/* as translated so far, as the next and the ports */
	struct pf_addr destination;
	struct pf_addr original_source;	/* as received, as the next and the ports */
	struct pf_addr original_destination;
	__u32 ip;			/* where in the frame the outer IP header is */
	__u32 limit;			/* bytes from there that belong to the packet */
	__u32 offset;			/* of the protocol's header */
	__u32 ip_header;		/* length of the IP header with its options */
	__u32 length;			/* of the IP packet, from its header on */
	__u32 payload;			/* bytes behind the TCP header */
	__u32 fragment;			/* offset of the IPv6 fragment header, 0 for none */
	__u32 jumbo;			/* length of an IPv6 jumbogram */
	__u32 kernel_header;		/* bytes that Linux takes off when it cuts a GSO packet */
	__u32 rdomain;			/* of the interface it is on */
	__be16 ip_offset;		/* IPv4: flags and fragment offset */
	__u16 virtual_protocol;		/* protocol, or PF_VPROTO_FRAGMENT */
	__be16 source_port;		/* for ICMP queries one is the id and the other the type */
	__be16 destination_port;
	__be16 original_source_port;
	__be16 original_destination_port;
	__u8 family;
	__u8 protocol;
	__u8 direction;
	__u8 tos;
	__u8 ttl;
	__u8 bad_options;		/* pf_bad_options */
	__u8 window_scale;		/* of a SYN: as pf_peer.wscale */
	__u8 non_initial;		/* outer packet is an IPv4 fragment but the first */
	__u8 usual_options;		/* TCP: none, or a timestamp alone; ordinary.h only */
	union {
		struct tcp tcp;
		struct udp udp;
		struct icmp icmp;
		struct sctp sctp;
	};
};

/* Of IPv4 an address is the first word, and the others are zero. */
__inline void set_inet_ends(struct pf_pdesc *pd, __be32 source, __be32 destination)
{
	pd->source.half[0] = half_of_words(source, 0);
	pd->destination.half[0] = half_of_words(destination, 0);
	pd->source.half[1] = pd->destination.half[1] = 0;
}

/* Whether rules, or a state, have translated it. */
__inline bool has_new_ends(const struct pf_pdesc *pd)
{
	return pd->source.half[0] != pd->original_source.half[0] ||
	       pd->source.half[1] != pd->original_source.half[1] ||
	       pd->destination.half[0] != pd->original_destination.half[0] ||
	       pd->destination.half[1] != pd->original_destination.half[1] ||
	       pd->source_port != pd->original_source_port ||
	       pd->destination_port != pd->original_destination_port;
}

/* Whether rules give it other addresses only: the ports of SCTP, which are never 0 if they are
 * read, belong to an association that may have more addresses, as in FreeBSD. Where they are not
 * read, they are numbers like those of any other protocol: what a rule has made of them is no port
 * of the packet. */
__inline bool keeps_ports(const struct pf_pdesc *pd)
{
	return pd->protocol == IPPROTO_SCTP && pd->original_destination_port;
}

/* What rules or a state want done with a packet that passes */
struct pf_rule_actions {
	__u32 flags;			/* PF_STATE_NO_DF, _SET_TOS, _RANDOM_ID, _SET_PRIO */
	__u16 max_mss;
	__u16 tag;
	__u16 max_pkt_size;
	__u8 min_ttl;
	__u8 set_tos;
	__u8 set_prio[2];
	__u16 queue[2];			/* as pf_rule.queue */
	__u16 rtable;			/* as pf_rule.rtable */
	__u16 delay;			/* as pf_rule.delay */
};

/* The anchor rule that called the rules in hand */
struct pf_caller {
	__u32 index;			/* ~0 for none: the main rule set */
	__u32 slot;
	__s32 number;
	__u32 quick;
};

/* What a walk comes back to behind an anchor rule */
struct pf_frame {
	struct pf_caller caller;
	__u32 end;
};

/* The lists that a packet walks, one after the other: `scrub`, two that translate, then the filter
 * rules */
#define PF_LIST_FILTER	3
#define PF_LISTS	4

/* The walk over the rules */
struct pf_test_ctx {
	struct pf_rule_range lists[PF_LISTS];
	__u32 list;			/* the one that it is in */
	__u32 next;			/* rule to look at */
	__u32 end;			/* one more than the last of its rule set */
	__u32 depth;			/* anchors it is inside of */
	__u32 decided;			/* index of the last rule that matched, ~0 for the default rule */
	struct pf_caller caller;
	struct pf_caller decided_by;	/* who called the rule that matched last */
	__u32 evaluator;
	__u32 log;			/* PF_RULE_LOG*: what rules asked for so far */
	struct pf_rule_actions act;	/* tag: 0 also if no rule has asked for the packet's yet */
	struct pf_rule_actions scrub;	/* what an old `scrub` rule wants, state or not */
	__u8 over;			/* nothing is left to look at */
	__u8 found;			/* the rule that decides was found, and not looked at yet */
	__u8 failed;			/* the walk was given up … */
	__u8 exhausted;			/* … for want of an address or a port */
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 icmp_reply;		/* answers a query, so it makes no state */
	__u8 icmp_error;		/* makes no state either */
	__u8 limited;			/* reason for which a limiter has the packet dropped, or 0 */
	__u8 needs_state;		/* an old rule gave it new ends, or wants its connection followed */
	__u8 asks_fragment;		/* only whether a `scrub` rule wants this fragment left alone: … */
	__u8 leave_fragment;		/* … one does */
	__u8 old_ends;			/* an old rule gave it new ends */
	__u8 retagged;			/* candidates were forgotten so often since it got another tag */
	__u32 source_nodes[PF_NODE_KINDS];	/* held for the state to come, as pf_state.source_nodes */
	__u32 match_count;
	struct pf_match_rule match[PF_MATCH_RULES];
	__u8 match_log_matches[PF_MATCH_RULES];
	struct pf_frame frames[PF_MAX_DEPTH];
};

enum pf_reply_kind {
	PF_REPLY_NONE = 0,
	PF_REPLY_TCP,
	PF_REPLY_ICMP,
	PF_REPLY_ONWARD,		/* synproxy: the SYN that goes on to the server */
	PF_REPLY_JOIN,			/* synproxy: our last acknowledgment to the server */
};

/* The first bytes of an ICMP or ICMPv6 message */
struct pf_icmp_start {
	__u8 type;
	__u8 code;
	__be16 zero;			/* where the checksum is */
	union {
		__be32 word;
		__be16 id;
	};
};

/* What is sent in answer to a packet that was dropped */
struct pf_reply {
	__u32 seq;
	__u32 ack;
	__u8 kind;			/* pf_reply_kind */
	__u8 tcp_flags;
	__u8 ttl;
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 pad[3];
	__u16 window;			/* of TCP */
	__u16 mss;			/* 0: no such option */
	__u32 icmp_rest;		/* the four bytes behind its checksum, host order */
};

/* The rule that answers for the packet: of the walk, or of the state */
struct pf_deciding_rule {
	__u32 slot;
	__s32 number;
	__u32 anchor;			/* id of the anchor it is in */
	__u32 anchor_slot;		/* of the anchor rule that led to it, PF_IDLE_SLOT for none */
	__s32 anchor_number;
	__u8 action;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	__u8 set_prio;			/* of what is sent in answer, if has_prio */
	__u8 has_prio;
	__u16 queue;			/* the same */
};

/* what is to be rewritten of a packet */
enum pf_translated {
	PF_TRANSLATED_NOT = 0,
	PF_TRANSLATED_PACKET,
	PF_TRANSLATED_QUOTED,		/* the packet that it quotes */
};

/* What a pool is asked, and says */
struct pf_choice {
	struct pf_addr source;		/* whose packet it is for */
	struct pf_addr address;		/* the one chosen */
	__u32 interface;		/* by which it is, as pf_pool.interface */
	__u8 family;			/* of the address */
	__u8 packet_family;
	struct pf_addr first;		/* the one chosen first in a search over several */
	__u32 index;			/* of the block to look at */
	__u32 start;			/* where that began */
	struct pf_addr mask;		/* of the block found, as the next and host */
	__u32 weight;
	__u32 load;			/* states of the address found */
	struct pf_addr begin_at;	/* least-states: where the round began */
	__u64 least;			/* … and the least load so far, … */
	__u32 least_states;		/* … the states of the address that has it … */
	__u8 least_host;		/* … and whether its block is a single address */
	__u8 host;
	__u32 probes;			/* ports that may still be tried */
	__u64 draws;			/* where the sequence of random ports is */
	__u16 in_order;			/* ports to try of an address in order, … */
	__u16 at_random;		/* … and then at random */
	__be16 port;			/* the one found */
	__u8 has_port;			/* there is one */
	__u16 lowest;			/* ports that the rule gives */
	__u16 highest;
	__u16 first_range;		/* of a MAP-E set: that the search begins with, … */
	__u16 range;			/* … and the one in hand */
	__u16 low;			/* ports to search */
	__u16 high;
	__u16 begin;
	__u8 use_counter;		/* the pool's, which is in the block to look at */
	__u8 wrapped;
	__u8 found;
	__u8 begun;			/* the search has seen an address */
	__u8 has_first;			/* there is one, so the search goes on */
	__u8 recalled;			/* the source has had the address before */
	__u8 cut_short;			/* some ports of the pool were not tried in order */
};

/* The segment's timestamp, if its state or its rule has a use for it */
struct pf_stamp {
	__be32 value;
	__be32 echo;
	__u32 at;			/* where it stands in the TCP header */
	__u32 offset;			/* for a side that we meet now */
	__u32 slack;			/* tcp.tsdiff */
	__u32 add_to_value;		/* what becomes of it */
	__u32 take_off_echo;
	__u8 count;			/* how many there are */
	__u8 known;			/* it was read */
	__u8 ttl;			/* that the packet gets, 0: its own */
};

/* Of the packet in hand, while the SYN that its cookie stands for takes its place; its descriptor
 * is in `quoted` */
struct pf_waiting {
	__u64 bytes;			/* as the fields of these names below */
	__u32 segments;
	__u32 length;
	__u16 tag;
	__u8 prio;
};

/* What a SYN looks like */
struct pf_syn {
	__u64 options;			/* as pf_fingerprint's, and so on */
	__u16 window;
	__u16 mss;
	__u8 scale;
	__u8 option_count;
	__u8 flags;
	__u8 odd;			/* it has options that no system is known by */
};

/* Those rules of a superblock that may match the packet, of one in which all that match are met:
 * search.h */
#define PF_CANDIDATES	64
struct pf_candidates {
	__u32 from;			/* they are known from this rule on … */
	__u32 end;			/* … to the one before this */
	__u32 count;
	__u32 index[PF_CANDIDATES];	/* in no order */
	__u8 every;			/* they are more, or were not sought: each rule may match */
	__u8 asks;			/* pf_superblock_metadata: they hang on that, too … */
	__u8 unknown;			/* … and nobody had looked at it */
};

/* A search for the rule that decides among many, or for all that may match: search.h */
#define PF_AXES		16
struct pf_tree_search {
	__u32 point[PF_AXES];		/* the packet, on each axis */
	__u32 first;			/* rule of the superblock */
	__u32 end;			/* one more than the last */
	__u32 superblock;			/* its nodes' place */
	__u32 tree_set;			/* its place */
	__u32 trees;			/* how many there are */
	__u32 tree;			/* the one in hand */
	__u32 steps;			/* most nodes to look at */
	__u32 node;			/* the one to look at */
	__u32 line;			/* where the leaf goes on behind it */
	__u32 rule;			/* how many of the leaf's rules were looked at … */
	__u32 rules;			/* … and how many there are */
	__u32 candidate;		/* order of the rule to test, ~0 for none … */
	__u32 index;			/* … and its index */
	__u32 best;			/* the same of the best that matches, ~0 for none */
	__u32 chunks;			/* where those of the generation begin */
	__u8 at;			/* what the node is */
	__u8 six;			/* the packet is IPv6 */
	__u8 goes_on;
	__u8 meets_all;			/* it looks for candidates */
	__u8 unknown;			/* nobody has looked at what its last axis is of: pf_superblock_metadata */
	struct pf_candidates candidates;
};

/* What a walk has met that is counted once it is known that the walk counts: plain.h */
enum pf_visit_kind {
	PF_VISIT_RULE = 0,		/* it was looked at */
	PF_VISIT_MATCH,			/* a table had the address */
	PF_VISIT_NO_MATCH,		/* … or had not */
};

struct pf_visit {
	__u32 slot;
	__u32 kind;			/* pf_visit_kind */
};

/* What the rules say of a packet, asked plainly */
#define PF_VISITS	24
struct pf_plain_walk {
	__u32 known;			/* the walk came to its end … */
	__u32 generation;		/* … among the rules of this one */
	__u32 decided;			/* as pf_test_ctx.decided, and so on */
	struct pf_caller decided_by;
	struct pf_deciding_rule rule;
	__u32 keeps;			/* the rule passes the packet and wants a state of it */
	__u32 asked_table;
	__u32 count;			/* of visits */
	struct pf_visit visit[PF_VISITS];
};

/* What packets have in common that are remembered together: memo.h */
struct pf_memo_key {
	struct pf_addr source;
	struct pf_addr destination;
	__u64 header;			/* both ports; family, protocol, tos and TCP flags */
	__u64 groups;			/* of the interface, … */
	__u64 interface;		/* … its id; its flags, with the direction on top */
	__u64 rules;			/* rdomain; generation */
};

/* Where the entry of a key may be, and what it looks like but for the place: key_table.h */
struct pf_key_spot {
	__u32 line[2];
	__u32 tag;
	__u32 index_mask;
};

/* Where one is */
struct pf_key_entry {
	__u32 line;
	__u32 at;
};

/* A key that is to lead to a new state, and the state to which it leads yet */
struct pf_linking {
	struct pf_state_key key;
	struct pf_state_ref known;
};

/* How frames get to a neighbour: neighbour.h */
struct pf_hop {
	__u32 number;			/* the neighbour's */
	__u32 leaves_by;		/* ifindex; 0: nothing is known of it */
	__u32 interface;		/* its id */
	__u32 confirmed;		/* second when the kernel last sent one so, or would have */
	__u32 left[PF_FORWARDED_MAX];	/* when one of each hook was last left to the kernel */
	__u8 neighbour[6];		/* link address of the neighbour … */
	__u8 own[6];			/* … and ours on its link */
	__u8 express;			/* pf_express */
};

/* Numbers of the ports by which a frame crosses a bridge in XDP */
struct pf_crossed {
	__u32 in;
	__u32 out;
};

/* What a packet was judged by on one side */
struct pf_judged {
	struct pf_state_ref ref;
	__u32 interface;
	__u16 refused;
	__u8 has_state;
	__u8 made;
	__u8 against_state;
	__u8 translated;
};

struct pf_scratch {
	struct pf_outcome outcome;
	struct pf_pdesc pd;
	struct pf_pdesc quoted;		/* packet quoted by an ICMP error */
	struct pf_interface interface;	/* the packet's */
	struct pf_interface received;	/* where a forwarded packet came in */
	struct pf_interface leaving;	/* where an ordinary one will leave */
	struct pf_state_key key;
	struct pf_key_spot spot;	/* of an ordinary packet's key, bound to no interface … */
	__u8 sought;			/* … if anybody has looked */
	struct pf_key_entry entry;	/* of the state that was made of it */
	struct pf_state_ref ref;	/* of the state found or made */
	struct pf_state_key far_key;	/* of the state that translates an ordinary packet: on the other side */
	__u8 known;			/* a state may know the ordinary packet */
	__u8 made;			/* it has made its state: plain.h */
	__u16 refused;			/* reason for which there is none of it, though its rule passes it, or 0 */
	struct pf_state_ref peer;	/* of the state that knows the packet where it leaves */
	struct pf_path path;		/* as that one has noted it */
	struct pf_hop hop;		/* to which it leads */
	struct pf_judged entering;	/* by what a packet in XDP was judged where it came in */
	struct pf_crossed crossed;
	struct pf_linking linking;
	struct pf_state_ref looked_at;	/* the last one that the packet's key led to */
	struct pf_state_ref far;	/* of one that has the packet's key on its far side */
	struct pf_key_entry far_entry;	/* of one that was made of the ordinary packet where it came in … */
	__u8 far_made;			/* … if it was: that is far */
	__u64 first_id;			/* of states made since the packet came */
	struct pf_source_key source_key;	/* of the source node looked for */
	struct pf_addr source_chosen;	/* the address a pool chose for it, … */
	__u32 source_interface;		/* … the interface by which that is … */
	__u8 source_family;		/* … and its family */
	__u32 source_nodes[PF_NODE_KINDS];	/* that count the packet, as pf_state.source_nodes */
	__u32 connected;		/* the connection is established by the packet: node that counts it */
	struct pf_test_ctx test;
	struct pf_tree_search search;
	struct pf_plain_walk plain[2];	/* by direction, out last */
	__u8 counts_later;		/* a plain walk is under way */
	struct pf_memo_key memo_key;
	__u64 memo_hash;
	__u32 memo_at;			/* where the memo of such packets is */
	struct pf_rule_actions act;	/* what is done in the end */
	struct pf_deciding_rule rule;
	struct pf_reply reply;
	struct pf_reply copy;		/* synproxy: what goes to the client besides */
	__u32 match_count;		/* match rules that count with the packet's state */
	struct pf_match_rule match[PF_MATCH_RULES];
	__u32 generation;
	__u32 counted_tables[2];	/* slots, source and destination */
	__u32 now;
	__u32 segments;			/* packets on the wire: 1, or those in a GSO packet */
	__u32 length;			/* of the longest of them, from the IP header on */
	__u64 bytes;			/* IP bytes of all segments */
	__u16 tag;			/* carried by the packet */
	__u8 prio;
	__u8 log_force;			/* a packet dropped for itself is always logged */
	__u8 log_reason;		/* of the records written now, as the next two */
	__u32 owner_uid;		/* who owns the packet's socket, once it was sought */
	__u32 owner_gid;
	__s32 log_anchor_rule;
	__u32 log_anchor;
	__u8 has_state;
	__u8 state_hit;			/* the state was there before the packet */
	__u8 raced;			/* another CPU made the same state first, it may be */
	__u8 too_fast;			/* there is a state, but max-pkt-rate keeps the packet from it */
	__u8 against_state;		/* it goes the other way than the one that made the state */
	__u8 empty_ack;
	__u8 reassembled;		/* it came in fragments */
	__u8 held;			/* a fragment that waits for the others */
	__u32 came_in_by;		/* ifindex, for a forwarded packet on its way out */
	__u8 routed_here;		/* we have sent it to the interface that it leaves by */
	__u8 route;			/* pf_route_kind: of this packet */
	struct pf_addr next_hop;
	__u32 hop_interface;		/* as pf_state.hop_interface, as the next */
	__u8 hop_family;
	__u8 translated;		/* pf_translated */
	__u8 cross_to;			/* family that its state lets it cross to, else 0 */
	__u8 crosses_back;		/* it comes from the far side of its state */
	__u32 leaves_in_fragments;	/* of at most so many bytes, 0 if it leaves whole */
	__u8 in_one_piece;		/* all of its frame is where XDP's programs see it */
	__u8 quote_convertible;		/* an error: all of it but a message that it quotes is */
	__u8 convertible;		/* its ICMP message is known in the other family: as … */
	struct pf_icmp_start converted;	/* … this … */
	struct pf_icmp_start converted_quoted;	/* … and as this what it quotes */
	__u8 rewrite_id;		/* … with its ICMP id, … */
	__u8 icmp_answer;		/* … which is the destination's "port" */
	struct bpf_fib_lookup lookup;	/* a question to the kernel's routing tables */
	struct pf_choice choice;
	__u8 mapped;			/* the mapping of its endpoint is held for it */
	__u32 nat_slot;			/* of the rules that translated it, PF_IDLE_SLOT for none */
	__u32 rdr_slot;
	__u32 last_slot;
	__u8 owner_sought;
	__u8 systems_known;
	__u64 systems;			/* as pf_fingerprint.systems, once they were sought */
	struct pf_syn syn;
	struct tcp tcp_received;	/* the TCP header before we changed it */
	__u32 sequence;			/* for a side whose numbers we choose, if it has one coming */
	__u8 has_sequence;
	struct pf_waiting waiting;
	__u8 uncounted;			/* nobody logs or counts it: its SYN was, or nothing is here */
	__u16 cookie_mss;		/* the SYN in hand was made again from a cookie that says so; 0: it is real */
	__u8 consumed;			/* we took it: what is sent in its place is in reply */
	struct pf_stamp stamp;
	__u32 sack_difference;		/* to take off the blocks of SACK options */
	__u32 quoted_difference;	/* to take off the quoted segment's sequence number */
	__u32 blocks_end;		/* of the SACK option in hand, 0 for none */
	__u32 blocks_next;		/* option behind it */
	__u32 cursor;			/* of loops over bytes, in buffer or in the packet */
	__u32 cursor_end;
	__u32 sum;			/* checksum so far */
	__u8 buffer[128];
	struct pf_entry_stats no_traffic;	/* counters of an entry that had none so far */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);		/* the second is for what a packet causes to be sent meanwhile */
	__type(key, __u32);
	__type(value, struct pf_scratch);
} scratch SEC(".maps");

/* Notes what a plain walk meets, to be counted later. There may be no room: then the walk is
 * none. */
__inline void note_visit(struct pf_scratch *s, __u32 slot, enum pf_visit_kind kind)
{
	struct pf_plain_walk *walk = &s->plain[s->pd.direction == PF_OUT];
	__u32 i = walk->count++;

	if (i >= PF_VISITS)
		return;
	walk->visit[i].slot = slot;
	walk->visit[i].kind = kind;
	if (kind != PF_VISIT_RULE)
		walk->asked_table = 1;
}

/* What loops need besides; on the stack, because only there pointers can be kept. */
struct pf_loop {
	struct __sk_buff *skb;
	struct pf_scratch *s;
	struct pf_pdesc *pd;
	void *map;
};

#endif /* PF_SCRATCH_H */
