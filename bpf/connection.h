/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Sockets of this host that have both ends of a diverted connection, and the end of a state whose
 * socket is gone. OpenBSD removes such a state when the socket closes (pf_remove_divert_state). No
 * hook of this data plane hears of that, so the next packet with the state's ends looks for the
 * socket, and removes the state if there is none.
 */
#ifndef PF_CONNECTION_H
#define PF_CONNECTION_H

#include "kern.h"
#include "owner.h"
#include "scratch.h"
#include "state.h"
#include "state_key.h"

/* True if a socket has both ends of the conversation: TCP has accepted it, or begun it, or UDP's is
 * connected. */
__inline bool has_connection(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 size,
			     bool tcp)
{
	struct bpf_sock *socket;
	bool connected;

	if (tcp) {
		socket = bpf_skc_lookup_tcp(skb, tuple, size, BPF_F_CURRENT_NETNS, 0);
		if (!socket)
			return false;
		connected = socket->state != BPF_TCP_LISTEN;
		bpf_sk_release(socket);
		return connected;
	}
	socket = bpf_sk_lookup_udp(skb, tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return false;
	connected = socket->state == BPF_TCP_ESTABLISHED;
	bpf_sk_release(socket);
	return connected;
}

/* Notes that a socket has both ends of the connection of the packet's state. */
/* Differs from OpenBSD: linux.md, "State of a closed socket" */
__inline void note_socket(const struct pf_scratch *s)
{
	struct pf_state *state = s->has_state ? bpf_map_lookup_elem(&states, &s->ref.index) : NULL;

	if (!state || state->flags & PF_STATE_SOCKET)
		return;
	bpf_spin_lock(&state->lock);
	if (state->serial == s->ref.serial)
		state->flags |= PF_STATE_SOCKET;
	bpf_spin_unlock(&state->lock);
}

/* True if the packet leaves a connected socket of this host. */
__inline bool is_from_connection(const struct __sk_buff *skb, const struct pf_pdesc *pd)
{
	struct bpf_sock *sender = skb->sk;

	return pd->direction == PF_OUT && sender && sender->state != BPF_TCP_CLOSE;
}

/* Returns 1 if the state of s->ref had a socket, and has none any more. Of TCP only a SYN asks: all
 * other segments of a connection without a socket end it by an RST. */
__global int has_lost_socket(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_sock_tuple tuple = {};
	const struct pf_state_key *key;
	struct pf_state *state;
	bool tcp;
	__u32 size;

	if (!s)
		return 0;
	tcp = s->pd.virtual_protocol == IPPROTO_TCP;
	if (tcp && (s->pd.tcp.flags & (TH_SYN | TH_ACK)) != TH_SYN)
		return 0;
	state = state_in_hand(s);
	if (!state || !(state->flags & PF_STATE_SOCKET) ||
	    is_from_connection(skb, &s->pd))
		return 0;
	key = &state->key[PF_STACK];
	size = set_tuple(&tuple, key->family, key->address[0], key->port[0], key->address[1],
			 key->port[1]);
	return !has_connection(skb, &tuple, size, tcp);
}

#endif /* PF_CONNECTION_H */
