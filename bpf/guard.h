/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The guard: a program on netfilter's hooks that drops IP packets which pf has not judged. The link
 * of such a program belongs to the network namespace and is pinned, so the guard needs no process:
 * an interface that appears is closed until pf's programs are attached to it.
 *
 * Where packets come in (PRE_ROUTING) the guard demands a stamp that pf_ingress has put into
 * skb->tc_index: the interface, and where the IP header stands that pf has judged, mixed with a
 * secret. Programs of tc alone can write there. So the guard also drops a packet that the kernel
 * has unwrapped behind pf_ingress, or that another program has let in before pf_ingress saw it.
 * Where packets leave (POST_ROUTING) pf_egress comes behind the guard, which therefore asks whether
 * that program is attached.
 */
#ifndef PF_GUARD_H
#define PF_GUARD_H

#include "config.h"
#include "drop.h"
#include "hidden.h"
#include "interface.h"
#include "kern.h"
#include "log.h"
#include "reason.h"
#include "scratch.h"
#include "stamp.h"

#define NF_DROP		0
#define NF_ACCEPT	1

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags,
			       struct bpf_dynptr *packet) __ksym;

/* Programs that a hook of tcx has at most (BPF_MPROG_MAX). */
#define MOST_PROGRAMS	64

struct nf_hook_state {
	__u8 hook;
	__u8 pf;
	struct net_device *in;
	struct net_device *out;
} __kptr_access;

/* The argument of a program on a hook of netfilter. */
struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

/* True if a hook of tcx runs the program with an id. Mostly the program is the first one. */
__inline bool runs(const struct bpf_mprog_entry *programs, __u32 id)
{
	const __u32 items = bpf_core_field_offset(struct bpf_mprog_entry, fp_items);
	const __u32 size = bpf_core_type_size(struct bpf_mprog_fp);
	const struct bpf_prog *program;

	if (!programs)
		return false;
	program = programs->fp_items[0].prog;
	if (program && program->aux->id == id)
		return true;
	for (int i = 1; i < MOST_PROGRAMS; i++) {
		void *place = (void *)programs + items + i * size;

		if (bpf_probe_read_kernel(&program, sizeof(program), place) || !program)
			return false;
		program = bpf_core_cast(program, struct bpf_prog);
		if (program->aux->id == id)
			return true;
	}
	return false;
}

/* Writes a record of a packet that the guard drops to a ring, from its IP header on. False if the
 * ring is full. */
__inline bool write_unattached(void *ring, const struct sk_buff *skb,
			       const struct net_device *device, __u8 family, __u8 direction)
{
	struct pf_log_record *record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
	struct bpf_dynptr packet;
	__u32 length;

	if (!record)
		return false;
	__builtin_memset(record, 0, offsetof(struct pf_log_record, data));
	record->time = bpf_ktime_get_boot_ns();
	bpf_probe_read_kernel(record->ifname, sizeof(record->ifname), device->name);
	record->rule = record->anchor_rule = -1;
	record->uid = NOBODY;
	record->family = family;
	record->action = PF_ACTION_BLOCK;
	record->reason = PF_REASON_UNATTACHED;
	record->direction = direction;
	record->wirelen = skb->len;
	length = min(record->wirelen, PF_SNAPLEN);
	if (!bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &packet) &&
	    !bpf_dynptr_read(record->data, length, &packet, 0, 0))
		record->caplen = length;
	bpf_ringbuf_submit(record, 0);
	return true;
}

/* Writes the packet to the log, and to the programs that read dropped packets. */
__inline void log_unattached(const struct sk_buff *skb, const struct net_device *device,
			     __u8 family, __u8 direction, __u32 readers)
{
	__u32 place;
	void *ring;

	if (!write_unattached(&log_ring, skb, device, family, direction))
		count_log_lost();
	for (__u32 number = 0; readers && number < PF_DROP_READERS; number++) {
		place = PF_LOGS + number;
		ring = readers & 1u << number ? bpf_map_lookup_elem(&log_readers, &place) : NULL;
		if (ring && !write_unattached(ring, skb, device, family, direction))
			count_drop_lost(number);
	}
}

/* Decides about a packet that pf has not judged, on a device. */
/* Differs from OpenBSD: linux.md, "Packets inside of packets" */
/* Differs from OpenBSD: linux.md, "Interfaces that come later" */
__inline int judge_unattached(const struct sk_buff *skb, const struct pf_status *status,
			      const struct net_device *device, bool six, bool out)
{
	const struct pf_interface *interface = interface_at(device->ifindex);

	if (!status->running || unjudged_pass(status->generation) ||
	    (interface && skipped(interface, status->generation)))
		return NF_ACCEPT;
	count_reason(PF_REASON_UNATTACHED);
	count_packets(interface ? interface->id : 0, six, out, true, 1, skb->len);
	log_unattached(skb, device, six ? AF_INET6 : AF_INET, out ? PF_OUT : PF_IN,
		       readers_of_drop(status));
	return NF_DROP;
}

/* True if a packet came in by an interface of `set skip`. br_netfilter calls the hook for frames on
 * a bridge: there the device is the bridge, and skb_iif is the port. */
__inline bool came_in_by_skipped(const struct sk_buff *skb, const struct pf_status *status)
{
	const struct pf_interface *interface = interface_at(skb->skb_iif);

	return interface && skipped(interface, status->generation);
}

__inline int guard_entry(const struct bpf_nf_ctx *ctx, const struct pf_status *status)
{
	const struct net_device *device = ctx->state->in;
	const struct sk_buff *skb = ctx->skb;

	if (has_stamp(skb, status))
		return NF_ACCEPT;
	if (!device)
		return NF_DROP;
	if (runs(device->tcx_ingress, status->ingress_id) &&
	    /* where a filter of clsact accepts a packet, the kernel writes over tc_index */
	    (may_have_lost_stamp(skb, status) || has_clsact_filters(device->tcx_ingress)))
		return NF_ACCEPT;
	if (came_in_by_skipped(skb, status))
		return NF_ACCEPT;
	return judge_unattached(skb, status, device, ctx->state->pf == NFPROTO_IPV6, false);
}

/* The same for pf_egress, on every packet that leaves. Its address in the kernel says so for two
 * fields less than its id: the program lives as long as the guard does. */
__inline bool runs_egress(const struct bpf_mprog_entry *programs, struct pf_status *status)
{
	const struct bpf_prog *first = programs ? programs->fp_items[0].prog : NULL;

	if (!first)
		return false;
	if ((__u64)first == status->egress_address)
		return true;
	if (first->aux->id != status->egress_id)
		return runs(programs, status->egress_id);
	status->egress_address = (__u64)first;
	return true;
}

__inline int guard_exit(const struct bpf_nf_ctx *ctx, struct pf_status *status)
{
	const struct net_device *device = ctx->state->out;

	if (!device)
		return NF_DROP;
	if (runs_egress(device->tcx_egress, status))
		return NF_ACCEPT;
	return judge_unattached(ctx->skb, status, device, ctx->state->pf == NFPROTO_IPV6, true);
}

/* Decides about a packet on a hook of netfilter. The first steps are those of most packets, and
 * few: each one is taken for every packet that does not go past the kernel. */
/* Differs from OpenBSD: linux.md, "The guard" */
__inline int guard(const struct bpf_nf_ctx *ctx)
{
	struct pf_status *status = pf_status();

	if (!status)
		return NF_DROP;
	return ctx->state->hook == NF_INET_PRE_ROUTING ? guard_entry(ctx, status) :
							 guard_exit(ctx, status);
}

#endif /* PF_GUARD_H */
