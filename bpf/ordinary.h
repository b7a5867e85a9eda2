/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Ordinary packets, and states that want nothing of theirs but to judge, count and translate them.
 * Most packets of most hosts are such, so what filter.h does with them is done here at once, from
 * the bytes of the frame. shortcut.h does so on the tc hooks, express.h in XDP.
 */
#ifndef PF_ORDINARY_H
#define PF_ORDINARY_H

#include "act.h"
#include "config.h"
#include "interface.h"
#include "kern.h"
#include "packet.h"
#include "path.h"
#include "reason.h"
#include "scratch.h"
#include "state.h"
#include "tcp.h"
#include "time.h"
#include "track.h"

/* ---- ordinary packets: one header behind the other, each as it should be ----------------------- */

/* Whether the flags are some that a connection has, which nobody puts right on the long way. */
__inline bool has_usual_flags(const struct tcp *tcp)
{
	__u8 flags = tcp->flags & (TH_SYN | TH_FIN | TH_RST | TH_ACK);

	return flags & TH_ACK ? !(flags & TH_SYN && flags & (TH_FIN | TH_RST)) :
				(flags == TH_SYN || flags == TH_RST) &&
				!(tcp->flags & (TH_PUSH | TH_URG));
}

/* Whether the segment is from the middle of a connection. */
__inline bool is_in_midstream(const struct pf_pdesc *pd)
{
	return (pd->tcp.flags & (TH_SYN | TH_FIN | TH_RST | TH_ACK)) == TH_ACK;
}

struct pf_bytes {
	void *data;
	void *end;
};

__inline bool read_ordinary_tcp(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct tcp *tcp = frame.data + at;
	__u32 header_length;

	if ((void *)(tcp + 1) > frame.end || !has_usual_flags(tcp))
		return false;
	header_length = (tcp->offset >> 4) * 4;
	if (header_length < sizeof(*tcp) || pd->offset + header_length > pd->length ||
	    !tcp->destination || tcp->offset & 0x0f || (tcp->urgent && !(tcp->flags & TH_URG)))
		return false;
	pd->payload = pd->length - pd->offset - header_length;
	/* none, or a timestamp alone, as RFC 7323 recommends to align it */
	pd->usual_options = header_length == sizeof(*tcp);
	if (header_length == sizeof(*tcp) + 12 && (void *)(tcp + 1) + 4 <= frame.end)
		pd->usual_options = *(__be32 *)(tcp + 1) == bpf_htonl(TCP_USUAL_OPTIONS);
	pd->tcp = *tcp;
	pd->source_port = tcp->source;
	pd->destination_port = tcp->destination;
	return true;
}

__inline bool read_ordinary_udp(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct udp *udp = frame.data + at;
	__u32 length;

	if ((void *)(udp + 1) > frame.end)
		return false;
	length = bpf_ntohs(udp->length);
	if (length < sizeof(*udp) || pd->offset + length > pd->length || !udp->destination)
		return false;
	pd->source_port = udp->source;
	pd->destination_port = udp->destination;
	return true;
}

/* True if the checksum of a header without options is right. */
__inline bool is_header_sound(const struct ip *ip)
{
	const word_of_parts *word = (const void *)ip;
	__u64 sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];

	sum = (sum >> 32) + (__u32)sum;
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff) == 0xffff;
}

__inline bool read_ordinary_ip(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct ip *ip = frame.data + at;

	if ((void *)(ip + 1) > frame.end || ip->version_ihl != 0x45 ||
	    ip->offset & ~bpf_htons(IP_DF) || !is_header_sound(ip))
		return false;
	pd->family = AF_INET;
	pd->length = bpf_ntohs(ip->length);
	pd->offset = sizeof(*ip);
	pd->protocol = ip->protocol;
	pd->ttl = ip->ttl;
	pd->tos = ip->tos & ~IPTOS_ECN_MASK;
	set_inet_ends(pd, ip->source, ip->destination);
	return true;
}

__inline bool read_ordinary_ip6(struct pf_bytes frame, struct pf_pdesc *pd, __u32 at)
{
	struct ip6 *ip = frame.data + at;

	if ((void *)(ip + 1) > frame.end || (bpf_ntohl(ip->flow) >> 28) != 6)
		return false;
	pd->family = AF_INET6;
	pd->length = bpf_ntohs(ip->payload_length) + sizeof(*ip);
	pd->offset = sizeof(*ip);
	pd->protocol = ip->next_header;
	pd->ttl = ip->hop_limit;
	pd->tos = (bpf_ntohl(ip->flow) & 0x0fc00000) >> 20;
	__builtin_memcpy(&pd->source, ip->source, sizeof(ip->source));
	__builtin_memcpy(&pd->destination, ip->destination, sizeof(ip->destination));
	return true;
}

/* Reads the headers of a packet whose frame has `length` bytes and an Ethernet header, or none. */
__inline bool read_ordinary(struct pf_bytes frame, struct pf_pdesc *pd, __u32 length, __be16 type,
			    bool has_link_header)
{
	struct ethernet *ethernet = frame.data;
	__u32 at = 0;

	if (has_link_header) {
		if ((void *)(ethernet + 1) > frame.end)
			return false;
		type = ethernet->type;
		at = sizeof(*ethernet);
	}
	pd->ip = at;
	if (type == bpf_htons(ETHERTYPE_IP)) {
		if (!read_ordinary_ip(frame, pd, at))
			return false;
		at += sizeof(struct ip);
	} else if (type == bpf_htons(ETHERTYPE_IPV6)) {
		if (!read_ordinary_ip6(frame, pd, at))
			return false;
		at += sizeof(struct ip6);
	} else {
		return false;
	}
	if (pd->ip + pd->length > length)
		return false;
	pd->virtual_protocol = pd->protocol;
	pd->kernel_header = 0;
	if (pd->protocol == IPPROTO_TCP)
		return read_ordinary_tcp(frame, pd, at);
	return pd->protocol == IPPROTO_UDP && read_ordinary_udp(frame, pd, at);
}

/* ---- their state --------------------------------------------------------------------------------- */

/* Sets the packet's key, and asks the memory for the way from it to its state, where there are
 * any. */
__inline void seek_state(const struct pf_status *status, struct pf_scratch *s)
{
	set_key(&s->key, &s->pd, s->pd.direction);
	s->sought = status->states && seek_key(&s->key, &s->spot);
}

/* Looks for the state of s->key among those that have one of a kind, and notes its place in s->ref.
 * False if that is the second one found: which of them it is the long way knows. */
__inline bool look_ordinary(struct pf_scratch *s, __u32 made, struct pf_state **found)
{
	struct pf_state *state;

	set_made(&s->key, made);
	if (!(made || s->key.interface ? find_key(&s->key, &s->looked_at) :
					 find_key_at(&s->key, &s->spot, &s->looked_at)))
		return true;
	s->known = 1;
	state = bpf_map_lookup_elem(&states, &s->looked_at.index);
	if (!state ||
	    (made && !same_key(&s->key, &state->key[near_side(made, s->pd.direction)])))
		return true;
	if (*found)
		return false;
	s->ref = s->looked_at;
	*found = state;
	return true;
}

/* The same among all, but for those whose packets cross to the other family. */
__inline bool look_for_ordinary(const struct pf_status *status, struct pf_scratch *s,
				struct pf_state **found)
{
	return look_ordinary(s, PF_MADE_PLAIN, found) &&
	       (!status->translated || (look_ordinary(s, PF_MADE_IN, found) &&
					look_ordinary(s, PF_MADE_OUT, found)));
}

/* Whether the state of s->ref has just ended, for its source was flushed. */
__inline bool flushed_state(const struct pf_scratch *s)
{
	const struct pf_status *status = pf_status();

	return status && is_flushed(status, s->ref.index, s->ref.serial);
}

/* Finds the state of s->key, bound or floating, if it is a simple one and the packet from its
 * midst. s->known says whether there is any that might know the packet. */
__inline struct pf_state *find_ordinary_state(const struct pf_status *status, struct pf_scratch *s,
					      __u32 interface)
{
	struct pf_state *state = NULL;

	s->known = 0;
	if (!s->sought)
		return NULL;
	if (status->bound && interface) {
		s->key.interface = interface;
		if (!look_for_ordinary(status, s, &state))
			return NULL;
		s->key.interface = 0;
	}
	if (!state && !look_for_ordinary(status, s, &state))
		return NULL;
	if (!state || (s->pd.protocol == IPPROTO_TCP && !is_in_midstream(&s->pd)) ||
	    !(state->flags & PF_STATE_SIMPLE) || state->timeout >= PF_TIMEOUT_PURGE ||
	    expired(state->rule_slot, state->timeout, state->expire, s->generation, s->now))
		return NULL;
	return flushed_state(s) ? NULL : state;
}

/* Gives the packet the ends that it has on the other side of the state that passed it. */
__inline void translate_ordinary(struct pf_scratch *s)
{
	if (s->translated == PF_TRANSLATED_PACKET)
		set_ends(&s->pd, &s->far_key, s->pd.direction);
}

/* The state passes the packet: counts it, and notes what it wants. Its lock is held. */
__inline void pass_ordinary(struct pf_state *state, struct pf_scratch *s, bool forward)
{
	count_in_state(state, s, forward);
	s->against_state = !forward;
	s->translated = state->key[PF_WIRE].made ? PF_TRANSLATED_PACKET : PF_TRANSLATED_NOT;
	if (s->translated)
		s->far_key = state->key[far_side(s->pd.direction)];
}

/* Lets a state judge the segment, and count it if it fits. Its lock is held. */
__inline bool judge_segment(struct pf_state *state, struct pf_scratch *s)
{
	bool forward = state->direction == s->pd.direction;
	struct pf_peer *x = forward ? &state->src : &state->dst;
	struct pf_peer *y = forward ? &state->dst : &state->src;

	if ((state->max_mss && !s->pd.usual_options) || x->state != PF_TCPS_ESTABLISHED ||
	    y->state != PF_TCPS_ESTABLISHED || x->seqdiff || y->seqdiff ||
	    track_tcp(state, NULL, s, x, y) != PF_TRACK_PASS)
		return false;
	pass_ordinary(state, s, forward);
	return true;
}

/* Lets a state count the datagram, which always fits. Its lock is held. */
__inline void take_datagram(struct pf_state *state, struct pf_scratch *s)
{
	bool forward = state->direction == s->pd.direction;

	track_other(state, s, forward ? &state->src : &state->dst,
		    forward ? &state->dst : &state->src);
	pass_ordinary(state, s, forward);
}

/* Either. `protocol` is what the compiler knows of the packet, TCP or UDP. */
__inline bool judge_ordinary(struct pf_state *state, struct pf_scratch *s, const __u8 protocol)
{
	if (protocol == IPPROTO_TCP)
		return judge_segment(state, s);
	take_datagram(state, s);
	return true;
}

/* Whether the state is still the one meant, and not over. Its lock is held. */
__inline bool is_meant(const struct pf_state *state, const struct pf_state_ref *ref)
{
	return state->serial == ref->serial && state->timeout < PF_TIMEOUT_PURGE;
}

/* Whether the state, that of s->ref, passes the packet, which it has counted then. */
__inline bool passes(struct pf_state *state, struct pf_scratch *s, const __u8 protocol)
{
	bool fits = false;

	bpf_spin_lock(&state->lock);
	if (is_meant(state, &s->ref)) {
		fits = judge_ordinary(state, s, protocol);
		s->peer = state->peer;
	}
	bpf_spin_unlock(&state->lock);
	return fits;
}

/* Whether the state still has the path that was read from it. Its lock is held. */
__inline bool has_path(const struct pf_state *state, const struct pf_path *path)
{
	return state->path.hop == path->hop && state->path.came_in_by == path->came_in_by &&
	       state->path.epoch == path->epoch && state->path.second == path->second;
}

/* The same of the state of s->onward, where the packet leaves, which has the path s->path. */
__inline bool passes_onward(struct pf_state *state, struct pf_scratch *s, const __u8 protocol)
{
	bool fits = false;

	bpf_spin_lock(&state->lock);
	if (is_meant(state, &s->peer) && has_path(state, &s->path))
		fits = judge_ordinary(state, s, protocol);
	bpf_spin_unlock(&state->lock);
	return fits;
}

/* Both of segments. Apart from those who ask, as all that the verifier has to see of tracking is
 * seen once then; datagrams have no part in that, and are spared the call. */
__global int passes_segment(struct pf_scratch *s)
{
	struct pf_state *state = s ? bpf_map_lookup_elem(&states, &s->ref.index) : NULL;

	return state && passes(state, s, IPPROTO_TCP);
}

__global int passes_segment_onward(struct pf_scratch *s)
{
	struct pf_state *state = s ? bpf_map_lookup_elem(&states, &s->peer.index) : NULL;

	return state && passes_onward(state, s, IPPROTO_TCP);
}

/* Whether the state, that of s->ref, passes the packet, which it has counted then: else that is for
 * the long way. */
__inline bool fits_state(struct pf_scratch *s, struct pf_state *state)
{
	return s->pd.protocol == IPPROTO_TCP ? passes_segment(s) : passes(state, s, IPPROTO_UDP);
}

/* ---- what is remembered -------------------------------------------------------------------------- */

static int count_match_ordinary(__u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_extension *extension = loop->map;

	if (i >= PF_MATCH_RULES || i >= extension->match_count)
		return 1;
	count_rule(loop->s, extension->match[i].slot, loop->s->against_state, PF_TABLE_MATCH);
	return 0;
}

/* Counts the packet for the match rules of the state of s->ref. */
__global int count_matches(struct pf_scratch *s)
{
	struct pf_loop loop = { .s = s };
	struct pf_state *state;

	if (!s)
		return 0;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return 0;
	loop.map = extension_of(state, &s->ref.index);
	if (loop.map)
		bpf_loop(PF_MATCH_RULES, count_match_ordinary, &loop, 0);
	return 0;
}

/* Counts the packet that the state of s->ref passes, as account() does for any. */
__inline void count_shortly(struct pf_scratch *s)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);
	__u32 slot, out;

	if (!state)
		return;
	slot = state->rule_slot;
	out = s->pd.direction == PF_OUT;
	count_state(PF_COUNT_SEARCHES);
	count_interface(s, false);
	/* what counting for tables asks of the packet: the one before has left that of its own */
	s->has_state = 1;
	s->cross_to = 0;
	count_rule(s, slot, out, PF_TABLE_PASS);
	if (state->anchor_slot != PF_IDLE_SLOT)
		count_slot(s, state->anchor_slot, out);
	if (state->flags & PF_STATE_EXTENSION)
		count_matches(s);
}

#endif /* PF_ORDINARY_H */
