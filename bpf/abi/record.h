/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: what goes to the daemon and comes back, and what a packet carries. */
#ifndef SKIPSTEP_ABI_RECORD_H
#define SKIPSTEP_ABI_RECORD_H

/* ---- log ----------------------------------------------------------------------------------- */

/* State of the addresses and ports of a logged packet */
enum pf_log_rewritten {
	PF_LOG_UNCHANGED,
	PF_LOG_TRANSLATED,		/* the record's are not those in its data */
	PF_LOG_CROSSES,			/* and they are of the other family (af-to) */
};

/* record of the log ring. skipstepd writes it to a pflog file in OpenBSD's layout */
struct pf_log_record {
	__u64 time;			/* boot clock, ns */
	char ifname[PF_IFNAMSIZ];
	__u8 source[16];
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	__s32 rule;			/* number of the rule, -1 for the default rule */
	__s32 anchor_rule;		/* number of the anchor rule that led to it, -1 for none */
	__u32 anchor;			/* id of the anchor that was walked, 0 for none */
	__u32 uid;			/* owner of the socket if `log (user)` asks, else ~0 */
	__u8 family;
	__u8 action;			/* pf_action */
	__u8 reason;
	__u8 direction;
	__u8 log_to;
	__u8 rewritten;			/* pf_log_rewritten */
	__u16 caplen;			/* bytes in data */
	__u32 wirelen;
	__u8 data[PF_SNAPLEN];		/* from the IP header on */
};

/* ---- flows --------------------------------------------------------------------------------- */

/* record of the flow ring: a state with `pflow` that has ended. skipstepd reports it to
 * collectors */
struct pf_flow_record {
	__u8 address[2][16];		/* of who made it, and of the other side, … */
	__u8 translated_address[2][16];	/* … and as the other side knows them */
	__be16 port[2];
	__be16 translated_port[2];
	__u32 ifindex_in;		/* as pf_state */
	__u32 ifindex_out;
	__u64 packets[2];		/* of who made it, of the other side */
	__u64 bytes[2];
	__u32 creation;			/* boot clock, seconds */
	__u32 last;			/* of the last packet */
	__u8 family;
	__u8 protocol;
	__u8 tos;			/* that its rule asks for */
	__u8 translated;		/* the other side knows other ends, in the same family */
	__u32 pad;
};

/* ---- fragments: what goes to skipstepd's device and comes back ------------------------------- */

/* value of the reassembler map, which skipstepd writes */
struct pf_reassembler {
	__u32 ifindex;			/* of its device, 0 if there never was one */
	__u32 pieces;			/* fragments it holds */
	__u64 nonce;			/* of frames by its device */
	__u64 searches;
	__u64 inserts;
	__u64 removals;
	__u64 lost;			/* dropped by the kernel, since the daemon does not keep up */
	__u64 foreign;			/* frames that the daemon dropped: not the data plane's */
};

enum pf_handoff_order {
	PF_HANDOFF_FRAGMENT = 1,		/* to the daemon: put it to the others of its datagram */
	PF_HANDOFF_WHOLE = 2,		/* back: the datagram, to be filtered where its fragments were */
	PF_HANDOFF_REFUSED = 3,		/* back: the fragment, to be dropped */
	PF_HANDOFF_REFRAGMENT = 4,	/* to the daemon: make fragments of it */
	PF_HANDOFF_SEND = 5,		/* back: one of those */
};

#define PF_HANDOFF_NO_REASON	255

/* stands behind the frame, link header and all, as its last bytes */
struct pf_handoff {
	__u64 nonce;			/* pf_reassembler.nonce */
	__u32 ifindex;			/* where the packet was */
	__u32 received;			/* outbound: where it had come in, 0 if it was made here */
	__u32 mark;
	__u32 priority;			/* skb->priority: of the way out, with the queue */
	__u16 longest;			/* length of the longest fragment as a packet: as it came,
					 * or as it may leave; 0 if unknown */
	__u8 order;			/* pf_handoff_order */
	__u8 direction;			/* pf_direction */
	__u8 reason;			/* PF_HANDOFF_REFUSED: pf_reason, or PF_HANDOFF_NO_REASON */
	__u8 link_header;		/* bytes in front of the IP header; 0: a made-up Ethernet header is */
	__u16 delay;			/* ms that it waits before it leaves */
	__u32 rdomain;			/* of the interface */
	__u16 balance;			/* makes the Internet checksum of this 0: the kernel sums
					 * it up with a packet whose checksum is yet to be made */
	__u16 pad;
};

/* ---- diverted packets: what goes to skipstepd's other device, for programs, and comes back ---- */

/* value of the diverter map, which skipstepd writes */
struct pf_diverter {
	__u32 ifindex;			/* of its device, 0 if there never was one */
	__u32 pad;
	__u64 nonce;			/* of frames by its device */
	__u64 delivered;		/* packets that programs got … */
	__u64 returned;			/* … and that they wrote */
	__u64 no_program;		/* dropped, because no program is at the port … */
	__u64 full;			/* … or because it does not keep up */
	__u64 malformed;		/* what programs wrote and is no packet */
	__u64 foreign;			/* frames that the daemon dropped: not the data plane's */
};

/* stands in front of the frame on the way to the daemon, where each segment of a long packet gets
 * it, and behind the Ethernet header on the way back, where a program can cut it out */
struct pf_diverted {
	__u64 nonce;			/* pf_diverter.nonce */
	__u32 ifindex;			/* where the packet was */
	__u32 mark;			/* the user's half of it */
	__be16 port;			/* of the program */
	__u8 direction;			/* pf_direction */
	__u8 link_header;		/* bytes between this and the IP header, 0 or an Ethernet header's */
	__be16 vlan_protocol;		/* of the tag that the packet has besides, 0 for none */
	__u16 vlan_tag;
};

/* ---- delayed packets: what goes to skipstepd's third device, and comes back when its time has come ---- */

/* value of the delayer map, which skipstepd writes */
struct pf_delayer {
	__u32 ifindex;			/* of its device, 0 if there never was one */
	__u32 waiting;			/* packets it holds */
	__u64 nonce;			/* of frames by its device */
	__u64 sent;			/* packets whose time has come */
	__u64 refused;			/* dropped, because it holds as many as it may … */
	__u64 full;			/* … or because it did not take them in time */
	__u64 foreign;			/* frames that the daemon dropped: not the data plane's */
};

enum pf_delayed_order {
	PF_DELAYED_HOLD = 1,		/* to the daemon */
	PF_DELAYED_SEND = 2,		/* back: send it */
	PF_DELAYED_REFUSED = 3,		/* back: its first bytes. It was dropped, count it */
};

/* stands in front of the frame on the way to the daemon, where each segment of a long packet gets
 * it, and behind the Ethernet header on the way back, where a program can cut it out */
struct pf_delayed {
	__u64 nonce;			/* pf_delayer.nonce */
	__u64 due;			/* boot clock, ns: not before */
	__u32 ifindex;			/* by which the packet leaves */
	__u32 mark;			/* the user's half of it */
	__u32 priority;			/* skb->priority, with the queue */
	__be16 vlan_protocol;		/* of the tag that the packet has besides, 0 for none */
	__u16 vlan_tag;
	__u8 order;			/* pf_delayed_order */
	__u8 link_header;		/* bytes between this and the IP header, 0 or an Ethernet header's */
	__u8 pad[6];
};

/* ---- marks: what skb->mark carries between the hooks. The lower half is the user's --------- */

#define PF_MARK_MASK		0xffff0000u
#define PF_MARK_GENERATED	0x80000000u	/* made by the firewall: not filtered */
#define PF_MARK_PRIO_SHIFT	28		/* 3 bits: priority xor 3, so that no mark is the default */
#define PF_MARK_PRIO_MASK	0x70000000u
#define PF_MARK_REASSEMBLED	0x08000000u	/* a datagram that came in fragments */
#define PF_MARK_TAG_SHIFT	16		/* 11 bits */
#define PF_MARK_TAG_MASK	0x07ff0000u
#define PF_DEFAULT_PRIO		3
#define PF_MARK_DIVERTED	0x80030000u	/* the kernel delivers it here, by a policy rule … */
#define PF_MARK_DIVERTED_MASK	0x87ff0000u	/* … that looks at these bits … */
#define PF_DIVERT_TABLE		28774		/* … and leads to this routing table */
#define PF_MAX_TAG		2047

/* ---- queues: skb->priority names a class of the interface's HTB qdisc; its minor number is the
 * queue's. skb->tc_index carries that number past the forwarding code, which sets the priority --- */

#define PF_QUEUE_MAJOR		0x7066		/* "pf", of the qdisc's handle */
#define PF_QUEUE_MAX		0x7fff

/* ---- delays: skb->tstamp carries the milliseconds past the forwarding code, as if they were a time of
 * departure: one so long ago that it is over for who takes it for that ------------------------------ */

#define PF_MAX_DELAY		0xffff

#endif /* SKIPSTEP_ABI_RECORD_H */
