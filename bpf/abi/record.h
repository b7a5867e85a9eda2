/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Part of the ABI: records for skipstepd, frames to and from it, and marks of packets. */
#ifndef SKIPSTEP_ABI_RECORD_H
#define SKIPSTEP_ABI_RECORD_H

/* ---- log ----------------------------------------------------------------------------------- */

/* Relation of a record's addresses and ports to those in its data. */
enum pf_log_rewritten {
	PF_LOG_UNCHANGED,
	PF_LOG_TRANSLATED,		/* they differ from those in the data */
	PF_LOG_CROSSES,			/* they are also of the other family (af-to) */
};

/* Record of the log ring, and of the rings of programs that read logs or dropped packets. skipstepd
 * writes it to a pflog file in OpenBSD's layout. */
struct pf_log_record {
	__u64 time;			/* boot clock, ns */
	char ifname[PF_IFNAMSIZ];
	__u8 source[16];
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	__s32 rule;			/* number of the rule, -1 for the default rule */
	__s32 anchor_rule;		/* number of the anchor rule that called it, -1 for none */
	__u32 anchor;			/* id of the rule's anchor, 0 for none */
	/* owner of the socket if the rule has `log (user)`, else ~0 */
	__u32 uid;
	__u8 family;
	/* pf_action; of a dropped packet PASS if its rule passes it, but it cannot be sent */
	__u8 action;
	__u8 reason;
	__u8 direction;
	__u8 log_to;			/* N of pflogN, or number of a reader of drops */
	__u8 rewritten;			/* pf_log_rewritten */
	__u16 caplen;			/* bytes in data */
	__u32 wirelen;
	__u8 data[PF_SNAPLEN];		/* from the IP header on */
};

/* ---- flows --------------------------------------------------------------------------------- */

/* Record of the flow ring: a closed state with `pflow`. skipstepd reports it to collectors. */
struct pf_flow_record {
	__u8 address[2][16];		/* of the initiator, of the responder */
	__u8 translated_address[2][16];	/* the same as the responder sees them */
	__be16 port[2];
	__be16 translated_port[2];
	__u32 ifindex_in;		/* as in pf_extension */
	__u32 ifindex_out;
	__u64 packets[2];		/* of the initiator, of the responder */
	__u64 bytes[2];
	__u32 creation;			/* boot clock, seconds */
	__u32 last;			/* second of the last packet */
	__u8 family;
	__u8 protocol;
	__u8 tos;			/* criterion of the state's rule */
	/* the responder sees other addresses or ports, in the same family */
	__u8 translated;
	__u32 pad;
};

/* ---- fragments: to skipstepd's first device, and back ---------------------------------------- */

/* Value of the reassembler map, which skipstepd writes. */
struct pf_reassembler {
	__u32 ifindex;			/* of its device, 0 if it has never created one */
	__u32 pieces;			/* fragments that it holds */
	__u64 nonce;			/* nonce of the frames that pass the device */
	__u64 searches;
	__u64 inserts;
	__u64 removals;
	/* dropped by the kernel because skipstepd reads too slowly */
	__u64 lost;
	__u64 foreign;			/* frames dropped by skipstepd: not from the data plane */
};

enum pf_handoff_order {
	PF_HANDOFF_FRAGMENT = 1,		/* to skipstepd: add it to its datagram */
	/* back: the datagram, to be filtered where its fragments came in */
	PF_HANDOFF_WHOLE = 2,
	PF_HANDOFF_REFUSED = 3,		/* back: the fragment, to be dropped */
	PF_HANDOFF_REFRAGMENT = 4,	/* to skipstepd: split it into fragments */
	PF_HANDOFF_SEND = 5,		/* back: one of these fragments, to be sent */
};

#define PF_HANDOFF_NO_REASON	255

/* The last bytes of a frame, behind its link header and packet. */
struct pf_handoff {
	__u64 nonce;			/* pf_reassembler.nonce */
	__u32 ifindex;			/* where the packet is filtered */
	/* outbound: where the packet came in, 0 for a local packet */
	__u32 received;
	__u32 mark;
	/* skb->priority when the packet leaves, which names its queue */
	__u32 priority;
	/* bytes of the longest received fragment, or the longest allowed one, as IP packets; 0:
	 * unknown */
	__u16 longest;
	__u8 order;			/* pf_handoff_order */
	__u8 direction;			/* pf_direction */
	__u8 reason;			/* PF_HANDOFF_REFUSED: pf_reason, or PF_HANDOFF_NO_REASON */
	/* bytes in front of the IP header; 0: the frame has an invented Ethernet header */
	__u8 link_header;
	__u16 delay;			/* ms until the packet may leave */
	__u32 rdomain;			/* of the interface */
	/* makes the Internet checksum of this struct 0: the kernel adds these bytes to a checksum
	 * that it has yet to compute */
	__u16 balance;
	__u16 pad;
};

/* ---- diverted packets: to skipstepd's second device, for programs, and back ----------------- */

/* Value of the diverter map, which skipstepd writes. */
struct pf_diverter {
	__u32 ifindex;			/* of its device, 0 if it has never created one */
	__u32 pad;
	__u64 nonce;			/* nonce of the frames that pass the device */
	__u64 delivered;		/* packets that programs received */
	__u64 returned;			/* packets that programs wrote */
	__u64 no_program;		/* dropped because no program has the port */
	__u64 full;			/* dropped because the program reads too slowly */
	__u64 malformed;		/* writes of programs that are not valid packets */
	__u64 foreign;			/* frames dropped by skipstepd: not from the data plane */
};

/* On the way to skipstepd in front of the frame, where each segment of a long packet gets a copy.
 * On the way back behind the Ethernet header, where a program can cut it out. */
struct pf_diverted {
	__u64 nonce;			/* pf_diverter.nonce */
	__u32 ifindex;			/* where the packet was diverted */
	__u32 mark;			/* the user's half */
	__be16 port;			/* of the program */
	__u8 direction;			/* pf_direction */
	/* bytes between this struct and the IP header: 0, or an Ethernet header's */
	__u8 link_header;
	__be16 vlan_protocol;		/* of the packet's VLAN tag, 0 for none */
	__u16 vlan_tag;
};

/* ---- delayed packets: to skipstepd's third device, and back after the delay ----------------- */

/* Value of the delayer map, which skipstepd writes. */
struct pf_delayer {
	__u32 ifindex;			/* of its device, 0 if it has never created one */
	__u32 waiting;			/* packets that it holds */
	__u64 nonce;			/* nonce of the frames that pass the device */
	__u64 sent;			/* packets sent after their delay */
	__u64 refused;			/* dropped because skipstepd holds its maximum number */
	__u64 full;			/* dropped because skipstepd reads too slowly */
	__u64 foreign;			/* frames dropped by skipstepd: not from the data plane */
};

enum pf_delayed_order {
	PF_DELAYED_HOLD = 1,		/* to skipstepd: delay it */
	PF_DELAYED_SEND = 2,		/* back: send it */
	/* back: the first bytes of a dropped packet, to count the drop */
	PF_DELAYED_REFUSED = 3,
};

/* On the way to skipstepd in front of the frame, where each segment of a long packet gets a copy.
 * On the way back behind the Ethernet header, where a program can cut it out. */
struct pf_delayed {
	__u64 nonce;			/* pf_delayer.nonce */
	__u64 due;			/* boot clock, ns: the packet must not leave before */
	__u32 ifindex;			/* where the packet leaves */
	__u32 mark;			/* the user's half */
	__u32 priority;			/* skb->priority, which names the queue */
	__be16 vlan_protocol;		/* of the packet's VLAN tag, 0 for none */
	__u16 vlan_tag;
	__u8 order;			/* pf_delayed_order */
	/* bytes between this struct and the IP header: 0, or an Ethernet header's */
	__u8 link_header;
	__u8 pad[6];
};

/* ---- marks: skb->mark between the hooks. The lower half is the user's ----------------------- */

#define PF_MARK_MASK		0xffff0000u
#define PF_MARK_GENERATED	0x80000000u	/* made by the firewall: not filtered */
/* 3 bits: priority xor 3, so that mark 0 is the default */
#define PF_MARK_PRIO_SHIFT	28
#define PF_MARK_PRIO_MASK	0x70000000u
#define PF_MARK_REASSEMBLED	0x08000000u	/* a datagram that skipstepd reassembled */
#define PF_MARK_TAG_SHIFT	16		/* 11 bits */
#define PF_MARK_TAG_MASK	0x07ff0000u
#define PF_DEFAULT_PRIO		3
#define PF_MARK_DIVERTED	0x80030000u	/* a policy rule delivers the packet locally */
#define PF_MARK_DIVERTED_MASK	0x87ff0000u	/* bits that the policy rule compares */
#define PF_DIVERT_TABLE		28774		/* routing table that the policy rule looks up */
#define PF_MAX_TAG		2047

/* ---- queues -------------------------------------------------------------------------------- */

/* skb->priority names a class of the interface's HTB qdisc, whose minor number is the queue's.
 * skb->tc_index carries the number through the forwarding code, which sets the priority. */
#define PF_QUEUE_MAJOR		0x7066		/* "pf", of the qdisc's handle */
#define PF_QUEUE_MAX		0x3fff

/* ---- delays -------------------------------------------------------------------------------- */

/* Longest delay in ms. skb->tstamp carries the delay through the forwarding code. Read as a time of
 * departure, so small a number has long passed, so a qdisc sends the packet at once. */
#define PF_MAX_DELAY		0xffff

#endif /* SKIPSTEP_ABI_RECORD_H */
