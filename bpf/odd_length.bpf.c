/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * For tests: packets of lengths that BPF_PROG_TEST_RUN refuses, less than an IP header or more than
 * about a page. The test runs one of these programs on a packet that the kernel takes; it gives it
 * the bytes it should have, and goes on to the program under test.
 */
#include <linux/if_ether.h>

#include "kern.h"

/* what bpf_skb_change_tail() allows at most */
#define LONGEST		(16000)

struct test_packet {
	__u32 length;
	__u8 bytes[LONGEST];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct test_packet);
} test_packet SEC(".maps");

/* one map for both would hold no programs of two kinds of hooks */
struct prog_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} under_test_in SEC(".maps"), under_test_out SEC(".maps"), under_test_return SEC(".maps");

/* returned if the program under test was not reached */
#define NOT_REACHED	0xff

__inline int
fill(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct test_packet *packet = bpf_map_lookup_elem(&test_packet, &zero);

	__u32 length;

	if (!packet)
		return -1;
	length = packet->length;
	if (length > LONGEST || bpf_skb_change_tail(skb, ETH_HLEN + length, 0))
		return -1;
	if (length == 0)
		return 0;
	return bpf_skb_store_bytes(skb, ETH_HLEN, packet->bytes, length, 0);
}

SEC("tc")
int odd_ingress(struct __sk_buff *skb)
{
	if (fill(skb) == 0)
		bpf_tail_call(skb, &under_test_in, 0);
	return NOT_REACHED;
}

SEC("tc")
int odd_egress(struct __sk_buff *skb)
{
	if (fill(skb) == 0)
		bpf_tail_call(skb, &under_test_out, 0);
	return NOT_REACHED;
}

SEC("tc")
int odd_return(struct __sk_buff *skb)
{
	if (fill(skb) == 0)
		bpf_tail_call(skb, &under_test_return, 0);
	return NOT_REACHED;
}

char odd_license[] SEC("license") = "Dual BSD/GPL";
