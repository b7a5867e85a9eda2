/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Whether netfilter looks at packets that are forwarded: it may translate or block them, so they
 * are the kernel's then.
 *
 * The kernel's security module stands among its hooks too, on most distributions in every network
 * namespace, whether it wants anything or not. AppArmor's hook is for packets of sockets, which one
 * that is forwarded has not. Those of SELinux begin with a question that is the same for all
 * packets: whether anything is labelled here. Where such a hook is alone and would do nothing,
 * nobody looks.
 */
#ifndef PF_NETFILTER_H
#define PF_NETFILTER_H

#include "config.h"
#include "kern.h"

/* BPF_PROG_TYPE_NETFILTER, which Debian 12's headers do not know yet */
#define PROG_TYPE_NETFILTER	32

/* Functions and words of the kernel that have no type to ask for; their addresses are zero where
 * there are none, or where /proc/kallsyms hides them from who loads the programs
 * (kernel.kptr_restrict, CAP_SYSLOG). */
extern const void apparmor_ip_postroute __ksym __weak;
extern const void selinux_ip_forward __ksym __weak;
extern const void selinux_ip_postroute __ksym __weak;
extern const void selinux_state __ksym __weak;
extern const void selinux_secmark_refcount __ksym __weak;
extern const void selinux_xfrm_refcount __ksym __weak;
extern const void netlabel_mgmt_protocount __ksym __weak;

/* of selinux_state.policycap: a policy wants packets to be looked at where nothing is labelled */
#define POLICYDB_CAP_ALWAYSNETWORK	3

struct selinux_state {
	bool policycap[POLICYDB_CAP_ALWAYSNETWORK + 1];
} __kptr_access;

/* a refcount_t: it is an atomic_t, whose own type has no name to ask for */
struct refcount_struct {
	atomic_t refs;
} __kptr_access;

/* What an atomic_t of the kernel's is, or 1 if nobody knows where it is. */
__inline __u32 count_at(const void *atomic)
{
	const struct refcount_struct *count;

	if (!atomic)
		return 1;
	count = bpf_core_cast(atomic, struct refcount_struct);
	return count->refs.counter;
}

/* Whether SELinux has labels to compare: of secmark, of IPsec, or of NetLabel (its
 * selinux_secmark_enabled and selinux_peerlbl_enabled). */
__inline bool selinux_looks(void)
{
	const struct selinux_state *state;

	if (!bpf_core_type_exists(struct selinux_state) || !&selinux_state)
		return true;
	state = bpf_core_cast(&selinux_state, struct selinux_state);
	return state->policycap[POLICYDB_CAP_ALWAYSNETWORK] || count_at(&selinux_secmark_refcount) ||
	       count_at(&selinux_xfrm_refcount) || count_at(&netlabel_mgmt_protocount);
}

/* True if the first hook is our guard, which asks for the programs that the packet has met. */
__inline bool begins_with_guard(const struct nf_hook_entries *entries, __u32 guard)
{
	const struct bpf_prog *program = bpf_core_cast(entries->hooks[0].priv, struct bpf_prog);

	return guard && program->type == PROG_TYPE_NETFILTER && program->aux->id == guard;
}

/* True if anybody but our guard, the program with this id, looks at packets here. */
__inline bool is_hooked(const struct nf_hook_entries *entries, __u32 guard)
{
	const void *hook;
	__u32 others;

	if (!entries)
		return false;
	others = entries->num_hook_entries;
	hook = entries->hooks[0].hook;
	if (begins_with_guard(entries, guard)) {
		if (!--others)
			return false;
		hook = entries->hooks[1].hook;
	}
	if (others != 1)
		return true;
	if (hook == &apparmor_ip_postroute)
		return false;
	return (hook != &selinux_ip_forward && hook != &selinux_ip_postroute) || selinux_looks();
}

/* The same on any part of the way of a packet that is forwarded. */
__inline bool has_netfilter(const struct net *net, __u8 family)
{
	const struct pf_status *status = pf_status();
	const __u32 guard = status ? status->guard_id : 0;

	if (family == AF_INET)
		return is_hooked(net->nf.hooks_ipv4[NF_INET_PRE_ROUTING], guard) ||
		       is_hooked(net->nf.hooks_ipv4[NF_INET_FORWARD], guard) ||
		       is_hooked(net->nf.hooks_ipv4[NF_INET_POST_ROUTING], guard);
	return is_hooked(net->nf.hooks_ipv6[NF_INET_PRE_ROUTING], guard) ||
	       is_hooked(net->nf.hooks_ipv6[NF_INET_FORWARD], guard) ||
	       is_hooked(net->nf.hooks_ipv6[NF_INET_POST_ROUTING], guard);
}

#endif /* PF_NETFILTER_H */
