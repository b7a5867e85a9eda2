/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Normalisation (pf-semantics section 13): what is always put right in TCP, and what `scrub` and
 * `set tos` ask for. The descriptor is changed at once, so that rules see the packet as it will go
 * on; the packet itself at the very end, when it is known to pass and the log has had it.
 */
#ifndef PF_NORMALIZE_H
#define PF_NORMALIZE_H

#include "checksum.h"
#include "config.h"
#include "kern.h"
#include "modulate.h"
#include "packet.h"
#include "random.h"
#include "reason.h"
#include "scratch.h"
#include "time.h"

/* A fragment must not ask not to be one, and waits for the others of its datagram if the user does
 * not want them one by one. What came in fragments can be an IPv6 fragment once more: then it is
 * left at that. False if it is bad. */
__inline bool normalize_fragment(struct pf_scratch *s)
{
	struct pf_config *config = pf_config(s->generation);
	__be16 *offset = &s->pd.ip_offset;

	if (!config)
		return false;
	if (config->reassemble & PF_REASSEMBLE_NO_DF)
		*offset &= ~bpf_htons(IP_DF);
	if (*offset & bpf_htons(IP_DF))
		return false;
	s->held = config->reassemble & PF_REASSEMBLE_YES &&
		!(s->reassembled && s->pd.family == AF_INET6);
	return true;
}

/* False if the flags make no sense together. */
__inline bool normalize_tcp(struct pf_scratch *s)
{
	struct tcp *tcp = &s->pd.tcp;

	s->tcp_received = *tcp;
	if (tcp->flags & TH_SYN) {
		if (tcp->flags & TH_RST)
			return false;
		tcp->flags &= ~TH_FIN;
	} else if (!(tcp->flags & (TH_ACK | TH_RST))) {
		return false;
	}
	if (!(tcp->flags & TH_ACK) && tcp->flags & (TH_FIN | TH_PUSH | TH_URG))
		return false;
	tcp->offset &= 0xf0;
	if (!(tcp->flags & TH_URG))
		tcp->urgent = 0;
	return true;
}

/* ---- writing it to the packet ---------------------------------------------------------------- */

/* Replaces two bytes of the TCP segment, at an even or odd offset, and corrects its checksum. */
__inline void patch_tcp(struct __sk_buff *skb, struct pf_scratch *s, __u32 at, __be16 from, __be16 to)
{
	__u32 tcp = s->pd.ip + s->pd.offset;

	bpf_skb_store_bytes(skb, tcp + at, &to, sizeof(to), 0);
	if (at & 1) {
		from = __builtin_bswap16(from);
		to = __builtin_bswap16(to);
	}
	bpf_l4_csum_replace(skb, tcp + offsetof(struct tcp, checksum), from, to,
			    CHECKSUM_OF_TCP | sizeof(to));
}

/* Replaces a number of the TCP header. */
__inline void patch_tcp_number(struct __sk_buff *skb, struct pf_scratch *s, __u32 at, __be32 from,
			       __be32 to)
{
	__u32 tcp = s->pd.ip + s->pd.offset;

	bpf_skb_store_bytes(skb, tcp + at, &to, sizeof(to), 0);
	bpf_l4_csum_replace(skb, tcp + offsetof(struct tcp, checksum), from, to,
			    CHECKSUM_OF_TCP | sizeof(to));
}

__inline void write_tcp_header(struct __sk_buff *skb, struct pf_scratch *s)
{
	const struct tcp *tcp = &s->pd.tcp, *old = &s->tcp_received;

	if (tcp->offset != old->offset || tcp->flags != old->flags)
		patch_tcp(skb, s, offsetof(struct tcp, offset),
			  bpf_htons(old->offset << 8 | old->flags),
			  bpf_htons(tcp->offset << 8 | tcp->flags));
	if (tcp->urgent != old->urgent)
		patch_tcp(skb, s, offsetof(struct tcp, urgent), old->urgent, tcp->urgent);
	if (tcp->seq != old->seq)
		patch_tcp_number(skb, s, offsetof(struct tcp, seq), old->seq, tcp->seq);
	if (tcp->ack != old->ack)
		patch_tcp_number(skb, s, offsetof(struct tcp, ack), old->ack, tcp->ack);
	s->tcp_received = *tcp;	/* an error about a packet that went on finds nothing more to write */
}

static int clamp_mss(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	enum option_step step;
	__u32 at;
	__u16 mss;

	step = step_over_option(s, TCPOPT_MAXSEG, TCPOLEN_MAXSEG, &at);
	if (step == OPTION_NONE)
		return 1;
	if (step == OPTION_FOUND) {
		mss = s->buffer[at + 2] << 8 | s->buffer[at + 3];
		if (mss > s->act.max_mss)
			patch_tcp(loop->skb, s, sizeof(struct tcp) + at + 2, bpf_htons(mss),
				  bpf_htons(s->act.max_mss));
	}
	return 0;
}

__global int write_tcp(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_loop loop = { .skb = skb, .s = s };

	if (!s)
		return 0;
	write_tcp_header(skb, s);
	if (s->sack_difference)
		write_sack(skb, s);
	if (s->stamp.add_to_value || s->stamp.take_off_echo)
		write_timestamp(skb, s);
	if (s->act.max_mss && load_tcp_options(skb, s))
		bpf_loop(TCP_MAX_OPTIONS, clamp_mss, &loop, 0);
	return 0;
}

/* Sums up the IP header: that of a datagram that came in fragments has the sum of the first. */
__inline void write_ip_checksum(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 at = s->pd.ip + offsetof(struct ip, checksum);
	__u16 checksum = 0;

	bpf_skb_store_bytes(skb, at, &checksum, sizeof(checksum), 0);
	checksum = ~fold(sum_packet(skb, s, s->pd.ip, s->pd.ip_header, 0));
	bpf_skb_store_bytes(skb, at, &checksum, sizeof(checksum), 0);
}

__inline void write_ip(struct __sk_buff *skb, struct pf_scratch *s)
{
	const struct pf_rule_actions *act = &s->act;
	struct ip ip, old;

	if (bpf_skb_load_bytes(skb, s->pd.ip, &ip, sizeof(ip)))
		return;
	old = ip;
	if (!(ip.offset & bpf_htons(IP_MF | IP_OFFMASK)))
		ip.offset &= bpf_htons(IP_DF);	/* the reserved bit goes */
	else
		ip.offset = s->pd.ip_offset;
	if (act->flags & PF_STATE_NO_DF)
		ip.offset &= ~bpf_htons(IP_DF);
	if (s->stamp.ttl)
		ip.ttl = s->stamp.ttl;
	if (ip.ttl < act->min_ttl)
		ip.ttl = act->min_ttl;
	if (act->flags & PF_STATE_SET_TOS)
		ip.tos = act->set_tos | (ip.tos & IPTOS_ECN_MASK);
	if (act->flags & PF_STATE_RANDOM_ID && !(ip.offset & bpf_htons(IP_MF | IP_OFFMASK)))
		ip.id = bpf_htons(random_draw(0x10000));

	if (ip.offset == old.offset && ip.ttl == old.ttl && ip.tos == old.tos && ip.id == old.id &&
	    !s->reassembled)
		return;
	/* the header's sum does not change, so neither does one that covers it */
	bpf_skb_store_bytes(skb, s->pd.ip, &ip, sizeof(ip), 0);
	if (s->reassembled) {
		write_ip_checksum(skb, s);
		return;
	}
	for (int i = 0; i < 10; i += 2) {
		__u16 was, is;

		__builtin_memcpy(&was, (__u8 *)&old + i, 2);
		__builtin_memcpy(&is, (__u8 *)&ip + i, 2);
		if (was != is)
			bpf_l3_csum_replace(skb, s->pd.ip + offsetof(struct ip, checksum), was, is,
					    2);
	}
}

__inline void write_ip6(struct __sk_buff *skb, struct pf_scratch *s)
{
	const struct pf_rule_actions *act = &s->act;
	struct {
		__be32 flow;
		__be16 payload_length;
		__u8 next_header, hop_limit;
	} start, old;

	if (bpf_skb_load_bytes(skb, s->pd.ip, &start, sizeof(start)))
		return;
	old = start;
	if (s->stamp.ttl)
		start.hop_limit = s->stamp.ttl;
	if (start.hop_limit < act->min_ttl)
		start.hop_limit = act->min_ttl;
	if (act->flags & PF_STATE_SET_TOS)
		start.flow = (start.flow & ~bpf_htonl(0x0fc00000)) |
			bpf_htonl((__u32)act->set_tos << 20);
	if (start.flow != old.flow || start.hop_limit != old.hop_limit)
		bpf_skb_store_bytes(skb, s->pd.ip, &start, sizeof(start), BPF_F_RECOMPUTE_CSUM);
}

#define SCRUBS	(PF_STATE_NO_DF | PF_STATE_SET_TOS | PF_STATE_RANDOM_ID)

/* Writes all of it. */
__global int write_normalized(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (!s)
		return 0;
	if (s->pd.virtual_protocol == IPPROTO_TCP)
		write_tcp(skb, s);
	else if (s->quoted_difference)
		write_quoted_sequence(skb, s);
	if (s->pd.family == AF_INET)
		write_ip(skb, s);
	else if (s->act.flags & SCRUBS || s->act.min_ttl || s->stamp.ttl)
		write_ip6(skb, s);
	return 0;
}

#endif /* PF_NORMALIZE_H */
