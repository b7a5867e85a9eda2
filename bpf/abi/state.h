/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Part of the ABI: states, and the sources that rules track. */
#ifndef SKIPSTEP_ABI_STATE_H
#define SKIPSTEP_ABI_STATE_H

/* ---- states -------------------------------------------------------------------------------- */

/* Kinds of states that share a key space. */
enum pf_made {
	PF_MADE_PLAIN = 0,		/* a state with this key only */
	/* direction in which a translated state with two keys was created; also of a state whose
	 * key equals that of a plain state of the other direction */
	PF_MADE_IN = PF_IN,
	PF_MADE_OUT = PF_OUT,
	/* a state that crosses families: the key on its maker's side */
	PF_MADE_NEAR = 3,
	/* the af-to peer key, on the other side. Inbound states that cross have both */
	PF_MADE_FAR = 4,
};

/* Index 0 is the source of inbound and the destination of outbound packets, so a reply has the same
 * key. For ICMP queries one port is the id, the other the type. */
struct pf_state_key {
	__u8 address[2][16];
	__be16 port[2];
	/* interface id of an if-bound state, 0 for a floating one */
	__u32 interface;
	__u32 rdomain;			/* of the interface where the packets are */
	__u8 made;			/* pf_made */
	__u8 family;
	__u8 protocol;
	__u8 pad;
};

#define PF_KEY_WORDS	12		/* 32-bit words of a key */
#define PF_KEY_ENTRIES	16		/* entries of a bucket */
#define PF_KEY_CLAIMED	0x80000000u	/* the entry is claimed and not valid yet */
#define PF_NO_PLACE	0xffffffffu

/* Value of the state_keys map: a bucket. An entry of 0 is free. Its lowest bits are the state's
 * index plus 1, the bits up to PF_KEY_CLAIMED are a tag from the key's hash. The entries are one
 * cache line, the prefetch hints the next. */
struct pf_key_line {
	__u32 entry[PF_KEY_ENTRIES];
	/* Index plus 1 of the egress state of an entry's packets; 0: unknown. A prefetch hint: a
	 * stale value costs a cache miss and nothing else. */
	__u32 peer[PF_KEY_ENTRIES];
};

/* Parameters of the keyed hash of keys. */
struct pf_key_hash {
	__u32 secret[PF_KEY_WORDS];	/* random, drawn when the maps are created */
	__u32 lines;			/* buckets of the state_keys map */
	__u32 index_mask;		/* bits of an entry that are the index plus 1 */
};

/* The index of a state, with a check that it is still the same state. */
struct pf_state_ref {
	__u32 index;
	__u32 serial;
};

struct pf_peer {
	__u32 seqlo;			/* highest sequence number seen from this side */
	__u32 seqhi;			/* highest sequence number that the other side allows */
	__u32 seqdiff;			/* number added to this side's sequence numbers */
	__u16 max_win;			/* largest window, unscaled */
	__u8 state;			/* pf_tcp_state or pf_other_state */
	__u8 wscale;			/* low 4 bits: window shift; PF_WSCALE_* */
};

#define PF_WSCALE_MASK	0x0f
#define PF_WSCALE_FLAG	0x80		/* this side's SYN offered scaling */

enum pf_state_flags {			/* the low ones have OpenBSD's PFSTATE_* values */
	PF_STATE_ALLOW_OPTS = 0x0001,
	PF_STATE_SLOPPY = 0x0002,
	PF_STATE_PFLOW = 0x0004,
	PF_STATE_NO_SYNC = 0x0008,
	PF_STATE_NO_DF = 0x0020,
	PF_STATE_SET_TOS = 0x0040,
	PF_STATE_RANDOM_ID = 0x0080,
	PF_STATE_REASSEMBLE_TCP = 0x0100,
	PF_STATE_SET_PRIO = 0x0200,
	/* ours alone */
	PF_STATE_MAX_PKT_RATE = 0x10000,	/* its rule has max-pkt-rate */
	PF_STATE_CONNECTED = 0x20000,	/* counts among the connections of its source */
	PF_STATE_MAPPED = 0x40000,	/* has a reference to the endpoint mapping of its maker */
	/* fast-path eligible: packets are only judged, counted and translated */
	PF_STATE_SIMPLE = 0x80000,
	PF_STATE_EXTENSION = 0x100000,	/* has a state extension */
	PF_STATE_SOCKET = 0x200000,	/* a connected socket of this host got its packets */
};

enum pf_state_key_side {
	PF_WIRE = 0,
	PF_STACK = 1,
};

enum pf_log_flags {			/* the log options of a rule that its states keep */
	PF_LOG_ALL = 1 << 0,		/* each packet, not only the first */
	PF_LOG_USER = 1 << 1,
};

/* A match rule whose counters rise with those of the state. */
struct pf_match_rule {
	__u32 slot;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	__u8 action;			/* pf_action: legacy rules count like match rules */
	__u8 pad;
};

enum pf_node_kind {			/* the purposes of a source node */
	PF_NODE_TRACK = 0,		/* limits */
	PF_NODE_NAT,			/* sticky-address of nat-to, and so on */
	PF_NODE_RDR,
	PF_NODE_ROUTE,
	PF_NODE_KINDS,
};

/* Timeouts of closed states. */
#define PF_TIMEOUT_PURGE	0xfd	/* the next sweep removes it */
/* the same; a new state has its key, so no lookup finds it */
#define PF_TIMEOUT_DETACHED	0xfe
#define PF_TIMEOUT_UNLINKED	0xff	/* it is being removed; no CPU may use it */

/* The timestamps of a side under `reassemble tcp`; values of OpenBSD's PFSS_*. */
enum pf_scrub_flags {
	PF_SCRUB_TIMESTAMP = 0x01,	/* its SYN had a timestamp: timestamps are modulated */
	PF_SCRUB_PAWS = 0x10,		/* it also echoed one: timestamps are checked */
	PF_SCRUB_PAWS_IDLED = 0x20,	/* it was silent for too long: no longer checked */
	PF_SCRUB_DATA_TS = 0x40,	/* its first data had a timestamp */
	PF_SCRUB_DATA_NO_TS = 0x80,	/* its first data had no timestamp */
};

struct pf_scrub {
	__u32 offset;			/* number added to its timestamps */
	__u32 value;			/* its latest timestamp */
	__u32 first;			/* its first timestamp */
	__u32 echo;			/* the latest timestamp that it echoed */
	__u32 last;			/* second of the latest timestamp */
	__u16 flags;			/* pf_scrub_flags */
	__u8 ttl;			/* highest of its packets, which all of them get */
	__u8 present;
};

/* The frames that XDP can send from the driver of another device: express.h. */
enum pf_express {
	PF_EXPRESS_NOT = 0,
	PF_EXPRESS_SHORT,		/* frames in one piece */
	PF_EXPRESS_ANY,
};

/* The cached route of a state: how the kernel forwarded its packets not long ago. See path.h. */
struct pf_path {
	__u32 came_in_by;		/* ifindex where the packets came in */
	/* number of their adjacency (neighbour.h); 0: they do not follow the routes */
	__u32 hop;
	__u32 second;			/* second of the note; 0: no cached route */
	__u32 epoch;			/* number of rules and routes at that second */
	__u16 mtu;
	__u8 tos;			/* of the noted packet, because a route may depend on it */
	__u8 pad;
};

/* Four cache lines. Where they come in, most packets need three of them, and the last one only for
 * translation. Where they leave, they need the first two. Fields that few states have are in the
 * state extension. */
struct pf_state {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 serial;			/* rises at each reuse of the index; odd while in use */
	__u32 flags;			/* pf_state_flags */
	__u8 timeout;			/* pf_timeout */
	__u8 direction;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	/* second of the last accepted packet, from which the timeout runs */
	__u32 expire;
	__u32 rule_slot;
	struct pf_state_ref peer;	/* the egress state of its packets; serial 0: none */
	struct pf_path path;		/* cached route of the packets that leave */
	/* of the anchor rule that called the rule; PF_IDLE_SLOT for none */
	__u32 anchor_slot;
	__u64 id;

	struct pf_peer src;		/* the side that created the state */
	struct pf_peer dst;
	__u64 packets[2];		/* with the state's direction, against it */
	__u64 bytes[2];

	struct pf_state_key key[2];	/* wire, stack */
	__u8 set_prio[2];
	__u8 set_tos;
	__u8 min_ttl;
	__u16 queue[2];
	__u32 creation;
	__u16 max_mss;
	__u16 tag;
	/* destination and source of the first frame, if created on a port of a bridge; else zero */
	__u8 stations[2][6];
	__u8 pad[4];
};

/* The state extension (extension.h): fields that few states have. Unused fields are zero. */
struct pf_extension {
	struct pf_match_rule match[PF_MATCH_RULES];
	__u32 match_count;
	/* slot of the rule whose pool chose the source; counts states for least-states */
	__u32 nat_slot;
	__u32 rdr_slot;			/* the same of the destination */
	/* id of the interface where next_hop is; 0: the routes decide */
	__u32 hop_interface;
	__u8 next_hop[16];		/* zero with hop_interface: each packet's destination */
	/* indexes in the source_nodes map plus 1; 0: none */
	__u32 source_nodes[PF_NODE_KINDS];
	struct pf_scrub scrub[2];	/* of src, of dst */
	/* the next state with the same af-to peer key; serial 0: none */
	struct pf_state_ref next_far;
	struct pf_limited limited[PF_LIMITER_KINDS];
	__u32 ifindex_in;		/* pflow: where the first packet came in */
	__u32 ifindex_out;		/* pflow: where a packet left */
	__u16 max_pkt_size;		/* longer packets are dropped; 0: no limit */
	__u16 proxy_mss;		/* synproxy: MSS that both sides support */
	/* as pf_rule.rtable, for packets with the state's direction */
	__u16 rtable;
	__u16 delay;			/* ms until the packets may leave */
	__u8 route;			/* pf_route_kind */
	__u8 hop_family;		/* of next_hop */
	__u8 pad[6];
};

/* A state and its extension, as pfctl -L restores them. */
struct pf_kept_state {
	struct pf_state state;
	struct pf_extension extension;		/* if the state has PF_STATE_ANNEX */
};

/* ---- sources ------------------------------------------------------------------------------- */

/* A source that a rule, or a pool of the rule, remembers. Each node belongs to one rule, with
 * `source-track global`, too, as in OpenBSD. */
struct pf_source_key {
	__u32 rule_slot;
	__u8 kind;			/* pf_node_kind */
	__u8 family;
	__u8 pad[2];
	__u8 address[16];
};

enum pf_node_use {
	PF_NODE_FREE = 0,
	PF_NODE_USED = 1,
	/* by pfctl: no lookup finds it, and its last state frees the entry */
	PF_NODE_DROPPED = 2,
};

struct pf_source_node {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 use;			/* pf_node_use */
	struct pf_source_key key;
	__u64 rate;			/* of connections, in the format of rate.h */
	__u64 packets[2];		/* with the direction of their states, against it */
	__u64 bytes[2];
	__u32 states;			/* states now */
	__u32 connections;		/* those of the states that were established */
	__u32 creation;
	__u32 expire;			/* second at which it is removed if it has no states */
	__u8 chosen[16];		/* address that a pool chose; zero for none */
	__u32 interface;		/* of a next hop: as pf_extension.hop_interface */
	__u8 chosen_family;
	__u8 pad[3];
	/* number of the last sweep that removed a state of it; 0 for none */
	__u32 swept;
	__u32 pad_end;
	__u64 oldest;			/* id of the oldest state that this sweep removed */
};

/* `overload <table> flush`: a source whose states end. */
struct pf_flush {
	__u8 address[16];		/* address of the source */
	/* slot of the rule whose states end; PF_IDLE_SLOT: states of all rules */
	__u32 rule_slot;
	__u8 family;
	__u8 side;			/* index of the source in a state key */
	__u8 pad[2];
};

struct pf_flushed {
	__u64 before;			/* states with lower ids end */
	__u32 number;			/* of the flush, ascending */
	__u32 pad;
};

/* Argument of the pf_drop_source program. */
struct pf_source_ref {
	__u32 index;
	__u32 pad;
	struct pf_source_key key;	/* key that the node must have */
};

#endif /* SKIPSTEP_ABI_STATE_H */
