/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `set syncookies`: a SYN makes no state but is answered with a number that the client must bring
 * back, from which its SYN is made again (pf-semantics section 14; RFC 4987, and
 * http://cr.yp.to/syncookies.html for the idea).
 *
 * The number is 24 bits of a keyed hash of the connection and eight bits of what the SYN said:
 *
 *  31                    8 7   5 4   2   1      0
 * +-----------------------+-----+-----+------+------+
 * |         hash          | MSS |scale| SACK | key  |   the low byte xor the high one
 * +-----------------------+-----+-----+------+------+
 *
 * Of the two keys one is in use for PF_COOKIE_LIFETIME and stays valid for as long again. Both hang
 * on the instance's secret.
 */
#ifndef PF_SYNCOOKIE_H
#define PF_SYNCOOKIE_H

#include "config.h"
#include "kern.h"
#include "packet.h"
#include "reason.h"
#include "scratch.h"
#include "siphash.h"
#include "synproxy.h"
#include "time.h"

#define PF_COOKIE_LIFETIME	15		/* seconds */
#define COOKIE_BITS		0xffu

/* What is remembered of the client's MSS is the next lower one of 216, 536, 1200, 1360, 1400, 1440,
 * 1452 and 1460 … */
__inline __u16 cookie_mss(__u32 place)
{
	__u64 four = place & 4 ? 1400ull | 1440ull << 16 | 1452ull << 32 | 1460ull << 48 :
				 216ull | 536ull << 16 | 1200ull << 32 | 1360ull << 48;

	return four >> (place & 3) * 16;
}

/* … and of its window scale of 0, 0, 1, 2, 4, 6, 7 and 8. */
__inline __u8 cookie_scale(__u32 place)
{
	return 0x0807060402010000ull >> (place & 7) * 8;
}

/* ---- keys ------------------------------------------------------------------------------------- */

__inline __u64 half_key(const struct pf_status *status, __u64 number)
{
	struct siphash h;

	siphash_begin(&h, status->secret[0], status->secret[1]);
	siphash_word(&h, number);
	return siphash_end(&h, 0, 8);
}

/* The next key. Nothing that was sent with the one in its place before is valid any more. */
__inline void new_cookie_key(struct pf_status *status, __u32 now)
{
	struct pf_syncookies *cookies = &status->syncookies;
	struct pf_test *driven = pf_driven();
	__u32 made = cookies->keys_made + 1, place = made & 1;

	cookies->in_flight[place] = 0;
	if (driven && driven->keeps_cookie_key) {
		cookies->key[place][0] = driven->cookie_key[0];
		cookies->key[place][1] = driven->cookie_key[1];
	} else {
		cookies->key[place][0] = half_key(status, (__u64)made << 1);
		cookies->key[place][1] = half_key(status, (__u64)made << 1 | 1);
	}
	cookies->next_key_at = now + PF_COOKIE_LIFETIME;
	cookies->keys_made = made;
}

/* What the clock does to keys, called by the sweep: ends the cookies when the flood is over, and
 * forgets keys that nobody needs any more. A key that a test has set stays. */
__global int turn_cookie_keys(__u32 generation, __u32 now)
{
	struct pf_config *config = pf_config(generation);
	struct pf_status *status = pf_status();
	struct pf_test *driven = pf_driven();
	struct pf_syncookies *cookies;
	__u64 in_flight;

	if (!config || !status)
		return 0;
	cookies = &status->syncookies;
	if (!cookies->next_key_at || now < cookies->next_key_at ||
	    (driven && driven->keeps_cookie_key))
		return 0;
	in_flight = (__u64)cookies->in_flight[0] + cookies->in_flight[1];
	if (config->syncookies == PF_SYNCOOKIES_NEVER ||
	    (config->syncookies == PF_SYNCOOKIES_ADAPTIVE &&
	     status->half_open + in_flight < config->syncookies_end))
		cookies->active = PF_COOKIES_OFF;
	if (cookies->active || in_flight) {
		new_cookie_key(status, now);
		return 0;
	}
	cookies->next_key_at = 0;
	__builtin_memset(cookies->key, 0, sizeof(cookies->key));
	return 0;
}

/* Whether a SYN is to be answered with a cookie; begins with it if there are too many handshakes
 * under way. */
__inline bool cookies_are_sent(struct pf_scratch *s, struct pf_status *status,
			       const struct pf_config *config)
{
	struct pf_syncookies *cookies = &status->syncookies;

	if (config->syncookies == PF_SYNCOOKIES_NEVER)
		return false;
	if (cookies->active)
		return cookies->active == PF_COOKIES_ON;
	if (config->syncookies == PF_SYNCOOKIES_ADAPTIVE &&
	    status->half_open <= config->syncookies_start)
		return false;
	if (__sync_val_compare_and_swap(&cookies->active, PF_COOKIES_OFF, PF_COOKIES_BEGIN) !=
	    PF_COOKIES_OFF)
		return false;
	new_cookie_key(status, s->now);
	cookies->active = PF_COOKIES_ON;
	if (config->syncookies == PF_SYNCOOKIES_ADAPTIVE)
		count_limit(PF_LCOUNT_SYNFLOODS);
	return true;
}

/* ---- cookies ---------------------------------------------------------------------------------- */

/* The 24 bits that nobody can guess, and eight more. */
__global __u32 hash_cookie(struct pf_scratch *s, __u32 cookie, __u32 seq)
{
	struct pf_status *status = pf_status();
	const struct pf_pdesc *pd;
	struct siphash h;
	__u64 ports, hash;

	if (!s || !status)
		return 0;
	pd = &s->pd;
	siphash_begin(&h, status->syncookies.key[cookie & 1][0],
		      status->syncookies.key[cookie & 1][1]);
	if (pd->family == AF_INET) {
		siphash_word(&h, (__u64)pd->destination.word[0] << 32 | pd->source.word[0]);
	} else {
		siphash_word(&h, pd->source.half[0]);
		siphash_word(&h, pd->source.half[1]);
		siphash_word(&h, pd->destination.half[0]);
		siphash_word(&h, pd->destination.half[1]);
	}
	ports = (__u64)seq << 32 | (__u32)pd->destination_port << 16 | pd->source_port;
	siphash_word(&h, ports);
	hash = siphash_end(&h, cookie & COOKIE_BITS, pd->family == AF_INET ? 17 : 41);
	return hash ^ hash >> 32;
}

/* Answers a SYN with a cookie, if it is time for that. Returns 1 if it did: the SYN goes no
 * further. Not on a bridge, as with synproxy. */
/* Differs from OpenBSD: linux.md, "Handshakes on a bridge" */
__global int send_cookie(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	__u32 mss, cookie, hash, i, place;
	struct pf_config *config;

	if (!s || !status || stays_on_bridge(skb, s))
		return 0;
	config = pf_config(s->generation);
	if (!config || !cookies_are_sent(s, status, config))
		return 0;
	read_window_scale(skb, s);
	mss = offered_mss(skb, s);
	mss = max(mss, DEFAULT_MSS);
	place = status->syncookies.keys_made & 1;
	cookie = place;
	for (i = 7; i > 0 && cookie_mss(i) > mss; i--)
		;
	cookie |= i << 5;
	for (i = 7; i > 0 && cookie_scale(i) > s->pd.window_scale; i--)
		;
	cookie |= i << 2;
	hash = hash_cookie(s, cookie, bpf_ntohl(s->pd.tcp.seq));
	answer_client(s, &s->reply, (hash & ~COOKIE_BITS) | (cookie ^ hash >> 24), mss);
	__sync_fetch_and_add(&status->syncookies.in_flight[place], 1);
	count_limit(PF_LCOUNT_SYNCOOKIES_SENT);
	return 1;
}

/* Whether the packet in hand may bring a cookie back. */
__inline bool may_have_cookie(const struct pf_scratch *s)
{
	return s->pd.direction == PF_IN && s->pd.virtual_protocol == IPPROTO_TCP &&
	       (s->pd.tcp.flags & (TH_SYN | TH_ACK | TH_RST)) == TH_ACK;
}

/* The cookie that the segment brings back, if it is one of ours and was not brought before; else
 * -1. */
__global int valid_cookie(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	struct pf_syncookies *cookies;
	__u32 seq, ack, cookie, hash;

	if (!s || !status)
		return -1;
	cookies = &status->syncookies;
	if (!cookies->in_flight[0] && !cookies->in_flight[1])
		return -1;
	seq = bpf_ntohl(s->pd.tcp.seq) - 1;
	ack = bpf_ntohl(s->pd.tcp.ack) - 1;
	cookie = (ack & COOKIE_BITS) ^ ack >> 24;
	if (!cookies->in_flight[cookie & 1])
		return -1;
	hash = hash_cookie(s, cookie, seq);
	if ((hash & ~COOKIE_BITS) != (ack & ~COOKIE_BITS))
		return -1;
	/* the last one may have been taken meanwhile */
	if (!__sync_fetch_and_sub(&cookies->in_flight[cookie & 1], 1)) {
		__sync_fetch_and_add(&cookies->in_flight[cookie & 1], 1);
		return -1;
	}
	count_limit(PF_LCOUNT_SYNCOOKIES_VALID);
	return cookie;
}

/* ---- the SYN made again ----------------------------------------------------------------------- */

/* Makes the descriptor that of the client's SYN, as far as its cookie remembers it; that of the
 * packet is kept in s->quoted. */
__inline void describe_syn(struct pf_scratch *s, __u32 cookie)
{
	struct pf_pdesc *pd = &s->pd;
	struct tcp *tcp = &pd->tcp;

	s->quoted = *pd;
	s->waiting.bytes = s->bytes;
	s->waiting.segments = s->segments;
	s->waiting.length = s->length;
	s->waiting.tag = s->tag;
	s->waiting.prio = s->prio;
	tcp->seq = bpf_htonl(bpf_ntohl(tcp->seq) - 1);
	tcp->ack = 0;
	tcp->offset = (sizeof(*tcp) + TCPOLEN_MAXSEG) / 4 << 4;
	tcp->flags = TH_SYN;
	tcp->window = bpf_htons(cookie_scale(cookie >> 2));	/* sic, as OpenBSD */
	tcp->urgent = 0;
	pd->payload = 0;
	pd->window_scale = 0;
	pd->bad_options = 0;
	pd->tos = pd->family == AF_INET ? IPTOS_LOWDELAY : 0;
	pd->ip_offset = pd->family == AF_INET ? bpf_htons(IP_DF) : 0;
	pd->ip_header = pd->family == AF_INET ? sizeof(struct ip) : sizeof(struct ip6);
	pd->length = pd->ip_header + sizeof(*tcp) + TCPOLEN_MAXSEG;
	s->segments = 1;
	s->bytes = s->length = pd->length;
	s->empty_ack = 0;
	s->tag = 0;
	s->prio = PF_DEFAULT_PRIO;
	s->cookie_mss = cookie_mss(cookie >> 5);
}

/* Back to the packet in hand. */
__inline void describe_packet(struct pf_scratch *s)
{
	s->pd = s->quoted;
	s->bytes = s->waiting.bytes;
	s->segments = s->waiting.segments;
	s->length = s->waiting.length;
	s->tag = s->waiting.tag;
	s->prio = s->waiting.prio;
	s->empty_ack = !s->pd.payload;
	s->cookie_mss = 0;
}

/* What a rule answered to the SYN that was made again goes to the client, though its segment is
 * dropped. */
/* Differs from OpenBSD: linux.md, "Refused cookies" */
__global int answer_to_syn(struct pf_scratch *s)
{
	if (s)
		s->reply = s->copy;
	return 0;
}

/* The client has shaken hands with us already: its segment, which is in hand again, makes the state
 * s->ref ask the server. */
__global int ask_with_cookie(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	const struct pf_extension *extension;
	const struct tcp *tcp;
	struct pf_state *state;
	int track = PF_TRACK_GONE;
	bool half = false;

	if (!s || !status)
		return PF_TRACK_GONE;
	tcp = &s->pd.tcp;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_TRACK_GONE;
	extension = extension_of(state, &s->ref.index);
	if (!extension)
		return PF_TRACK_GONE;
	bpf_spin_lock(&state->lock);
	s->outcome.state_id = state->id;
	if (state->serial == s->ref.serial && state->timeout < PF_TIMEOUT_PURGE) {
		half = half_open(&state->src);
		state->src.seqlo = bpf_ntohl(tcp->seq) - 1;
		state->src.seqhi = state->dst.seqhi = bpf_ntohl(tcp->ack) - 1;
		state->src.state = PF_TCPS_PROXY_DST;
		track = ask_server(state, extension, s);
	}
	bpf_spin_unlock(&state->lock);
	if (half)
		__sync_fetch_and_sub(&status->half_open, 1);
	return track;
}

#endif /* PF_SYNCOOKIE_H */
