/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Expiry without a process: one timer in a pinned map sweeps a part of the state table every
 * second, so that all of it is seen once in timeout `interval` (pf-semantics section 2).
 */
#ifndef PF_SWEEP_H
#define PF_SWEEP_H

#include "bridge.h"
#include "config.h"
#include "kern.h"
#include "limiter.h"
#include "state.h"
#include "syncookie.h"
#include "time.h"

#define CLOCK_BOOTTIME	7
#define SWEEP_AT_LEAST	64		/* places in one run */
#define JUST_BEGUN	100000		/* ns into a second */

struct pf_sweeper {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_sweeper);
} sweeper SEC(".maps");

struct pf_sweep_loop {
	__u32 generation;
	__u32 now;
	__u32 first;
	__u32 places;
	__u32 removed;
};

/* The place that step `i` of a sweep looks at, if there is a state in it. */
__inline struct pf_state *place(const struct pf_sweep_loop *loop, __u32 i, __u32 *index)
{
	struct pf_state *state;

	*index = loop->first + i;
	if (*index >= loop->places)
		*index -= loop->places;
	state = bpf_map_lookup_elem(&states, index);
	return state && state->serial & 1 ? state : NULL;
}

static int mark_expired(__u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	__u32 index, used;
	struct pf_state *state = place(loop, i, &index);
	__u8 timeout;

	if (!state)
		return 0;
	timeout = state->timeout;
	used = state->expire;
	if (timeout >= PF_TIMEOUT_PURGE ||
	    !expired(state->rule_slot, timeout, used, loop->generation, loop->now))
		return 0;
	bpf_spin_lock(&state->lock);
	/* unless it was used meanwhile, or the place was */
	if (state->timeout == timeout && state->expire == used)
		state->timeout = PF_TIMEOUT_PURGE;
	bpf_spin_unlock(&state->lock);
	return 0;
}

static int remove_marked(__u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	__u32 index;
	struct pf_state *state = place(loop, i, &index);

	if (state && state->timeout >= PF_TIMEOUT_PURGE)
		loop->removed += remove_state(index, state->serial);
	return 0;
}

/* Removes the expired ones among the `count` places from the cursor on; all places if 0. */
__global int sweep(__u32 count)
{
	struct pf_status *status = pf_status();
	struct pf_sweep_loop loop = {};

	if (!status)
		return 0;
	status->sweeps = max(status->sweeps + 1, 1);
	loop.generation = status->generation;
	loop.now = uptime();
	loop.places = min(status->states_used, status->capacity);
	if (!count || count > loop.places)
		count = loop.places;
	loop.first = status->sweep_cursor;
	if (loop.first >= loop.places)
		loop.first = 0;
	/* adaptive timeouts depend on how many states there are: all are asked before any goes */
	bpf_loop(count, mark_expired, &loop, 0);
	bpf_loop(count, remove_marked, &loop, 0);
	status->sweep_cursor = loop.first + count < loop.places ? loop.first + count :
								  loop.first + count - loop.places;
	return loop.removed;
}

static int sweep_source(__u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	__u32 index = loop->first + i;

	if (index >= loop->places)
		index -= loop->places;
	loop->removed += remove_source(index, loop->now);
	return 0;
}

/* Removes the source nodes that are over among the `count` places from the cursor on; all if 0. */
__global int sweep_sources(__u32 count)
{
	struct pf_status *status = pf_status();
	struct pf_sweep_loop loop = {};

	if (!status)
		return 0;
	loop.now = uptime();
	loop.places = min(status->sources_used, status->source_capacity);
	if (!count || count > loop.places)
		count = loop.places;
	loop.first = status->source_cursor;
	if (loop.first >= loop.places)
		loop.first = 0;
	bpf_loop(count, sweep_source, &loop, 0);
	status->source_cursor = loop.first + count < loop.places ? loop.first + count : 0;
	return loop.removed;
}

/* Keeps uptime_about() right: notes the second, and that it is believed for half again as long as
 * it took since the one before. A beat that is late itself does not say how long that is: the next
 * one does. */
__inline void note_second(struct pf_status *status)
{
	__u32 second = bpf_ktime_get_boot_ns() / NSEC_PER_SEC;
	__u64 now = bpf_jiffies64(), taken = now - status->beat;

	status->second_until = second - status->second <= 1 ? now + taken + taken / 2 : 0;
	status->second = second;
	status->beat = now;
}

/* Has the timer fire when the next second has just begun, whatever the sweep has taken of this
 * one. */
__inline long await_second(struct pf_sweeper *sweeper)
{
	__u64 gone = bpf_ktime_get_boot_ns() % NSEC_PER_SEC;

	return bpf_timer_start(&sweeper->timer, NSEC_PER_SEC - gone + JUST_BEGUN, 0);
}

static int on_timer(__unused void *map, __unused __u32 *key, struct pf_sweeper *sweeper)
{
	struct pf_status *status = pf_status();
	struct pf_config *config;
	__u32 interval = 1;

	if (status) {
		note_second(status);
		config = pf_config(status->generation);
		if (config)
			interval = max(config->timeouts[PF_TIMEOUT_INTERVAL], 1);
		sweep(max(status->states_used / interval + 1, SWEEP_AT_LEAST));
		sweep_sources(max(status->sources_used / interval + 1, SWEEP_AT_LEAST));
		turn_cookie_keys(status->generation, uptime());
		if (uptime() % interval == 0) {
			sweep_limited_sources();
			sweep_stations();
		}
	}
	await_second(sweeper);
	return 0;
}

/* Starts the timer. It runs as long as the map is there; starting it again changes nothing. */
SEC("syscall")
int pf_start(__unused void *ctx)
{
	__u32 zero = 0;
	struct pf_sweeper *one = bpf_map_lookup_elem(&sweeper, &zero);
	struct pf_status *status = pf_status();

	if (!one || !status)
		return -1;
	note_second(status);
	bpf_timer_init(&one->timer, &sweeper, CLOCK_BOOTTIME);
	bpf_timer_set_callback(&one->timer, on_timer);
	return await_second(one);
}

/* Sweeps all of the tables at once, and turns the keys of syncookies if it is time. Returns how
 * many states it removed. */
SEC("syscall")
int pf_sweep(__unused void *ctx)
{
	struct pf_status *status = pf_status();
	int removed = sweep(0);

	sweep_sources(0);
	sweep_limited_sources();
	if (status)
		turn_cookie_keys(status->generation, uptime());
	return removed;
}

/* Drops a source node: whoever comes from there next is a new source. */
SEC("syscall")
int pf_drop_source(struct pf_source_ref *ref)
{
	struct pf_source_key key = ref->key;

	return drop_source(ref->index, &key);
}

/* Removes one state. Returns 1, or 0 if it was gone. */
SEC("syscall")
int pf_kill(struct pf_kill *kill)
{
	return remove_state(kill->index, kill->serial);
}

#endif /* PF_SWEEP_H */
