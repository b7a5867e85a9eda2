/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: transparent bridges. */
#ifndef SKIPSTEP_ABI_BRIDGE_H
#define SKIPSTEP_ABI_BRIDGE_H

/* Differs from OpenBSD: linux.md, "Bounds of bridges" */
#define PF_BRIDGE_PORTS		64	/* of all bridges together; ports count from 1 */
#define PF_BRIDGE_ADDRESSES	4096	/* of all bridges together */
#define PF_BRIDGE_TIMEOUT	240	/* default seconds until a silent address is forgotten */
#define PF_BRIDGE_TIMEOUT_MAX	0x7fffffff
#define PF_BRIDGE_RULES		256	/* of one port, in one direction */
#define PF_BRIDGE_ALL_RULES	4096

enum pf_bridge_port_flags {
	PF_BRIDGE_BLOCK_NON_IP = 1 << 0,	/* takes only IPv4, IPv6, ARP and reverse ARP */
	/* the host has addresses on the bridge, so it gets frames for groups, too */
	PF_BRIDGE_HEARS = 1 << 1,
};

/* Value of bridge_ports, by port number. */
struct pf_bridge_port {
	__u32 ifindex;			/* 0: the port does not exist */
	__u32 bridge;			/* number of the port's bridge, from 1 */
	__u32 flags;			/* pf_bridge_port_flags */
	/* of the bridge: seconds until a silent address is forgotten; 0: never */
	__u32 timeout;
	__u32 rules[2];			/* number of rules, by direction: in, out */
};

/* A station on a bridge: key of bridge_addresses. */
struct pf_bridge_key {
	__u8 address[6];
	__u16 vlan;			/* VLAN id of the outer tag, 0 for none */
	__u32 bridge;
};

struct pf_bridge_address {
	__u32 port;			/* number of the port where the station's frames come in */
	__u32 seen;			/* boot-clock second of the station's last frame */
};

enum pf_bridge_match {			/* criteria of a rule */
	PF_BRIDGE_MATCH_SOURCE = 1 << 0,
	PF_BRIDGE_MATCH_DESTINATION = 1 << 1,
	PF_BRIDGE_MATCH_TYPE = 1 << 2,
};

/* The first matching rule of a port decides; `number` counts from 0. */
struct pf_bridge_rule_key {
	__u32 ifindex;
	__u16 direction;		/* pf_direction */
	__u16 number;
};

struct pf_bridge_rule {
	__u8 action;			/* pf_action: pass or block */
	__u8 match;			/* pf_bridge_match */
	__be16 type;			/* EtherType behind the outer tag */
	__u8 source[6];
	__u8 destination[6];
};

enum pf_bridge_drop {			/* reasons of dropped frames */
	PF_BRIDGE_DROP_RULE = 0,	/* a rule for frames blocks it */
	PF_BRIDGE_DROP_NON_IP,		/* the port takes only IP (PF_BRIDGE_BLOCK_NON_IP) */
	PF_BRIDGE_DROP_TOO_BIG,		/* too long for the link where it would leave */
	PF_BRIDGE_DROP_SOURCE,		/* the source address is a group address */
	PF_BRIDGE_DROP_MAX,
};

/* Per CPU, indexed as bridge_ports. */
struct pf_bridge_stats {
	__u64 packets[2];		/* by direction: in, out */
	__u64 bytes[2];
	__u64 flooded;			/* received frames that were sent out by all other ports */
	__u64 unlearned;		/* addresses that the full table could not store */
	__u64 dropped[PF_BRIDGE_DROP_MAX];
};

#endif /* SKIPSTEP_ABI_BRIDGE_H */
