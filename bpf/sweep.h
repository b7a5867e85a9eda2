/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Expiry without a process: one timer in a pinned map sweeps a part of the state table every
 * second, so that all of it is seen once in timeout `interval` (pf-semantics section 2).
 */
#ifndef PF_SWEEP_H
#define PF_SWEEP_H

#include "bridge.h"
#include "config.h"
#include "drop.h"
#include "flush.h"
#include "kern.h"
#include "limiter.h"
#include "state.h"
#include "sweeper.h"
#include "syncookie.h"
#include "time.h"
#include "trial.h"

#include <linux/errno.h>

#define CLOCK_BOOTTIME	7
#define SWEEP_AT_LEAST	64		/* slots a second */
#define JUST_BEGUN	100000		/* ns into a second */

/*
 * The timer works in slices, so that no tick keeps a CPU from other softirqs for long: a slice
 * looks at SLICE slots at most, and ends when it has found SLICE_REMOVALS states to remove. Where
 * a second has more work than a slice, the next slice follows after SLICE_PAUSE. A pass over a
 * table of ten million states takes a second or two at this rate, and thus less than `interval`.
 */
#define SLICE		8192
#define SLICE_REMOVALS	512
#define FLUSH_SLICE	2048		/* slots, of which each asks for flushes */
#define LIMITED_SLICE	2048		/* sources of limiters, each of which is looked up */

/* bpf_loop takes no more rounds than 2^23 */
#define MAX_ROUNDS	(1 << 20)

struct pf_sweep_loop {
	__u32 generation;
	__u32 now;
	__u32 first;
	__u32 places;
	__u32 found;			/* states to remove */
	__u32 most;			/* … at which the slice ends */
	__u32 removed;
	__u32 flushing;
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
	if (loop->flushing)
		end_flushed(index, state->serial);
	timeout = state->timeout;
	used = state->expire;
	if (timeout >= PF_TIMEOUT_PURGE)
		return ++loop->found >= loop->most;
	if (!expired(state->rule_slot, timeout, used, loop->generation, loop->now))
		return 0;
	bpf_spin_lock(&state->lock);
	/* unless it was used meanwhile, or the place was */
	if (state->timeout == timeout && state->expire == used)
		state->timeout = PF_TIMEOUT_PURGE;
	bpf_spin_unlock(&state->lock);
	return ++loop->found >= loop->most;
}

/* Differs from OpenBSD: linux.md, "Silent servers" */
static int remove_marked(__u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	__u32 index;
	struct pf_state *state = place(loop, i, &index);

	if (state && state->timeout >= PF_TIMEOUT_PURGE)
		loop->removed += remove_state(index, state->serial);
	return 0;
}

/* Begins a sweep of the slots of states. */
__inline void begin_sweep(struct pf_status *status, struct pf_sweep_loop *loop)
{
	status->sweeps = max(status->sweeps + 1, 1);
	loop->generation = status->generation;
	loop->now = uptime();
	loop->flushing = status->flushing;
	loop->places = min(status->states_used, status->capacity);
}

/* Moves a cursor on by `count` of `places` slots. */
__inline __u32 moved_on(__u32 cursor, __u32 count, __u32 places)
{
	cursor += count;
	return cursor < places ? cursor : cursor - places;
}

/* Removes the expired states among the next slots, `count` at most. Returns the number of slots
 * that it has looked at. */
__global int sweep_slice(__u32 count)
{
	struct pf_sweep_loop loop = { .most = SLICE_REMOVALS };
	struct pf_status *status = pf_status();
	long seen;

	if (!status)
		return 0;
	begin_sweep(status, &loop);
	count = min(min(count, SLICE), loop.places);
	loop.first = status->sweep_cursor;
	if (loop.first >= loop.places)
		loop.first = 0;
	/* adaptive timeouts depend on how many states there are: all are asked before any goes */
	seen = bpf_loop(count, mark_expired, &loop, 0);
	if (seen < 0)
		return 0;
	bpf_loop(seen, remove_marked, &loop, 0);
	status->sweep_cursor = moved_on(loop.first, seen, loop.places);
	return seen;
}

/* Removes all expired states at once. Returns how many. */
__global int sweep_states(void)
{
	struct pf_sweep_loop loop = { .most = ~0u };
	struct pf_status *status = pf_status();
	__u32 until, ending;
	int i, parts;

	if (!status)
		return 0;
	go_back_if_due(status);
	until = status->flush_number;
	ending = status->ending;
	begin_sweep(status, &loop);
	parts = loop.places / MAX_ROUNDS + 1;
	bpf_for(i, 0, parts) {
		loop.first = i * MAX_ROUNDS;
		bpf_loop(min(loop.places - loop.first, MAX_ROUNDS), mark_expired, &loop, 0);
	}
	bpf_for(i, 0, parts) {
		loop.first = i * MAX_ROUNDS;
		bpf_loop(min(loop.places - loop.first, MAX_ROUNDS), remove_marked, &loop, 0);
	}
	if (ending)
		note_ended(status);
	forget_flushes(status, until);
	return loop.removed;
}

static int mark_flushed(__u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	__u32 index;
	struct pf_state *state = place(loop, i, &index);

	if (state)
		end_flushed(index, state->serial);
	return 0;
}

/* Ends states of sources that were flushed, among the next slots. A pass begins a tick after it
 * has noted which flushes it is for, so that they are all in the map by then; at its end they are
 * forgotten. */
__inline int flush_slice(struct pf_sweeper *sweeper)
{
	struct pf_status *status = pf_status();
	struct pf_sweep_loop loop = {};
	__u32 count;

	if (!status || !sweeper)
		return 0;
	if (!sweeper->flush_begun) {
		sweeper->flush_begun = 1;
		sweeper->flush_cursor = 0;
		sweeper->flush_until = status->flush_number;
		sweeper->ending = status->ending;
		return 0;
	}
	loop.places = min(status->states_used, status->capacity);
	loop.first = sweeper->flush_cursor;
	if (loop.first < loop.places) {
		count = min(loop.places - loop.first, FLUSH_SLICE);
		bpf_loop(count, mark_flushed, &loop, 0);
		sweeper->flush_cursor += count;
		return 0;
	}
	sweeper->flush_begun = 0;
	if (sweeper->ending)
		note_ended(status);
	forget_flushes(status, sweeper->flush_until);
	return 0;
}

static int sweep_source(__u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	__u32 index = loop->first + i;

	if (index >= loop->places)
		index -= loop->places;
	loop->removed += remove_source(index, loop->now);
	return loop->removed >= loop->most;
}

/* Removes the expired source nodes among the next slots, `count` at most. Returns the number of
 * slots that it has looked at. */
__global int sweep_sources(__u32 count, __u32 most)
{
	struct pf_sweep_loop loop = { .most = most };
	struct pf_status *status = pf_status();
	long seen;

	if (!status)
		return 0;
	loop.now = uptime();
	loop.places = min(status->sources_used, status->source_capacity);
	count = min(count, loop.places);
	loop.first = status->source_cursor;
	if (loop.first >= loop.places)
		loop.first = 0;
	seen = bpf_loop(count, sweep_source, &loop, 0);
	if (seen < 0)
		return 0;
	status->source_cursor = moved_on(loop.first, seen, loop.places);
	return seen;
}

/* Looks at the source of a limiter whose turn it is. Returns 1 if the slice ends. */
static int sweep_limited(__unused __u32 i, void *arg)
{
	struct pf_sweep_loop *loop = arg;
	struct pf_status *status = pf_status();
	struct pf_limited_turn turn;

	if (!status || bpf_map_pop_elem(&limited_turns, &turn))
		return 1;
	if (!remove_limited(&turn, loop->now) &&
	    !bpf_map_push_elem(&limited_turns, &turn, BPF_ANY))
		return 0;
	__sync_fetch_and_sub(&status->limited_turns, 1);
	return ++loop->removed >= loop->most;
}

/* Removes sources of limiters that have had no states for long enough, among the next `count` at
 * most. Returns the number of sources that it has looked at. */
__global int sweep_limited_sources(__u32 count, __u32 most)
{
	struct pf_sweep_loop loop = { .most = most, .now = uptime() };
	struct pf_status *status = pf_status();
	long seen;

	if (!status)
		return 0;
	seen = bpf_loop(min(count, status->limited_turns), sweep_limited, &loop, 0);
	return max(seen, 0);
}

/* Sweeps a slice of limiters' sources. */
__inline int limited_slice(__u32 count)
{
	return sweep_limited_sources(min(count, LIMITED_SLICE), SLICE_REMOVALS);
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

/* Adds to the work that is left what is to be swept in this second: so much that a pass over
 * `entries` takes `interval` seconds. */
__inline void add_share(__u32 *left, __u32 entries, __u32 interval)
{
	*left = min(*left + max(entries / interval + 1, SWEEP_AT_LEAST), entries);
}

/* Notes what is to be swept in this second. */
__inline void begin_second(struct pf_status *status, struct pf_sweeper *sweeper)
{
	struct pf_config *config = pf_config(status->generation);
	__u32 interval = config ? max(config->timeouts[PF_TIMEOUT_INTERVAL], 1) : 1;

	note_second(status);
	add_share(&sweeper->states_left, status->states_used, interval);
	add_share(&sweeper->sources_left, status->sources_used, interval);
	add_share(&sweeper->limited_left, status->limited_turns, interval);
	if (uptime() % interval == 0)
		sweeper->stations_due = 1;
	turn_cookie_keys(status->generation, uptime());
	end_silent_readers(status, uptime());
}

/* Takes what a slice has looked at off the work that is left. A slice that can look at nothing
 * ends the work of this second. */
__inline void take_off(__u32 *left, __u32 seen)
{
	*left -= min(seen ? seen : ~0u, *left);
}

/* Does a slice of the work of this second. */
__inline void work(struct pf_status *status, struct pf_sweeper *sweeper)
{
	if (status->flushing) {
		flush_slice(sweeper);
	} else if (sweeper->states_left) {
		take_off(&sweeper->states_left, sweep_slice(sweeper->states_left));
	} else if (sweeper->sources_left) {
		take_off(&sweeper->sources_left,
			 sweep_sources(min(sweeper->sources_left, SLICE), SLICE_REMOVALS));
	} else if (sweeper->limited_left) {
		take_off(&sweeper->limited_left, limited_slice(sweeper->limited_left));
	} else if (sweeper->stations_due) {
		sweeper->stations_due = 0;
		sweep_stations();
	}
}

/* Has the timer fire when the next slice is due, or when the next second has just begun. */
__inline long await_work(struct pf_status *status, struct pf_sweeper *sweeper)
{
	__u64 gone = bpf_ktime_get_boot_ns() % NSEC_PER_SEC;
	__u64 wait = NSEC_PER_SEC - gone + JUST_BEGUN;

	if (status->flushing || sweeper->states_left || sweeper->sources_left ||
	    sweeper->limited_left || sweeper->stations_due)
		wait = min(wait, SLICE_PAUSE);
	return start_timer(sweeper, status, wait);
}

static int on_timer(__unused void *map, __unused __u32 *key, struct pf_sweeper *sweeper)
{
	struct pf_status *status = pf_status();

	if (!status)
		return 0;
	go_back_if_due(status);
	if (status->second != (__u32)(bpf_ktime_get_boot_ns() / NSEC_PER_SEC))
		begin_second(status, sweeper);
	work(status, sweeper);
	await_work(status, sweeper);
	return 0;
}

/* Starts the timer. It runs as long as userland has the map; starting it again changes nothing.
 * Returns 0, or an error of the kernel, which is noted. */
SEC("syscall")
int pf_start(__unused void *ctx)
{
	__u32 zero = 0;
	struct pf_sweeper *one = bpf_map_lookup_elem(&sweeper, &zero);
	struct pf_status *status = pf_status();
	long error;

	if (!one || !status)
		return -1;
	note_second(status);
	error = bpf_timer_init(&one->timer, &sweeper, CLOCK_BOOTTIME);
	if (!error || error == -EBUSY)	/* it was made before */
		error = bpf_timer_set_callback(&one->timer, on_timer);
	if (!error)
		return await_work(status, one);
	note_timer_error(status, error);
	return error;
}

/* Sweeps all of the tables at once, and turns the keys of syncookies if it is time. Returns how
 * many states it removed. */
SEC("syscall")
int pf_sweep(__unused void *ctx)
{
	struct pf_status *status = pf_status();
	int removed = sweep_states();

	sweep_sources(~0u, ~0u);
	sweep_limited_sources(~0u, ~0u);
	if (status)
		turn_cookie_keys(status->generation, uptime());
	return removed;
}

/* Ends the trial of the rules in force, as the timer does when the time is over. Returns 1, or 0 if
 * there is no trial. */
SEC("syscall")
int pf_go_back(__unused void *ctx)
{
	struct pf_status *status = pf_status();

	return status ? go_back(status) : 0;
}

/* Does a slice of a sweep, as the timer does: of states, or of limiters' sources. Returns how many
 * slots or sources it has looked at. */
SEC("syscall")
int pf_sweep_slice(__u32 *of_limiters)
{
	return *of_limiters ? limited_slice(~0u) : sweep_slice(~0u);
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
