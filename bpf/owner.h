/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Who owns the socket that a packet belongs to: `user`, `group`, `log (user)` (pf-semantics
 * section 5). Sockets are searched once for a packet, and only if a rule asks.
 */
#ifndef PF_OWNER_H
#define PF_OWNER_H

#include "kern.h"
#include "scratch.h"
#include "table.h"
#include "time.h"

#define NOBODY		(~0u)

typedef struct {
	__u32 val;
} kuid_t, kgid_t;

struct cred {
	kuid_t euid;
	kgid_t egid;
} __kptr_access;

struct file {
	const struct cred *f_cred;
} __kptr_access;

struct socket {
	struct file *file;
} __kptr_access;

struct sock {
	struct socket *sk_socket;
} __kptr_access;

/* The ids of who made the socket. One that no process holds any more has no owner. */
/* Differs from OpenBSD: linux.md, "Socket owners" */
__inline void read_owner(struct pf_scratch *s, struct bpf_sock *found)
{
	struct sock *sk = bpf_core_cast(found, struct sock);
	struct socket *socket = sk->sk_socket;
	struct file *file;
	const struct cred *cred;

	if (!socket)
		return;
	file = socket->file;
	if (!file)
		return;
	cred = file->f_cred;
	if (!cred)
		return;
	s->owner_uid = cred->euid.val;
	s->owner_gid = cred->egid.val;
}

/* Writes the ends of a conversation as a socket sees it: `source` is the other side's. Returns the
 * length of the tuple. */
__inline __u32 set_tuple(struct bpf_sock_tuple *tuple, __u8 family, const void *source,
			 __be16 source_port, const void *destination, __be16 destination_port)
{
	if (family == AF_INET) {
		__builtin_memcpy(&tuple->ipv4.saddr, source, 4);
		__builtin_memcpy(&tuple->ipv4.daddr, destination, 4);
		tuple->ipv4.sport = source_port;
		tuple->ipv4.dport = destination_port;
		return sizeof(tuple->ipv4);
	}
	__builtin_memcpy(tuple->ipv6.saddr, source, 16);
	__builtin_memcpy(tuple->ipv6.daddr, destination, 16);
	tuple->ipv6.sport = source_port;
	tuple->ipv6.dport = destination_port;
	return sizeof(tuple->ipv6);
}

/* The packet as one that comes to a socket of ours: the remote side is its source. */
__inline __u32 socket_tuple(struct bpf_sock_tuple *tuple, const struct pf_pdesc *pd)
{
	bool in = pd->direction == PF_IN;
	const struct pf_addr *remote = in ? &pd->original_source : &pd->original_destination;
	const struct pf_addr *own = in ? &pd->original_destination : &pd->original_source;
	__be16 remote_port = in ? pd->original_source_port : pd->original_destination_port;
	__be16 own_port = in ? pd->original_destination_port : pd->original_source_port;

	return set_tuple(tuple, pd->family, remote, remote_port, own, own_port);
}

/* Whether one end of the packet is this host: a packet that is forwarded belongs to no socket, even
 * if one listens on its port at every address. */
/* Differs from OpenBSD: linux.md, "Socket owners" */
__inline bool ends_here(struct pf_scratch *s)
{
	struct pf_table_entry *self;

	if (s->pd.direction == PF_OUT)
		return !s->came_in_by;
	self = find_entry(PF_SELF_TABLE, s->pd.family, &s->pd.original_destination);
	return self && !self->negated;
}

/* Finds who owns the packet's socket: s->owner_uid and s->owner_gid, NOBODY if there is none. */
__global int find_owner(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *found;
	struct pf_test *driven;
	__u32 size;

	if (!s || s->owner_sought)
		return 0;
	s->owner_sought = 1;
	s->owner_uid = s->owner_gid = NOBODY;
	driven = pf_driven();
	if (driven) {
		s->owner_uid = driven->uid;
		s->owner_gid = driven->gid;
		return 0;
	}
	if (!ends_here(s))
		return 0;
	size = socket_tuple(&tuple, &s->pd);
	if (s->pd.virtual_protocol == IPPROTO_TCP)
		found = bpf_sk_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	else if (s->pd.virtual_protocol == IPPROTO_UDP)
		found = bpf_sk_lookup_udp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	else
		return 0;
	if (!found)
		return 0;
	read_owner(s, found);
	bpf_sk_release(found);
	return 0;
}

/* pf's comparison of ids: nobody's are neither below nor above any. */
__inline bool match_id(const struct pf_owner *want, __u32 id)
{
	switch (want->op) {
	case PF_PORT_EQ:
		return id == want->low;
	case PF_PORT_NE:
		return id != want->low;
	}
	if (id == NOBODY)
		return false;
	switch (want->op) {
	case PF_PORT_INSIDE:
		return id > want->low && id < want->high;
	case PF_PORT_OUTSIDE:
		return id < want->low || id > want->high;
	case PF_PORT_RANGE:
		return id >= want->low && id <= want->high;
	case PF_PORT_LT:
		return id < want->low;
	case PF_PORT_LE:
		return id <= want->low;
	case PF_PORT_GT:
		return id > want->low;
	case PF_PORT_GE:
		return id >= want->low;
	}
	return false;
}

__inline bool match_ids(const struct pf_rule *rule, __u32 uid, __u32 gid)
{
	return (!rule->user.op || match_id(&rule->user, uid)) &&
	       (!rule->group.op || match_id(&rule->group, gid));
}

/* Compares the owner of the packet's socket: only TCP and UDP have one. */
__inline bool match_owner(struct __sk_buff *skb, struct pf_scratch *s, const struct pf_rule *rule)
{
	if (!rule->user.op && !rule->group.op)
		return true;
	if (s->pd.virtual_protocol != IPPROTO_TCP && s->pd.virtual_protocol != IPPROTO_UDP)
		return match_ids(rule, NOBODY, NOBODY);
	find_owner(skb, s);
	return match_ids(rule, s->owner_uid, s->owner_gid);
}

#endif /* PF_OWNER_H */
