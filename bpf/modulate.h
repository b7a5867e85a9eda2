/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `modulate state` and `reassemble tcp`: writing the numbers that we chose to the parts of a packet
 * that the descriptor does not have: TCP options, and segments that ICMP errors quote.
 */
#ifndef PF_MODULATE_H
#define PF_MODULATE_H

#include "checksum.h"
#include "kern.h"
#include "packet.h"
#include "scratch.h"
#include "wire.h"

/*
 * Takes `difference` off the number at `at` behind the header at `start` of the frame, which has
 * its checksum at `checksum`. A number at an odd place adds to the sum with its bytes swapped.
 */
__inline void demodulate(struct __sk_buff *skb, __u32 start, __u32 at, __u32 checksum,
			 __u32 difference)
{
	__be32 from, to;

	if (bpf_skb_load_bytes(skb, start + at, &from, sizeof(from)))
		return;
	to = bpf_htonl(bpf_ntohl(from) - difference);
	bpf_skb_store_bytes(skb, start + at, &to, sizeof(to), 0);
	if (at & 1) {
		from = from << 8 | from >> 24;
		to = to << 8 | to >> 24;
	}
	bpf_l4_csum_replace(skb, start + checksum, from, to, CHECKSUM_OF_TCP | sizeof(to));
}

/* One step: to the next option, or through the blocks of a SACK option (RFC 2018). */
static int demodulate_sack(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	__u32 offset = s->cursor, tcp = s->pd.ip + s->pd.offset, at;
	enum option_step step;

	if (s->blocks_end) {
		if (offset + TCPOLEN_SACK_BLOCK > s->blocks_end) {
			s->cursor = s->blocks_next;
			s->blocks_end = 0;
			return 0;
		}
		at = sizeof(struct tcp) + offset;
		demodulate(loop->skb, tcp, at, offsetof(struct tcp, checksum), s->sack_difference);
		demodulate(loop->skb, tcp, at + 4, offsetof(struct tcp, checksum),
			   s->sack_difference);
		s->cursor += TCPOLEN_SACK_BLOCK;
		return 0;
	}
	step = step_over_option(s, TCPOPT_SACK, 2 + TCPOLEN_SACK_BLOCK, &at);
	if (step == OPTION_NONE)
		return 1;
	if (step == OPTION_FOUND) {
		s->blocks_next = s->cursor;
		s->blocks_end = min(s->blocks_next, s->cursor_end);
		s->cursor = at + 2;
	}
	return 0;
}

/* Takes s->sack_difference off what the segment acknowledges selectively. */
__global int write_sack(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_loop loop = { .skb = skb, .s = s };

	if (!s || !load_tcp_options(skb, s))
		return 0;
	s->blocks_end = 0;
	bpf_loop(TCP_MAX_OPTIONS, demodulate_sack, &loop, 0);
	return 0;
}

/* Writes the timestamp as the other side is to see it. */
__global int write_timestamp(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 tcp;

	if (!s)
		return 0;
	tcp = s->pd.ip + s->pd.offset;
	demodulate(skb, tcp, s->stamp.at, offsetof(struct tcp, checksum), -s->stamp.add_to_value);
	demodulate(skb, tcp, s->stamp.at + 4, offsetof(struct tcp, checksum),
		   s->stamp.take_off_echo);
	return 0;
}

/* Takes s->quoted_difference off the sequence number of the segment that an ICMP error quotes. The
 * segment's own checksum covers more than what is quoted: the error's is corrected. */
__global int write_quoted_sequence(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 icmp;

	if (!s)
		return 0;
	icmp = s->pd.ip + s->pd.offset;
	demodulate(skb, icmp, s->quoted.offset - s->pd.offset + offsetof(struct tcp, seq),
		   offsetof(struct icmp, checksum), s->quoted_difference);
	return 0;
}

#endif /* PF_MODULATE_H */
