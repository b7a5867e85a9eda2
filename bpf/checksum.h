/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Internet checksums (RFC 1071) over parts of a packet.
 */
#ifndef PF_CHECKSUM_H
#define PF_CHECKSUM_H

#include "kern.h"
#include "scratch.h"

#define CHUNK	64

/* for bpf_l4_csum_replace(): a sum of zero is written as 0xffff, as OpenBSD does, and a checksum of
 * 0 is one like any other */
#define CHECKSUM_OF_TCP	(BPF_F_MARK_MANGLED_0 | BPF_F_MARK_ENFORCE)

__inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Adds the next chunk of the packet to s->sum. */
static int sum_chunk(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	__u32 length;

	if (s->cursor >= s->cursor_end)
		return 1;
	length = min(s->cursor_end - s->cursor, CHUNK);
	__builtin_memset(s->buffer, 0, CHUNK);
	if (load_bytes(loop->skb, s->cursor, s->buffer, length, CHUNK))
		return 1;
	s->sum = bpf_csum_diff(NULL, 0, (__be32 *)s->buffer, CHUNK, s->sum);
	s->cursor += length;
	return 0;
}

/* Sum of `length` bytes of the frame from `offset` on, added to `sum`. */
__global __u32 sum_packet(struct __sk_buff *skb, struct pf_scratch *s, __u32 offset, __u32 length,
			  __u32 sum)
{
	struct pf_loop loop = { .skb = skb, .s = s };

	if (!s)
		return 0;
	s->cursor = offset;
	s->cursor_end = offset + length;
	s->sum = sum;
	bpf_loop(length / CHUNK + 1, sum_chunk, &loop, 0);
	return s->sum;
}

/* Sum of the pseudo header: addresses, protocol, length. */
__inline __u32 sum_pseudo(const struct pf_pdesc *pd, __u8 protocol, __u32 length)
{
	struct {
		struct pf_addr source, destination;
		__be32 length;
		__be32 protocol;
	} pseudo;

	pseudo.source = pd->source;
	pseudo.destination = pd->destination;
	pseudo.length = bpf_htonl(length);
	pseudo.protocol = bpf_htonl(protocol);
	return bpf_csum_diff(NULL, 0, (__be32 *)&pseudo, sizeof(pseudo), 0);
}

/* A RST is only sent in answer to a segment that arrived whole. What the kernel has checked, and
 * what it has not finished itself, is right. */
__inline bool tcp_checksum_right(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u8 known = checksum_status(skb);
	__u32 length = s->pd.length - s->pd.offset;

	if (known == CHECKSUM_UNNECESSARY || known == CHECKSUM_PARTIAL)
		return true;
	return fold(sum_packet(skb, s, s->pd.ip + s->pd.offset, length,
			       sum_pseudo(&s->pd, IPPROTO_TCP, length))) == 0xffff;
}

#endif /* PF_CHECKSUM_H */
