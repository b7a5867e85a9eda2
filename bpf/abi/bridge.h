/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: transparent bridges. */
#ifndef SKIPSTEP_ABI_BRIDGE_H
#define SKIPSTEP_ABI_BRIDGE_H

#define PF_BRIDGE_PORTS		64	/* of all bridges together; port 0 is none */
#define PF_BRIDGE_ADDRESSES	4096	/* known to all bridges together, as many as OpenBSD's veb(4) knows */
#define PF_BRIDGE_TIMEOUT	240	/* seconds that an address is known from which nothing comes, unless told otherwise */
#define PF_BRIDGE_TIMEOUT_MAX	0x7fffffff
#define PF_BRIDGE_RULES		256	/* of a port, for one direction */
#define PF_BRIDGE_ALL_RULES	4096

enum pf_bridge_port_flags {
	PF_BRIDGE_BLOCK_NON_IP = 1 << 0,	/* nothing but IPv4, IPv6, ARP and reverse ARP */
	PF_BRIDGE_HEARS = 1 << 1,	/* the host has addresses there: what is for a group is for it too */
};

/* value of bridge_ports, indexed by number */
struct pf_bridge_port {
	__u32 ifindex;			/* 0: there is no such port */
	__u32 bridge;			/* number of its bridge, from 1 */
	__u32 flags;			/* pf_bridge_port_flags */
	__u32 timeout;			/* of its bridge: seconds that an address is known from which nothing comes; 0: for good */
	__u32 rules[2];			/* how many it has, by direction: in, out */
};

/* A station on a bridge */
struct pf_bridge_key {
	__u8 address[6];
	__u16 vlan;			/* of the outer tag, 0 for none */
	__u32 bridge;
};

struct pf_bridge_address {
	__u32 port;			/* the number of the port that it is behind */
	__u32 seen;			/* boot-clock second of the last frame from it */
};

enum pf_bridge_match {			/* what a rule asks for */
	PF_BRIDGE_MATCH_SOURCE = 1 << 0,
	PF_BRIDGE_MATCH_DESTINATION = 1 << 1,
	PF_BRIDGE_MATCH_TYPE = 1 << 2,
};

/* The first rule of a port that matches a frame decides: `number` counts from 0 */
struct pf_bridge_rule_key {
	__u32 ifindex;
	__u16 direction;		/* pf_direction */
	__u16 number;
};

struct pf_bridge_rule {
	__u8 action;			/* pf_action: pass or block */
	__u8 match;			/* pf_bridge_match */
	__be16 type;			/* EtherType, behind the outer tag */
	__u8 source[6];
	__u8 destination[6];
};

enum pf_bridge_drop {			/* why a frame does not come through */
	PF_BRIDGE_DROP_RULE = 0,	/* a rule for frames blocks it */
	PF_BRIDGE_DROP_NON_IP,		/* the port takes nothing but IP */
	PF_BRIDGE_DROP_TOO_BIG,		/* for the link that it would leave by */
	PF_BRIDGE_DROP_SOURCE,		/* it claims to come from a group */
	PF_BRIDGE_DROP_MAX,
};

/* per CPU, indexed as bridge_ports */
struct pf_bridge_stats {
	__u64 packets[2];		/* by direction: in, out */
	__u64 bytes[2];
	__u64 flooded;			/* of those that came in, sent out by all other ports */
	__u64 unlearned;		/* addresses there was no room for */
	__u64 dropped[PF_BRIDGE_DROP_MAX];
};

#endif /* SKIPSTEP_ABI_BRIDGE_H */
