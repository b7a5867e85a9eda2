/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The kernel as the data plane sees it: headers, the few fields of kernel structs that no helper
 * shows, and the names for how our functions are compiled.
 *
 * Functions marked __global are verified once, by themselves, instead of once for each way that
 * leads to them. That, and keeping everything variable in the scratch map rather than on the
 * stack, is what keeps the verifier's work small.
 */
#ifndef PF_KERN_H
#define PF_KERN_H

#include <linux/bpf.h>
#include <linux/version.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "abi.h"

#define __global	__attribute__((noinline))
#define __inline	static __always_inline
#define __unused	__attribute__((unused))

/* A word that other CPUs, or userland, change. */
#define now_in(word)	(*(const volatile __u32 *)&(word))

/* Reads a word so that its line of the cache is there when it is needed. */
__inline void fetch_line(const void *at)
{
	__u32 unused;

	asm volatile("%0 = *(u32 *)(%1 + 0)" : "=r"(unused) : "r"(at));
}

/* A CPU that reads in one piece a word that it has just written in parts waits until the parts have
 * left its store buffer, twelve cycles and more; so keys, which are hashed as soon as they are
 * made, are made of whole words. */
__inline __u32 word_of_bytes(__u8 a, __u8 b, __u8 c, __u8 d)
{
	const union { __u8 part[4]; __u32 whole; } word = { .part = { a, b, c, d } };

	return word.whole;
}

__inline __u32 word_of_ports(__be16 first, __be16 second)
{
	const union { __be16 part[2]; __u32 whole; } word = { .part = { first, second } };

	return word.whole;
}

__inline __u64 half_of_words(__u32 first, __u32 second)
{
	const union { __u32 part[2]; __u64 whole; } half = { .part = { first, second } };

	return half.whole;
}

/* A word whose parts are read by themselves elsewhere. */
typedef __u32 __attribute__((may_alias)) word_of_parts;

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))

#define __kptr_access	__attribute__((preserve_access_index))

#define NFPROTO_IPV6		10
#define NF_INET_PRE_ROUTING	0
#define NF_INET_FORWARD		2
#define NF_INET_POST_ROUTING	4
#define NF_INET_NUMHOOKS	5

/* of net_device.xdp_features */
#define NETDEV_XDP_ACT_NDO_XMIT		(1U << 2)
#define NETDEV_XDP_ACT_NDO_XMIT_SG	(1U << 6)

#define NETIF_F_HW_VLAN_CTAG_RX		(1ULL << 8)

#define XFRM_POLICY_OUT		1
#define XFRM_POLICY_FWD		2

typedef struct {
	int counter;
} atomic_t;

struct nf_hook_entry {
	const void *hook;
	void *priv;
} __kptr_access;

struct nf_hook_entries {
	__u16 num_hook_entries;
	struct nf_hook_entry hooks[];
} __kptr_access;

/* of ipv4_devconf.data */
#define DEVCONF_RP_FILTER	7

struct ipv4_devconf {
	int data[8];
} __kptr_access;

struct in_device {
	struct ipv4_devconf cnf;
} __kptr_access;

struct netns_ipv4 {
	struct ipv4_devconf *devconf_all;
	atomic_t rt_genid;
} __kptr_access;

struct ipv6_devconf {
	__s32 forwarding;
} __kptr_access;

struct netns_ipv6 {
	struct ipv6_devconf *devconf_all;
	atomic_t fib6_sernum;
} __kptr_access;

struct netns_nf {
	struct nf_hook_entries *hooks_ipv4[NF_INET_NUMHOOKS];
	struct nf_hook_entries *hooks_ipv6[NF_INET_NUMHOOKS];
} __kptr_access;

struct netns_xfrm {
	unsigned int policy_count[6];
} __kptr_access;

struct net {
	struct netns_ipv4 ipv4;
	struct netns_ipv6 ipv6;
	struct netns_nf nf;
	struct netns_xfrm xfrm;
} __kptr_access;

typedef struct {
	struct net *net;
} __kptr_access possible_net_t;

struct bpf_prog_aux {
	__u32 id;
} __kptr_access;

struct bpf_prog {
	enum bpf_prog_type type;
	struct bpf_prog_aux *aux;
} __kptr_access;

struct bpf_mprog_bundle {
	__u32 count;
} __kptr_access;

struct bpf_mprog_fp {
	struct bpf_prog *prog;
} __kptr_access;

struct bpf_mprog_entry {
	struct bpf_mprog_fp fp_items[64];
	struct bpf_mprog_bundle *parent;
} __kptr_access;

struct tcx_entry {
	void *miniq;
	struct bpf_mprog_bundle bundle;
} __kptr_access;

struct Qdisc_ops {
	char id[16];
} __kptr_access;

struct Qdisc {
	const struct Qdisc_ops *ops;
} __kptr_access;

enum netdev_priv_flags {
	IFF_MACVLAN_PORT = 1 << 8,
};

struct net_device {
	unsigned long priv_flags : 32;	/* first, because clang wants a bit field aligned */
	unsigned short type;
	unsigned int xdp_features;
	int ifindex;
	char name[16];
	__u64 features;
	void *rx_handler;
	possible_net_t nd_net;
	unsigned char dev_addr_shadow[32];
	struct in_device *ip_ptr;
	struct Qdisc *qdisc;
	struct bpf_mprog_entry *tcx_ingress;
	struct bpf_mprog_entry *tcx_egress;
	struct nf_hook_entries *nf_hooks_ingress;
	struct nf_hook_entries *nf_hooks_egress;
} __kptr_access;

struct xdp_rxq_info {
	struct net_device *dev;
} __kptr_access;

struct xdp_buff {
	struct xdp_rxq_info *rxq;
} __kptr_access;

struct sk_buff {
	struct net_device *dev;
	unsigned long _skb_refdst;	/* the route that the kernel chose, or 0 */
	unsigned int len;
	__u32 mark;
	__u16 mac_header;
	__u16 network_header;
	__u16 tc_index;
	int skb_iif;
	char cb[48];
	__u8 ip_summed : 2;
	__u32 vlan_all;			/* of a tag that stands apart */
} __kptr_access;

struct sk_buff_head {
	struct sk_buff *next;
} __kptr_access;

/* what bpf_for keeps on the stack; Debian 12's headers do not know it yet */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
#endif

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/* what newer kernels' headers call these; Debian 12's do not know them yet */
#define PF_TCX_NEXT		(-1)
#define STEP_ASIDE		(-2)	/* never returned by a program: a later part of it decides */
#define PF_TCX_DROP		2
#define PF_TCX_REDIRECT		7
#define PF_FIB_LOOKUP_SKIP_NEIGH (1U << 2)	/* Linux 6.3 */
#define PF_FIB_LOOKUP_TBID	(1U << 3)	/* Linux 6.5 */
#define PF_FIB_LOOKUP_SRC	(1U << 4)	/* Linux 6.7 */

#define CHECKSUM_UNNECESSARY	1
#define CHECKSUM_PARTIAL	3

#define PACKET_HOST		0
#define PACKET_BROADCAST	1
#define PACKET_MULTICAST	2
#define PACKET_OTHERHOST	3
#define PACKET_LOOPBACK		5

#define LOOPBACK_IFINDEX	1

#define ARPHRD_ETHER		1
#define ARPHRD_LOOPBACK		772

#define AF_INET			2
#define AF_INET6		10

/* True if the kernel forwards packets of a family where their interface lets it. bpf_fib_lookup
 * asks the interface alone; ip6_forward() asks the setting of all interfaces. */
__inline bool is_router(const struct net *net, __u8 family)
{
	return family == AF_INET || net->ipv6.devconf_all->forwarding;
}

/* Frames of these devices begin with an Ethernet header, all others with the IP header. So does a
 * multicast or broadcast that comes back in by the device that it leaves by, because programs of
 * this host hear it too (dev_loopback_xmit of Linux). */
__inline bool has_ethernet_header(struct __sk_buff *skb)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);

	return (kern->dev->type == ARPHRD_ETHER || kern->dev->type == ARPHRD_LOOPBACK) &&
	       skb->pkt_type != PACKET_LOOPBACK;
}

__inline bool is_loopback(struct __sk_buff *skb)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);

	return kern->dev->type == ARPHRD_LOOPBACK;
}

/* bpf_skb_load_bytes for a length that only the packet knows, at most `most`. Not 0 if it
 * cannot. */
__inline int load_bytes(struct __sk_buff *skb, __u32 offset, void *to, __u32 length, __u32 most)
{
	/* kept apart, since the verifier of Linux 6.12 does not understand what clang makes of
	 * both */
	barrier_var(length);
	if (length < 1)
		return -1;
	barrier_var(length);
	if (length > most)
		return -1;
	return bpf_skb_load_bytes(skb, offset, to, length);
}

/* CHECKSUM_*: what the kernel knows, or still has to do, about the transport checksum */
__inline __u8 checksum_status(struct __sk_buff *skb)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kern, ip_summed);
}

#endif /* PF_KERN_H */
