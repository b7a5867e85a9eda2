/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The least that a router in XDP can do: it asks the kernel's routes, counts the hop and hands the frame to the next
 * driver. What filters there cannot cost less. Whatever the routes do not answer is the kernel's.
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

/* without options */
#define PLAIN_HEADER	5

/* One hop less, and the checksum as it is then (RFC 1624): the TTL is the upper half of its word. */
__inline void count_hop(struct iphdr *ip)
{
	__u32 sum = (__u32)ip->check + bpf_htons(0x0100);

	ip->check = sum + (sum >= 0xffff);
	ip->ttl--;
}

SEC("xdp")
int lab_route(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bpf_fib_lookup route = { .ifindex = ctx->ingress_ifindex };
	struct ethhdr *ethernet = data;
	struct iphdr *ip = data + sizeof(*ethernet);
	struct ipv6hdr *ip6 = data + sizeof(*ethernet);

	if ((void *)(ip + 1) > end)
		return XDP_PASS;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->ihl != PLAIN_HEADER || ip->ttl <= 1)
			return XDP_PASS;
		route.family = AF_INET;
		route.tos = ip->tos;
		route.l4_protocol = ip->protocol;
		route.tot_len = bpf_ntohs(ip->tot_len);
		route.ipv4_src = ip->saddr;
		route.ipv4_dst = ip->daddr;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end) {
		if (ip6->hop_limit <= 1)
			return XDP_PASS;
		route.family = AF_INET6;
		route.l4_protocol = ip6->nexthdr;
		route.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(route.ipv6_src, &ip6->saddr, sizeof(route.ipv6_src));
		__builtin_memcpy(route.ipv6_dst, &ip6->daddr, sizeof(route.ipv6_dst));
	} else {
		return XDP_PASS;
	}
	if (bpf_fib_lookup(ctx, &route, sizeof(route), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	if (route.family == AF_INET)
		count_hop(ip);
	else
		ip6->hop_limit--;
	__builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
	return bpf_redirect(route.ifindex, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
