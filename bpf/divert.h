/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `divert-to` and `divert-reply` (divert_packet.h has the third of them): what comes in goes to a
 * socket of this host, whatever address it is for. The mark has the kernel deliver it here, by the
 * policy rule that pfctl makes (crates/kernel's divert.rs); the socket is found by the rule's
 * address, or by the packet's once a socket is connected. It must be IP_TRANSPARENT, since it
 * answers in somebody else's name. What is neither TCP nor UDP the kernel gives to the raw sockets
 * for its protocol, and ICMP errors to whom they are about.
 */
#ifndef PF_DIVERT_H
#define PF_DIVERT_H

#include "connection.h"
#include "forward.h"
#include "kern.h"
#include "mark.h"
#include "reply.h"
#include "scratch.h"
#include "time.h"
#include "usage.h"

/* What the rule that decided says; 0 if nothing. */
__inline struct pf_rule_states *find_divert(struct pf_scratch *s)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &s->rule.slot);

	return s->pd.direction == PF_IN && rule &&
	       (rule->divert == PF_DIVERT_TO || rule->divert == PF_DIVERT_REPLY) ? rule : NULL;
}

/* Points the packet's ends at the socket that the rule names. */
__inline void aim_at(struct bpf_sock_tuple *tuple, const struct pf_pdesc *pd,
		     const struct pf_rule_states *rule)
{
	if (pd->family == AF_INET) {
		__builtin_memcpy(&tuple->ipv4.daddr, rule->divert_address, 4);
		tuple->ipv4.dport = rule->divert_port;
		return;
	}
	__builtin_memcpy(tuple->ipv6.daddr, rule->divert_address, 16);
	tuple->ipv6.dport = rule->divert_port;
}

/* Hands the packet to the socket that listens where `divert-to` says, unless another one has both
 * ends of the conversation, or the kernel knows whom it is for. Returns 0 if nobody listens. */
/* Differs from OpenBSD: linux.md, "Diverted UDP" */
/* Differs from OpenBSD: linux.md, "TIME-WAIT" */
__global int assign_socket(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_sock_tuple tuple = {};
	struct pf_rule_states *rule;
	struct bpf_sock *socket;
	__u32 size;
	long failed;
	bool tcp;

	if (!s)
		return 0;
	rule = find_divert(s);
	tcp = s->pd.virtual_protocol == IPPROTO_TCP;
	if (!rule)
		return 0;
	if (!tcp && s->pd.virtual_protocol != IPPROTO_UDP)
		return 1;
	size = set_tuple(&tuple, s->pd.family, &s->pd.source, s->pd.source_port,
			 &s->pd.destination, s->pd.destination_port);
	if (has_connection(skb, &tuple, size, tcp)) {
		note_socket(s);
		return 1;
	}
	if (rule->divert == PF_DIVERT_REPLY)
		return 1;
	aim_at(&tuple, &s->pd, rule);
	if (tcp)
		socket = bpf_skc_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	else
		socket = bpf_sk_lookup_udp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return 0;
	failed = bpf_sk_assign(skb, socket, 0);
	bpf_sk_release(socket);
	return !failed;
}

/* Nobody listens: tells the sender what the host would, were the address its own. */
__inline int refuse_diverted(struct pf_scratch *s)
{
	const struct tcp *tcp = &s->pd.tcp;

	if (s->pd.virtual_protocol != IPPROTO_TCP) {
		s->reply.kind = PF_REPLY_ICMP;
		s->reply.icmp_type = s->pd.family == AF_INET ? ICMP_UNREACH : ICMP6_DST_UNREACH;
		s->reply.icmp_code = s->pd.family == AF_INET ? ICMP_UNREACH_PORT :
							       ICMP6_DST_UNREACH_NOPORT;
		return PF_TCX_DROP;
	}
	if (tcp->flags & TH_RST)
		return PF_TCX_DROP;
	s->reply.kind = PF_REPLY_TCP;
	s->reply.tcp_flags = TH_RST | TH_ACK;
	s->reply.seq = bpf_ntohl(tcp->ack);
	s->reply.ack = bpf_ntohl(tcp->seq) + s->pd.payload + !!(tcp->flags & TH_SYN) +
		!!(tcp->flags & TH_FIN);
	return PF_TCX_DROP;
}

/* Diverts the packet. Returns what the program returns, unless there is a reply. A test has no
 * sockets. */
/* Differs from OpenBSD: linux.md, "Diverted packets" */
/* Differs from OpenBSD: linux.md, "Other diverted protocols" */
__inline int divert(struct __sk_buff *skb, struct pf_scratch *s, const struct pf_rule_states *rule)
{
	s->outcome.divert = rule->divert;
	if (driven_by_test())
		return PF_TCX_NEXT;
	if (!assign_socket(skb, s))
		return refuse_diverted(s);
	write_mark(skb, PF_MARK_GENERATED, PF_GENERATED_DIVERTED, PF_DEFAULT_PRIO);
	return PF_TCX_NEXT;
}

#endif /* PF_DIVERT_H */
