/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The least that a router can do, in XDP or on tcx: it asks the kernel's routes, counts the hop and
 * hands the frame to the interface it leaves by. What filters there cannot cost less. Whatever the
 * routes do not answer is the kernel's.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define __inline	static __always_inline

#define AF_INET		2
#define AF_INET6	10

/* older headers have it not */
#ifndef TCX_NEXT
#define TCX_NEXT	(-1)
#endif

/* without options */
#define PLAIN_HEADER	5

/* One hop less, and the checksum as it is then (RFC 1624): the TTL is the upper half of its
 * word. */
__inline void count_hop(struct iphdr *ip)
{
	__u32 sum = (__u32)ip->check + bpf_htons(0x0100);

	ip->check = sum + (sum >= 0xffff);
	ip->ttl--;
}

/* Makes the frame that came by an interface ready for the next hop. Returns the interface it leaves
 * by, 0 if that is left to the kernel. */
__inline __u32 route(void *ctx, __u32 ifindex, void *data, void *end)
{
	struct bpf_fib_lookup route = { .ifindex = ifindex };
	struct ethhdr *ethernet = data;
	struct iphdr *ip = data + sizeof(*ethernet);
	struct ipv6hdr *ip6 = data + sizeof(*ethernet);

	if ((void *)(ip + 1) > end)
		return 0;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->ihl != PLAIN_HEADER || ip->ttl <= 1)
			return 0;
		route.family = AF_INET;
		route.tos = ip->tos;
		route.l4_protocol = ip->protocol;
		route.tot_len = bpf_ntohs(ip->tot_len);
		route.ipv4_src = ip->saddr;
		route.ipv4_dst = ip->daddr;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end) {
		if (ip6->hop_limit <= 1)
			return 0;
		route.family = AF_INET6;
		route.l4_protocol = ip6->nexthdr;
		route.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(route.ipv6_src, &ip6->saddr, sizeof(route.ipv6_src));
		__builtin_memcpy(route.ipv6_dst, &ip6->daddr, sizeof(route.ipv6_dst));
	} else {
		return 0;
	}
	if (bpf_fib_lookup(ctx, &route, sizeof(route), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	if (route.family == AF_INET)
		count_hop(ip);
	else
		ip6->hop_limit--;
	__builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
	return route.ifindex;
}

SEC("xdp")
int lab_route(struct xdp_md *ctx)
{
	__u32 out = route(ctx, ctx->ingress_ifindex, (void *)(long)ctx->data, (void *)(long)ctx->data_end);

	return out ? bpf_redirect(out, 0) : XDP_PASS;
}

SEC("tcx/ingress")
int lab_route_tcx(struct __sk_buff *skb)
{
	__u32 out = route(skb, skb->ingress_ifindex, (void *)(long)skb->data, (void *)(long)skb->data_end);

	return out ? bpf_redirect(out, 0) : TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
