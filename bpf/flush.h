/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `overload <table> flush`: the states of a source end. OpenBSD walks through all states for that,
 * which takes one packet milliseconds. Here the packet notes the flush, and from then on whoever
 * finds a state asks whether its source was flushed since it was made: such a state ends then. The
 * timer walks through the states in slices, ends those that nobody has looked for, and forgets the
 * flush: with a million states after some tenths of a second.
 */
#ifndef PF_FLUSH_H
#define PF_FLUSH_H

#include "config.h"
#include "kern.h"
#include "key_table.h"
#include "timeout.h"

/* sources that are flushed at once; further ones keep their other states */
/* Differs from OpenBSD: linux.md, "Flushing a source" */
#define MAX_FLUSHES	8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_FLUSHES);
	__type(key, struct pf_flush);
	__type(value, struct pf_flushed);
} flushes SEC(".maps");

/* Bits of status->flush_kinds say which kinds of flushes there are. */
#define FLUSH_SIDE	1		/* where in a key the source is */
#define FLUSH_ALL	2		/* the states of all rules */
#define FLUSH_KINDS	4

/* Whether the maker of a connection has said no more than SYN. A connection that was ended has
 * not. */
#define half_open(peer)	((peer)->state > PF_TCPS_CLOSED && (peer)->state < PF_TCPS_ESTABLISHED)

/* Ends a state before its time. */
__inline void end_now(__u32 index, __u32 serial)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	struct pf_status *status = pf_status();
	bool half = false;

	if (!state || !status)
		return;
	bpf_spin_lock(&state->lock);
	if (state->serial == serial && state->timeout < PF_TIMEOUT_PURGE) {
		half = state->key[PF_WIRE].protocol == IPPROTO_TCP && half_open(&state->src);
		state->timeout = PF_TIMEOUT_PURGE;
		state->src.state = state->dst.state = PF_TCPS_CLOSED;
	}
	bpf_spin_unlock(&state->lock);
	if (half)
		__sync_fetch_and_sub(&status->half_open, 1);
}

/* True if only the load on trial has a rule (trial.h). */
__inline bool is_on_trial(__u32 rule_slot)
{
	const struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &rule_slot);

	return rule && rule->trial;
}

/* Ends the state in a slot if its source was flushed since it was made, or if the trial of its rule
 * has failed. Returns 1 if so. */
__global int end_flushed(__u32 index, __u32 serial)
{
	const struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	const struct pf_status *status = pf_status();
	const struct pf_flushed *flushed;
	struct pf_flush flush = {};

	if (!state || !status || state->timeout >= PF_TIMEOUT_PURGE)
		return 0;
	if (status->ending && is_on_trial(state->rule_slot)) {
		end_now(index, serial);
		return 1;
	}
	flush.family = state->key[PF_WIRE].family;
	for (__u32 kind = 0; kind < FLUSH_KINDS; kind++) {
		if (!(status->flush_kinds & 1 << kind))
			continue;
		flush.side = kind & FLUSH_SIDE;
		flush.rule_slot = kind & FLUSH_ALL ? PF_IDLE_SLOT : state->rule_slot;
		if (flush.side)
			__builtin_memcpy(flush.address, state->key[PF_WIRE].address[1], 16);
		else
			__builtin_memcpy(flush.address, state->key[PF_WIRE].address[0], 16);
		flushed = bpf_map_lookup_elem(&flushes, &flush);
		if (flushed && state->id < flushed->before) {
			end_now(index, serial);
			return 1;
		}
	}
	return 0;
}

/* The same where there may be flushes. */
__inline bool is_flushed(const struct pf_status *status, __u32 index, __u32 serial)
{
	return status->flushing && end_flushed(index, serial);
}

/* Notes that the states end that a source has now. Returns 1 if there was no such work. */
__inline bool note_flush(struct pf_status *status, const struct pf_flush *flush)
{
	struct pf_flushed new = { .before = status->next_state_id }, *known;

	new.number = __sync_fetch_and_add(&status->flush_number, 1);
	__sync_fetch_and_or(&status->flush_kinds,
			    1u << ((flush->side ? FLUSH_SIDE : 0) |
				   (flush->rule_slot == PF_IDLE_SLOT ? FLUSH_ALL : 0)));
	known = bpf_map_lookup_elem(&flushes, flush);
	if (known) {
		known->before = new.before;
		known->number = new.number;
		return false;
	}
	return !bpf_map_update_elem(&flushes, flush, &new, BPF_NOEXIST) &&
	       !__sync_fetch_and_add(&status->flushing, 1);
}

static long forget_flush(void *map, const void *key, void *value, void *arg)
{
	struct pf_status *status = pf_status();
	struct pf_flushed *flushed = value;
	__u32 until = *(__u32 *)arg, number = flushed->number;

	if (!status || (__s32)(number - until) >= 0 || bpf_map_delete_elem(map, key))
		return 0;
	__sync_fetch_and_sub(&status->flushing, 1);
	return 0;
}

/* Forgets the flushes with lower numbers: all of their states have ended. */
__inline void forget_flushes(struct pf_status *status, __u32 until)
{
	bpf_for_each_map_elem(&flushes, forget_flush, &until, 0);
	/* kinds are few, and a flush that comes meanwhile sets its own */
	if (!status->flushing && status->flush_number == until)
		status->flush_kinds = 0;
}

#endif /* PF_FLUSH_H */
