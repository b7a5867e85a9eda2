/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The same frame for a program again and again: BPF_PROG_TEST_RUN gives each run what the one
 * before has left of it, one hop less among others. So a frame has a copy of its headers behind
 * them, of which one of these programs makes them anew before it goes on to the one under test.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>

/* returned if there is no program under test */
#define NOT_REACHED	0xff

struct headers {
	struct ethhdr ethernet;
	struct iphdr ip;
} __attribute__((packed));

struct frame {
	struct headers headers;
	struct udphdr udp;
	struct headers copy;
} __attribute__((packed));

/* one map for both would hold no programs of two kinds of hooks */
struct prog_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} anew_tcx SEC(".maps"), anew_xdp SEC(".maps");

static __always_inline void make_anew(void *data, void *end)
{
	struct frame *frame = data;

	if ((void *)(frame + 1) <= end)
		__builtin_memcpy(&frame->headers, &frame->copy, sizeof(frame->headers));
}

SEC("tc")
int lab_anew_tcx(struct __sk_buff *skb)
{
	make_anew((void *)(long)skb->data, (void *)(long)skb->data_end);
	/* as a packet has them that has just come in */
	skb->mark = 0;
	skb->tc_index = 0;
	skb->priority = 0;
	bpf_tail_call(skb, &anew_tcx, 0);
	return NOT_REACHED;
}

SEC("xdp.frags")
int lab_anew_xdp(struct xdp_md *xdp)
{
	make_anew((void *)(long)xdp->data, (void *)(long)xdp->data_end);
	bpf_tail_call(xdp, &anew_xdp, 0);
	return NOT_REACHED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
