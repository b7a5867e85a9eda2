/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * From a frame to a packet descriptor: which headers there are, and whether they can be believed
 * (pf-semantics section 4). Functions return the reason to drop the packet, 0 for none.
 */
#ifndef PF_PACKET_H
#define PF_PACKET_H

#include "config.h"
#include "frame.h"
#include "ip.h"
#include "ip6.h"
#include "kern.h"
#include "scratch.h"

/* ---- the protocol's header ------------------------------------------------------------------- */

__inline int read_tcp(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	int reason = pull(skb, pd, pd->offset, &pd->tcp, sizeof(pd->tcp));
	__u32 header_length;

	if (reason)
		return reason;
	header_length = (pd->tcp.offset >> 4) * 4;
	if (!pd->tcp.destination || header_length < sizeof(pd->tcp) ||
	    pd->offset + header_length > pd->length)
		return PF_REASON_SHORT;
	pd->payload = pd->length - pd->offset - header_length;
	pd->source_port = pd->tcp.source;
	pd->destination_port = pd->tcp.destination;
	return 0;
}

__inline int read_udp(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	int reason = pull(skb, pd, pd->offset, &pd->udp, sizeof(pd->udp));
	__u32 length;

	if (reason)
		return reason;
	length = bpf_ntohs(pd->udp.length);
	if (!pd->udp.destination || length < sizeof(pd->udp) || pd->offset + length > pd->length)
		return PF_REASON_SHORT;
	pd->source_port = pd->udp.source;
	pd->destination_port = pd->udp.destination;
	return 0;
}

__inline int read_icmp(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	return pull(skb, pd, pd->offset, &pd->icmp, ICMP_HEADER);
}

__inline int read_icmp6(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	int reason = pull(skb, pd, pd->offset, &pd->icmp, ICMP_HEADER);

	if (reason)
		return reason;
	switch (pd->icmp.type) {
	case ND_ROUTER_SOLICIT:
	case ND_ROUTER_ADVERT:
	case ND_NEIGHBOR_SOLICIT:
	case ND_NEIGHBOR_ADVERT:
	case ND_REDIRECT:
		if (pd->ttl != 255)	/* RFC 4861: it came from further away than it may */
			return PF_REASON_NORMALIZE;
	}
	switch (pd->icmp.type) {
	case MLD_LISTENER_QUERY:
	case MLD_LISTENER_REPORT:
	case ND_NEIGHBOR_SOLICIT:
	case ND_NEIGHBOR_ADVERT:
		return pull(skb, pd, pd->offset, &pd->icmp, sizeof(pd->icmp));
	}
	return 0;
}

/* FreeBSD's pf knows SCTP's ports; to OpenBSD's it is a protocol without. So they are read only if
 * some rule names them. */
__inline bool reads_sctp_ports(const struct pf_scratch *s)
{
	const struct pf_config *config = pf_config(s->generation);

	return config && config->sctp_ports;
}

__inline int read_sctp(struct __sk_buff *skb, struct pf_scratch *s, struct pf_pdesc *pd)
{
	int reason;

	if (!reads_sctp_ports(s))
		return 0;
	reason = pull(skb, pd, pd->offset, &pd->sctp, sizeof(pd->sctp));
	if (reason)
		return reason;
	if (!pd->sctp.source || !pd->sctp.destination)
		return PF_REASON_SHORT;
	pd->source_port = pd->sctp.source;
	pd->destination_port = pd->sctp.destination;
	return 0;
}

/* Fills s->pd, of which find_ip and the caller have set ip, family and direction. */
__global int setup_pdesc(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_pdesc *pd;
	int reason;

	if (!s)
		return PF_REASON_SHORT;
	pd = &s->pd;
	pd->offset = 0;
	pd->limit = skb->len - pd->ip;
	pd->length = pd->limit;
	pd->payload = 0;
	pd->fragment = 0;
	pd->jumbo = 0;
	pd->kernel_header = 0;
	pd->ip_offset = 0;
	pd->bad_options = 0;
	pd->non_initial = 0;
	pd->window_scale = 0;
	pd->source_port = pd->destination_port = 0;
	pd->protocol = 0;
	pd->virtual_protocol = 0;

	reason = pd->family == AF_INET ? read_ip(skb, s, pd, false) : read_ip6(skb, s, pd, false);
	if (reason) {
		/* the interface counts it without its bytes, as OpenBSD, which takes the length
		 * when the headers were good */
		pd->length = 0;
		return reason;
	}
	switch (pd->virtual_protocol) {
	case IPPROTO_TCP:
		return read_tcp(skb, pd);
	case IPPROTO_UDP:
		return read_udp(skb, pd);
	case IPPROTO_SCTP:
		return read_sctp(skb, s, pd);
	case IPPROTO_ICMP:
		return read_icmp(skb, pd);
	case IPPROTO_ICMPV6:
		return read_icmp6(skb, pd);
	}
	return 0;
}

/* ---- how much it is --------------------------------------------------------------------------- */

/* Returns how many segments the packet holds. Virtual machines and tap devices leave the number to
 * the kernel (SKB_GSO_DODGY), which counts only when it cuts the packet. */
__inline __u32 number_of_segments(const struct __sk_buff *skb, __u32 payload)
{
	__u32 size = skb->gso_size, segments = skb->gso_segs;

	return segments || !size ? segments : (payload + size - 1) / size;
}

/* A GSO packet counts as the segments that it holds, each with its headers. */
/* Differs from OpenBSD: linux.md, "Large packets" */
__inline void count_segments(const struct __sk_buff *skb, struct pf_scratch *s)
{
	const struct pf_pdesc *pd = &s->pd;
	__u32 headers = pd->offset;

	s->segments = 1;
	s->bytes = s->length = pd->length;
	if (!skb->gso_size)
		return;
	switch (pd->virtual_protocol) {
	case IPPROTO_TCP:
		headers += (pd->tcp.offset >> 4) * 4;
		break;
	case IPPROTO_SCTP:
		headers += sizeof(struct sctp);
		break;
	default:
		headers += sizeof(struct udp);
	}
	if (headers >= pd->length)
		return;
	s->segments = max(number_of_segments(skb, pd->length - headers), 1);
	headers -= pd->kernel_header;
	s->bytes -= pd->kernel_header;
	s->length = min(s->bytes, headers + skb->gso_size);
	s->bytes += (__u64)headers * (s->segments - 1);
}

/* ---- TCP options ----------------------------------------------------------------------------- */

/* Loads the TCP options to s->buffer and sets the cursor to the first. False if there are none. */
__inline bool load_tcp_options(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 length = (s->pd.tcp.offset >> 4) * 4 - sizeof(struct tcp);

	if (load_bytes(skb, s->pd.ip + s->pd.offset + sizeof(struct tcp), s->buffer, length,
		       TCP_MAX_OPTIONS))
		return false;
	s->cursor = 0;
	s->cursor_end = length;
	return true;
}

enum option_step {
	OPTION_NONE,			/* there is no room for one more */
	OPTION_OTHER,
	OPTION_FOUND,
};

/*
 * Moves the cursor over one option, and says whether it was one of this type of at least this size;
 * `*at` is its place in s->buffer then. Padding with end-of-options is common enough that nobody
 * stops there.
 */
__inline enum option_step step_over_option(struct pf_scratch *s, __u8 type, __u32 size, __u32 *at)
{
	__u32 offset = s->cursor;
	__u8 length;

	if (offset + size > s->cursor_end || offset > TCP_MAX_OPTIONS - size)
		return OPTION_NONE;
	if (s->buffer[offset] == TCPOPT_EOL || s->buffer[offset] == TCPOPT_NOP) {
		s->cursor++;
		return OPTION_OTHER;
	}
	length = s->buffer[offset + 1];
	s->cursor += max(length, 2);
	if (s->buffer[offset] != type || length < size)
		return OPTION_OTHER;
	*at = offset;
	return OPTION_FOUND;
}

static int find_window_scale(__unused __u32 i, void *arg)
{
	struct pf_scratch *s = ((struct pf_loop *)arg)->s;
	enum option_step step;
	__u32 at;

	step = step_over_option(s, TCPOPT_WINDOW, TCPOLEN_WINDOW, &at);
	if (step == OPTION_NONE)
		return 1;
	if (step == OPTION_FOUND)
		s->pd.window_scale = min(s->buffer[at + 2], TCP_MAX_WINSHIFT) | PF_WSCALE_FLAG;
	return 0;
}

/* The window scale that a SYN offers, kept in the descriptor. */
__global int read_window_scale(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_loop loop = { .s = s };

	if (!s)
		return 0;
	s->pd.window_scale = 0;
	if (load_tcp_options(skb, s))
		bpf_loop(TCP_MAX_OPTIONS, find_window_scale, &loop, 0);
	return 0;
}

#endif /* PF_PACKET_H */
