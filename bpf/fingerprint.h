/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Which system sent a SYN, by what it looks like: `os` (pf-semantics section 5). The first
 * fingerprint that fits counts; it says which of the names in the rules are those of its systems.
 */
#ifndef PF_FINGERPRINT_H
#define PF_FINGERPRINT_H

#include "config.h"
#include "kern.h"
#include "packet.h"
#include "scratch.h"
#include "wire.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_COPIES * PF_FINGERPRINTS);
	__type(key, __u32);
	__type(value, struct pf_fingerprint);
} fingerprints SEC(".maps");

/* codes of options in pf_fingerprint.options, OpenBSD's */
#define SYN_NOP			0
#define SYN_WINDOW_SCALE	1
#define SYN_MSS			2
#define SYN_SACK		3
#define SYN_TIMESTAMP		4
#define SYN_OPTION_BITS		3

#define MOST_HOPS		40
/* the MSS that devices on the way like to write into SYNs without adapting the window */
#define USUAL_MSS		1460
/* what a packet has besides: of IPv4, whatever its family */
#define USUAL_HEADERS		(sizeof(struct ip) + sizeof(struct tcp))

/* One step: notes an option of the SYN and goes to the next. */
static int note_option(__unused __u32 i, void *arg)
{
	struct pf_scratch *s = ((struct pf_loop *)arg)->s;
	__u32 offset = s->cursor, left = s->cursor_end - offset, code;
	const __u8 *option;
	__u8 type, length = 1;

	if (offset >= s->cursor_end || offset >= TCP_MAX_OPTIONS)
		return 1;
	option = s->buffer + offset;
	type = option[0];
	if (type == TCPOPT_EOL)
		return 1;
	if (type != TCPOPT_NOP)
		length = left < 2 ? 0 : option[1];
	s->syn.odd = type != TCPOPT_NOP && (length < 2 || length > left);
	switch (type) {
	case TCPOPT_NOP:
		code = SYN_NOP;
		break;
	case TCPOPT_MAXSEG:
		/* OpenBSD turns the bytes of what it has round even if there are no new ones */
		s->syn.mss = length >= TCPOLEN_MAXSEG ? option[2] << 8 | option[3] :
							(__u16)(s->syn.mss << 8 | s->syn.mss >> 8);
		code = SYN_MSS;
		break;
	case TCPOPT_WINDOW:
		if (length >= TCPOLEN_WINDOW)
			s->syn.scale = option[2];
		code = SYN_WINDOW_SCALE;
		break;
	case TCPOPT_SACK_PERMITTED:
		code = SYN_SACK;
		break;
	case TCPOPT_TIMESTAMP:
		if (length >= TCPOLEN_TIMESTAMP &&
		    !(option[2] | option[3] | option[4] | option[5]))
			s->syn.flags |= PF_SYN_ZERO_TIMESTAMP;
		code = SYN_TIMESTAMP;
		break;
	default:
		s->syn.odd = 1;
	}
	if (s->syn.odd)
		return 1;
	s->syn.options = s->syn.options << SYN_OPTION_BITS | code;
	s->syn.option_count++;
	s->cursor += length;
	return 0;
}

__inline bool measures(__u8 kind, __u16 wanted, __u16 number)
{
	switch (kind) {
	case PF_MEASURE_ANY:
		return true;
	case PF_MEASURE_EXACTLY:
		return number == wanted;
	case PF_MEASURE_MULTIPLE:
		return wanted && number % wanted == 0;
	}
	return false;
}

__inline bool fits_window(const struct pf_fingerprint *known, const struct pf_syn *syn)
{
	__u32 headers = known->window_kind == PF_MEASURE_PACKETS ? USUAL_HEADERS : 0;

	if (known->window_kind < PF_MEASURE_SEGMENTS)
		return measures(known->window_kind, known->window, syn->window);
	return syn->mss && (syn->window == (syn->mss + headers) * known->window ||
			    syn->window == (USUAL_MSS + headers) * known->window);
}

/* One step: whether the next fingerprint fits. */
static int compare_fingerprint(__u32 i, void *arg)
{
	struct pf_scratch *s = ((struct pf_loop *)arg)->s;
	__u32 index = pf_copy(s->generation) * PF_FINGERPRINTS + i;
	const struct pf_fingerprint *known = bpf_map_lookup_elem(&fingerprints, &index);
	const struct pf_syn *syn = &s->syn;

	if (!known || i >= PF_FINGERPRINTS)
		return 1;
	if (known->options != syn->options || known->option_count != syn->option_count ||
	    known->flags != syn->flags || known->ttl < s->pd.ttl ||
	    known->ttl - s->pd.ttl > MOST_HOPS ||
	    !measures(known->size_kind, known->size, s->pd.length) ||
	    !measures(known->mss_kind, known->mss, syn->mss) ||
	    !measures(known->scale_kind, known->scale, syn->scale) || !fits_window(known, syn))
		return 0;
	s->systems = known->systems;
	return 1;
}

/* Finds the systems that may have sent the packet: s->systems, of those that rules name. A SYN that
 * was made again from a cookie is ours. */
__global int find_systems(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_loop loop = { .s = s };
	struct pf_config *config;

	if (!s)
		return 0;
	config = pf_config(s->generation);
	if (!config)
		return 0;
	s->systems_known = 1;
	s->systems = config->unknown_systems;
	if ((s->pd.tcp.flags & (TH_SYN | TH_ACK)) != TH_SYN || s->cookie_mss)
		return 0;
	__builtin_memset(&s->syn, 0, sizeof(s->syn));
	s->syn.window = bpf_ntohs(s->pd.tcp.window);
	if (s->pd.family == AF_INET6 || s->pd.ip_offset & bpf_htons(IP_DF))
		s->syn.flags = PF_SYN_DF;
	if (load_tcp_options(skb, s))
		bpf_loop(TCP_MAX_OPTIONS, note_option, &loop, 0);
	if (!s->syn.odd)
		bpf_loop(config->fingerprints, compare_fingerprint, &loop, 0);
	return 0;
}

/* Whether the packet comes from the system that a rule names: 1 + its bit. Only segments of TCP
 * tell. */
__inline bool is_from_system(struct __sk_buff *skb, struct pf_scratch *s, __u8 os)
{
	if (s->pd.virtual_protocol != IPPROTO_TCP)
		return false;
	if (!s->systems_known)
		find_systems(skb, s);
	return s->systems >> ((os - 1) & 63) & 1;
}

#endif /* PF_FINGERPRINT_H */
