/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: states, and the sources that rules track. */
#ifndef SKIPSTEP_ABI_STATE_H
#define SKIPSTEP_ABI_STATE_H

/* ---- states -------------------------------------------------------------------------------- */

/* What a state's key leads to */
enum pf_made {
	PF_MADE_PLAIN = 0,		/* a state that has but this one */
	PF_MADE_IN = PF_IN,		/* a translated one of two keys, made in this direction; or one
					 * whose key is that of a plain state made in the other */
	PF_MADE_OUT = PF_OUT,
	PF_MADE_NEAR = 3,		/* one whose packets cross to the other family: on the side of its
					 * maker … */
	PF_MADE_FAR = 4,		/* … and on the other. Packets that come in have both */
};

/* Index 0 is the source of inbound and the destination of outbound packets, so that a reply has
 * the key of what it answers. For ICMP queries one port is the id, the other the type. */
struct pf_state_key {
	__u8 address[2][16];
	__be16 port[2];
	__u32 interface;		/* the id of an if-bound state's interface, 0 for floating ones */
	__u32 rdomain;			/* of the interface where its packets are */
	__u8 made;			/* pf_made */
	__u8 family;
	__u8 protocol;
	__u8 pad;
};

#define PF_KEY_WORDS	12		/* of 32 bits, in a key */
#define PF_KEY_ENTRIES	16		/* in a line */
#define PF_KEY_CLAIMED	0x80000000u	/* set in an entry that does not hold yet */
#define PF_NO_PLACE	0xffffffffu

/* value of the state_keys map: entries for keys; 0: free. The lowest bits are the state's place
 * plus 1, those between them and PF_KEY_CLAIMED from the hash of the key. They are one line of the
 * cache, and what goes with them is the next. */
struct pf_key_line {
	__u32 entry[PF_KEY_ENTRIES];
	/* the place plus 1 of the state that knows packets of an entry's where they leave; 0: not
	 * known. Who believes it must not need it to be right. */
	__u32 onward[PF_KEY_ENTRIES];
};

/* how keys are hashed */
struct pf_key_hash {
	__u32 secret[PF_KEY_WORDS];	/* drawn by who makes the maps */
	__u32 lines;			/* of the state_keys map */
	__u32 index_mask;		/* bits of an entry that are a place */
};

/* where a state is, and that it still is the one meant */
struct pf_state_ref {
	__u32 index;
	__u32 serial;
};

struct pf_peer {
	__u32 seqlo;			/* highest sequence number seen */
	__u32 seqhi;			/* highest the other side allows */
	__u32 seqdiff;			/* added to this side's sequence numbers */
	__u16 max_win;			/* largest window, unscaled */
	__u8 state;			/* pf_tcp_state or pf_other_state */
	__u8 wscale;			/* low 4 bits the shift; PF_WSCALE_* */
};

#define PF_WSCALE_MASK	0x0f
#define PF_WSCALE_FLAG	0x80		/* this side's SYN offered scaling */

enum pf_state_flags {			/* values of OpenBSD's PFSTATE_* */
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
	PF_STATE_MAX_PKT_RATE = 0x10000,	/* its rule has one */
	PF_STATE_CONNECTED = 0x20000,	/* counts among the connections of its source */
	PF_STATE_MAPPED = 0x40000,	/* holds the mapping of the endpoint that made it */
	PF_STATE_SIMPLE = 0x80000,	/* wants nothing of its packets but to judge, count and translate them */
	PF_STATE_ANNEX = 0x100000,	/* has one */
	PF_STATE_SOCKET = 0x200000,	/* a connected socket of this host got its packets */
};

enum pf_state_key_side {
	PF_WIRE = 0,
	PF_STACK = 1,
};

enum pf_log_flags {			/* what a state remembers of a rule's log options */
	PF_LOG_ALL = 1 << 0,		/* every packet, not only the first */
	PF_LOG_USER = 1 << 1,
};

/* a match rule whose counters rise with those of the state */
struct pf_match_rule {
	__u32 slot;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	__u8 action;			/* pf_action: an old rule counts like a match rule */
	__u8 pad;
};

enum pf_node_kind {			/* what a source is remembered for */
	PF_NODE_TRACK = 0,		/* limits */
	PF_NODE_NAT,			/* sticky-address of these pools */
	PF_NODE_RDR,
	PF_NODE_ROUTE,
	PF_NODE_KINDS,
};

/* timeouts of states that are over */
#define PF_TIMEOUT_PURGE	0xfd	/* the next sweep will remove it */
#define PF_TIMEOUT_DETACHED	0xfe	/* so too; a new state has taken over its key, so nobody sees it */
#define PF_TIMEOUT_UNLINKED	0xff	/* it is being removed: nobody may use it any more */

/* what `reassemble tcp` knows of a side; values of OpenBSD's PFSS_* */
enum pf_scrub_flags {
	PF_SCRUB_TIMESTAMP = 0x01,	/* its SYN had a timestamp: they are modulated */
	PF_SCRUB_PAWS = 0x10,		/* and it echoed the other side's: they are checked */
	PF_SCRUB_PAWS_IDLED = 0x20,	/* not any more: it was silent for too long */
	PF_SCRUB_DATA_TS = 0x40,	/* its first data had a timestamp */
	PF_SCRUB_DATA_NO_TS = 0x80,	/* or none */
};

struct pf_scrub {
	__u32 offset;			/* added to its timestamps */
	__u32 value;			/* its latest timestamp */
	__u32 first;			/* its first */
	__u32 echo;			/* the latest that it echoed */
	__u32 last;			/* second of the latest */
	__u16 flags;			/* pf_scrub_flags */
	__u8 ttl;			/* highest of its packets, which all of them get */
	__u8 present;
};

/* What frames can go to a device straight from the driver of another: express.h */
enum pf_express {
	PF_EXPRESS_NOT = 0,
	PF_EXPRESS_SHORT,		/* those in one piece */
	PF_EXPRESS_ANY,
};

/* How the kernel forwards packets of the state, or did not long ago: path.h */
struct pf_path {
	__u32 came_in_by;		/* ifindex */
	__u32 hop;			/* number of the neighbour that they go to: neighbour.h; 0: elsewhere than routes say */
	__u32 second;			/* when that was; 0: there is no path */
	__u32 epoch;			/* of rules and routes then */
	__u16 mtu;
	__u8 tos;			/* of the packet, which routes may be of */
	__u8 pad;
};

/* Four lines of the cache. Of most packets a state is asked for three of them where they come in,
 * the last only if it translates, and for the first two where they leave. What few states have is
 * in their annexes. */
struct pf_state {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 serial;			/* rises at every reuse of this place; odd while in use */
	__u32 flags;			/* pf_state_flags */
	__u8 timeout;			/* pf_timeout */
	__u8 direction;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	__u32 expire;			/* time of the last accepted packet, from which the timeout runs */
	__u32 rule_slot;
	struct pf_state_ref onward;	/* the state that knows its packets where they leave; serial 0: none */
	struct pf_path path;		/* of its packets on their way out */
	__u32 anchor_slot;		/* of the anchor rule that led to the rule; PF_IDLE_SLOT for none */
	__u64 id;

	struct pf_peer src;		/* who made the state */
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
	__u8 stations[2][6];		/* of one made on a bridge's port: destination and source
					 * of the first packet's frame; else zero */
	__u8 pad[4];
};

/* What few states have: annex.h. Zero where a state has none of it. */
struct pf_annex {
	struct pf_match_rule match[PF_MATCH_RULES];
	__u32 match_count;
	__u32 nat_slot;			/* of the rules whose pools gave the source … */
	__u32 rdr_slot;			/* … and the destination and count the states of an address */
	__u32 hop_interface;		/* id of the one by which next_hop is; 0: as the routes say */
	__u8 next_hop[16];		/* zero by way of hop_interface: the packet's destination */
	__u32 source_nodes[PF_NODE_KINDS];	/* places in the source_nodes map plus 1; 0: none */
	struct pf_scrub scrub[2];	/* of src, of dst */
	struct pf_state_ref next_far;	/* the next state that has its far key; serial 0: none */
	struct pf_limited limited[PF_LIMITER_KINDS];
	__u32 ifindex_in;		/* of one that is reported: where its first packet came in, … */
	__u32 ifindex_out;		/* … and where one left */
	__u16 max_pkt_size;		/* longer packets are dropped; 0: no limit */
	__u16 proxy_mss;		/* synproxy: what both sides can have */
	__u16 rtable;			/* as pf_rule.rtable, for packets with the state's direction */
	__u16 delay;			/* ms that its packets wait before they leave */
	__u8 route;			/* pf_route_kind */
	__u8 hop_family;		/* of next_hop */
	__u8 pad[6];
};

/* What pfctl -L gives back of a state */
struct pf_kept_state {
	struct pf_state state;
	struct pf_annex annex;		/* if the state's flags say that it has one */
};

/* ---- sources ------------------------------------------------------------------------------- */

/* What a rule, or a pool of it, remembers of a source. Nodes are of one rule each, whatever it says
 * behind source-track: so they are in OpenBSD. */
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
	PF_NODE_DROPPED = 2,		/* by pfctl: nobody finds it, and its last state frees the place */
};

struct pf_source_node {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 use;			/* pf_node_use */
	struct pf_source_key key;
	__u64 rate;			/* of connections, as rate.h keeps it */
	__u64 packets[2];		/* with the direction of their states, against it */
	__u64 bytes[2];
	__u32 states;			/* now */
	__u32 connections;		/* of these states that were established */
	__u32 creation;
	__u32 expire;			/* second at which it goes if it has no states */
	__u8 chosen[16];		/* the address that a pool gave it; zero for none */
	__u32 interface;		/* of a next hop: as pf_state.hop_interface */
	__u8 chosen_family;
	__u8 pad[3];
	__u32 swept;			/* number of the sweep that last took a state from it; 0 for none */
	__u32 pad_end;
	__u64 oldest;			/* id of the oldest state that this sweep took */
};

/* `overload <table> flush`: whose states end */
struct pf_flush {
	__u8 address[16];		/* of the source */
	__u32 rule_slot;		/* the states of this rule; PF_IDLE_SLOT: of all */
	__u8 family;
	__u8 side;			/* index in a key where the source is */
	__u8 pad[2];
};

struct pf_flushed {
	__u64 before;			/* states with lower ids end */
	__u32 number;			/* flushes are numbered */
	__u32 pad;
};

/* argument of the pf_drop_source program */
struct pf_source_ref {
	__u32 index;
	__u32 pad;
	struct pf_source_key key;	/* that must be there */
};

#endif /* SKIPSTEP_ABI_STATE_H */
