/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * State limiters and source limiters: what many rules may use up together (pf-semantics section
 * 16).
 *
 * A rule that names one matches only while it has room for one more state. That is asked when rules
 * are walked, and again when the state is made, for others make states meanwhile.
 *
 * Tokens of a rate are saved up to a time's worth; the moment from which on they were saved says
 * how many there are.
 */
#ifndef PF_LIMITER_H
#define PF_LIMITER_H

#include "config.h"
#include "kern.h"
#include "pool.h"
#include "scratch.h"
#include "table.h"
#include "time.h"

#include <linux/errno.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_COPIES * PF_LIMITER_KINDS * PF_LIMITERS);
	__type(key, __u32);
	__type(value, struct pf_limiter);
} limiters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_LIMITER_KINDS * PF_LIMITERS);
	__type(key, __u32);
	__type(value, struct pf_limiter_use);
} limiter_uses SEC(".maps");

/* a limiter that finds no place for a new source here refuses it */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct pf_limited_key);
	__type(value, struct pf_limited_source);
} limited_sources SEC(".maps");

/* The sources in limited_sources, each once: the sweep takes the first and puts it last. No program
 * can walk through a hash in slices. An entry may outlive its source, until the sweep takes it. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 262144);
	__type(value, struct pf_limited_turn);
} limited_turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 16384);
	__type(value, struct pf_leaving);
} leaving SEC(".maps");

#define TOKEN_TRIES	8

/* A limiter of a generation, NULL if there is none of this number. */
__inline struct pf_limiter *find_limiter(__u32 generation, __u32 kind, __u32 id)
{
	__u32 index = (pf_copy(generation) * PF_LIMITER_KINDS + kind) * PF_LIMITERS + id;
	struct pf_limiter *limiter = bpf_map_lookup_elem(&limiters, &index);

	return limiter && limiter->limit ? limiter : NULL;
}

__inline struct pf_limiter_use *limiter_use(__u32 kind, __u32 id)
{
	__u32 index = kind * PF_LIMITERS + id;

	return bpf_map_lookup_elem(&limiter_uses, &index);
}

/* The moment from which on tokens count that can be had now. */
__inline __s64 saved_since(const struct pf_limiter *limiter, __u64 saved, __s64 now)
{
	__s64 earliest = now - (__s64)limiter->bucket;

	return max((__s64)saved, earliest);
}

__inline bool has_token(const struct pf_limiter *limiter, __u64 saved, __s64 now)
{
	return !limiter->bucket ||
	       now - saved_since(limiter, saved, now) >= (__s64)limiter->token;
}

/* Takes a token of a state limiter. False if there is none, or others were faster too often. */
__inline bool take_token(const struct pf_limiter *limiter, struct pf_limiter_use *use, __s64 now)
{
	__u64 before, after;

	if (!limiter->bucket)
		return true;
	for (int i = 0; i < TOKEN_TRIES; i++) {
		before = *(volatile __u64 *)&use->saved_since;
		if (!has_token(limiter, before, now))
			return false;
		after = saved_since(limiter, before, now) + limiter->token;
		if (__sync_bool_compare_and_swap(&use->saved_since, before, after))
			return true;
	}
	return false;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Names a source of a limiter. */
__inline void set_limited_key(struct pf_limited_key *key, __u32 serial, __u32 id, __u32 rdomain,
			      __u8 family, const void *address, __u32 prefix)
{
	__u32 left = prefix;

	__builtin_memset(key, 0, sizeof(*key));
	key->serial = serial;
	key->id = id;
	key->rdomain = rdomain;
	key->family = family;
	for (int i = 0; i < 4; i++) {
		__u32 bits = min(left, 32), word;

		__builtin_memcpy(&word, (const __u8 *)address + 4 * i, sizeof(word));
		if (bits < 32)
			word &= bpf_htonl(~(0xffffffffu >> bits));
		__builtin_memcpy(key->address + 4 * i, &word, sizeof(word));
		left -= bits;
	}
}

__inline __u8 mask_length(const struct pf_limiter *limiter, __u8 family)
{
	return family == AF_INET ? limiter->inet_mask : limiter->inet6_mask;
}

/* Whether a state limiter has no room. One that is not there never has. */
__inline bool state_limiter_refuses(struct pf_scratch *s, __u32 id, bool *missing)
{
	struct pf_limiter *limiter = find_limiter(s->generation, PF_LIMITER_STATE, id);
	struct pf_limiter_use *use = limiter_use(PF_LIMITER_STATE, id);

	*missing = !limiter;
	if (!limiter || !use)
		return true;
	if (use->states >= limiter->limit) {
		__sync_fetch_and_add(&use->hard_limited, 1);
		return true;
	}
	if (!has_token(limiter, use->saved_since, uptime_ns())) {
		__sync_fetch_and_add(&use->rate_limited, 1);
		return true;
	}
	return false;
}

/* The same of a source limiter and the packet's source, whatever rules have made of that. */
__inline bool source_limiter_refuses(struct pf_scratch *s, __u32 id, bool *missing)
{
	struct pf_limiter *limiter = find_limiter(s->generation, PF_LIMITER_SOURCE, id);
	struct pf_limiter_use *use = limiter_use(PF_LIMITER_SOURCE, id);
	struct pf_limited_source *source;
	struct pf_limited_key key;

	*missing = !limiter;
	if (!limiter || !use)
		return true;
	set_limited_key(&key, use->serial, id, s->pd.rdomain, s->pd.family,
			&s->pd.original_source, mask_length(limiter, s->pd.family));
	source = bpf_map_lookup_elem(&limited_sources, &key);
	if (!source) {
		if (use->sources < limiter->entries)
			return false;
		__sync_fetch_and_add(&use->sources_limited, 1);
		return true;
	}
	if (source->states >= limiter->limit) {
		__sync_fetch_and_add(&source->hard_limited, 1);
		__sync_fetch_and_add(&use->hard_limited, 1);
		return true;
	}
	if (!has_token(limiter, source->saved_since, uptime_ns())) {
		__sync_fetch_and_add(&source->rate_limited, 1);
		__sync_fetch_and_add(&use->rate_limited, 1);
		return true;
	}
	return false;
}

enum limiter_answer {
	LIMITER_ADMITS,
	LIMITER_NO_MATCH,		/* the rule does not match */
	LIMITER_DROPS,			/* the packet is dropped, for this reason: s->test.limited */
};

/* Whether the limiters of a rule have room for one more state. */
__global int ask_limiters(struct pf_scratch *s, const struct pf_rule *rule)
{
	__u32 of_states, of_sources;
	bool missing;

	if (!s || !rule)
		return LIMITER_NO_MATCH;
	of_states = rule->limiter[PF_LIMITER_STATE];
	if (of_states && state_limiter_refuses(s, of_states & 0xff, &missing)) {
		if (missing || of_states & PF_LIMITER_NO_MATCH)
			return LIMITER_NO_MATCH;
		s->test.limited = PF_REASON_STATE_LIMIT;
		return LIMITER_DROPS;
	}
	of_sources = rule->limiter[PF_LIMITER_SOURCE];
	if (of_sources && source_limiter_refuses(s, of_sources & 0xff, &missing)) {
		if (missing || of_sources & PF_LIMITER_NO_MATCH)
			return LIMITER_NO_MATCH;
		s->test.limited = PF_REASON_SRC_LIMIT;
		return LIMITER_DROPS;
	}
	return LIMITER_ADMITS;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Has a source leave its limiter's table. False if too many are about to. */
__inline bool leave_table(const struct pf_limiter *limiter, const struct pf_limited_key *key)
{
	struct pf_status *status = pf_status();
	struct pf_leaving item = {
		.key = *key,
		.table = limiter->table,
		.prefix = mask_length(limiter, key->family),
		.below = limiter->below,
	};

	if (!status || bpf_map_push_elem(&leaving, &item, BPF_ANY))
		return false;
	__sync_fetch_and_add(&status->leaving, 1);
	return true;
}

/* sources that leave tables before one packet */
#define LEAVING_AT_ONCE	1024

static int let_one_leave(__unused __u32 i, void *arg)
{
	struct pf_status *status = *(struct pf_status **)arg;
	struct pf_limited_source *source;
	struct pf_leaving item;
	bool leaves = true;

	if (bpf_map_pop_elem(&leaving, &item))
		return 1;
	__sync_fetch_and_sub(&status->leaving, 1);
	source = bpf_map_lookup_elem(&limited_sources, &item.key);
	if (source) {
		bpf_spin_lock(&source->lock);
		leaves = source->in_table && source->states < item.below;
		if (leaves)
			source->in_table = 0;
		bpf_spin_unlock(&source->lock);
	}
	if (!leaves)
		return 0;
	take_entry(item.table, item.key.family, item.key.address, item.prefix);
	if (item.prefix == (item.key.family == AF_INET ? 32 : 128))
		forget_load(item.table, item.key.family, item.key.address);
	return 0;
}

/* Whether sources are to leave tables. */
__inline bool sources_leave(void)
{
	const struct pf_status *status = pf_status();

	return status && status->leaving;
}

/* Takes sources out of the tables that they are to leave, before tables are asked. Where more of
 * them wait than one packet may take the time for, the next packet goes on. */
__global int let_sources_leave(void)
{
	struct pf_status *status = pf_status();

	if (status && status->leaving)
		bpf_loop(min(status->leaving, LEAVING_AT_ONCE), let_one_leave, &status, 0);
	return 0;
}

/* ---- letting go ------------------------------------------------------------------------------ */

/* A state of the source with this serial is gone. `unmade`: it was not made after all, and gives
 * its token back. */
__inline void release_limited(struct pf_limited_key *key, __u32 made, __u32 generation, bool unmade)
{
	struct pf_limited_source *source;
	struct pf_limiter_use *use;
	struct pf_limiter *limiter;
	__u32 stays_until;
	bool counted, leaves = false;

	limiter = find_limiter(generation, PF_LIMITER_SOURCE, key->id);
	use = limiter_use(PF_LIMITER_SOURCE, key->id);
	source = bpf_map_lookup_elem(&limited_sources, key);
	if (!limiter || !use || !source || use->serial != key->serial)
		return;
	/* as OpenBSD, which adds the seconds when the last state goes and again when it looks */
	stays_until = uptime() + 2 * (__u32)(limiter->bucket / NSEC_PER_SEC) + 1;
	bpf_spin_lock(&source->lock);
	counted = !source->gone && source->serial == made;
	if (counted) {
		source->states--;
		if (unmade)
			source->saved_since -= limiter->token;
		if (!source->states)
			source->stays_until = stays_until;
		leaves = source->in_table && source->states + 1 == limiter->below;
	}
	bpf_spin_unlock(&source->lock);
	if (counted)
		__sync_fetch_and_sub(&use->states, 1);
	if (leaves)
		leave_table(limiter, key);
}

/* ---- holding --------------------------------------------------------------------------------- */

/* Counts one more state for a state limiter. */
__inline int hold_state_limiter(struct pf_scratch *s, struct pf_limited *held, __u32 id)
{
	struct pf_limiter *limiter = find_limiter(s->generation, PF_LIMITER_STATE, id);
	struct pf_limiter_use *use = limiter_use(PF_LIMITER_STATE, id);

	if (!limiter || !use)
		return PF_REASON_STATE_LIMIT;
	if (__sync_fetch_and_add(&use->states, 1) >= limiter->limit) {
		__sync_fetch_and_sub(&use->states, 1);
		__sync_fetch_and_add(&use->hard_limited, 1);
		return PF_REASON_STATE_LIMIT;
	}
	if (!take_token(limiter, use, uptime_ns())) {
		__sync_fetch_and_sub(&use->states, 1);
		__sync_fetch_and_add(&use->rate_limited, 1);
		return PF_REASON_STATE_LIMIT;
	}
	__sync_fetch_and_add(&use->admitted, 1);
	held->serial = use->serial;
	held->id = id;
	return 0;
}

/* Takes a place in limited_turns for one more source. False if there is none. */
__inline bool take_turn(struct pf_status *status)
{
	if (__sync_fetch_and_add(&status->limited_turns, 1) < status->limited_capacity)
		return true;
	__sync_fetch_and_sub(&status->limited_turns, 1);
	return false;
}

/* Puts a source of a limiter into limited_sources, and has the sweep look at it from time to time.
 * Returns 0, or an error: -EEXIST if another CPU was faster. */
__inline long add_limited(struct pf_status *status, const struct pf_limited_key *key,
			  const struct pf_limited_source *source)
{
	struct pf_limited_turn turn = { .key = *key, .source = source->serial };
	long error;

	if (!take_turn(status))
		return -E2BIG;
	error = bpf_map_update_elem(&limited_sources, key, source, BPF_NOEXIST);
	if (!error) {
		error = bpf_map_push_elem(&limited_turns, &turn, BPF_ANY);
		if (!error)
			return 0;
		bpf_map_delete_elem(&limited_sources, key);
	}
	__sync_fetch_and_sub(&status->limited_turns, 1);
	return error;
}

/* Makes a source of a limiter known, without states yet. Returns the reason why not, or 0. */
__inline int make_limited(struct pf_limiter *limiter, struct pf_limiter_use *use,
			  const struct pf_limited_key *key)
{
	struct pf_limited_source new = {};
	struct pf_status *status = pf_status();
	long error;

	if (!status)
		return PF_REASON_MEMORY;
	if (__sync_fetch_and_add(&use->sources, 1) >= limiter->entries) {
		__sync_fetch_and_sub(&use->sources, 1);
		__sync_fetch_and_add(&use->sources_limited, 1);
		return PF_REASON_SRC_LIMIT;
	}
	/* as OpenBSD's begin in the distant past: the first state costs nothing */
	new.saved_since = 1ull << 63;
	new.stays_until = uptime();
	new.serial = __sync_fetch_and_add(&use->last_source, 1) + 1;
	error = add_limited(status, key, &new);
	if (!error) {
		__sync_fetch_and_add(&use->sources_made, 1);
		__sync_fetch_and_add(&status->limited_sources, 1);
		return 0;
	}
	__sync_fetch_and_sub(&use->sources, 1);
	if (error == -EEXIST)
		return 0;
	__sync_fetch_and_add(&use->sources_lost, 1);
	return PF_REASON_MEMORY;
}

/* Counts one more state for a source that is known, unless that is too many. */
__inline int hold_limited(struct pf_scratch *s, struct pf_limiter *limiter,
			  struct pf_limited_source *source, const struct pf_limited_key *key)
{
	struct pf_config *config = pf_config(s->generation);
	__s64 now = uptime_ns(), earliest = now - (__s64)limiter->bucket, since;
	bool put = false, refused;
	__u32 before;

	if (!config)
		return PF_REASON_MEMORY;
	bpf_spin_lock(&source->lock);
	before = source->states;
	since = source->saved_since;
	refused = source->gone || before >= limiter->limit;
	if (limiter->bucket && source->admitted) {
		since = max(since, earliest);
		refused = refused || now - since < (__s64)limiter->token;
	}
	if (!refused) {
		source->states = before + 1;
		source->admitted++;
		source->saved_since = since + limiter->token;
		put = limiter->above && before && before >= limiter->above && !source->in_table;
		if (put)
			source->in_table = 1;
	}
	bpf_spin_unlock(&source->lock);
	if (refused)
		return PF_REASON_SRC_LIMIT;
	if (put)
		put_entry(limiter->table, key->family, key->address,
			  mask_length(limiter, key->family), config->limit_table_entries, s->now);
	return 0;
}

/* Counts one more state for a source limiter, and the packet's source there. */
__global int hold_source_limiter(struct pf_scratch *s, struct pf_limited *held, __u32 id)
{
	struct pf_limited_source *source;
	struct pf_limiter_use *use;
	struct pf_limiter *limiter;
	struct pf_limited_key key;
	int reason;

	if (!s || !held)
		return PF_REASON_MEMORY;
	id &= 0xff;
	limiter = find_limiter(s->generation, PF_LIMITER_SOURCE, id);
	use = limiter_use(PF_LIMITER_SOURCE, id);
	if (!limiter || !use)
		return PF_REASON_SRC_LIMIT;
	set_limited_key(&key, use->serial, id, s->pd.rdomain, s->pd.family,
			&s->pd.original_source, mask_length(limiter, s->pd.family));
	source = bpf_map_lookup_elem(&limited_sources, &key);
	if (!source) {
		reason = make_limited(limiter, use, &key);
		if (reason)
			return reason;
		source = bpf_map_lookup_elem(&limited_sources, &key);
		if (!source)
			return PF_REASON_SRC_LIMIT;
	}
	reason = hold_limited(s, limiter, source, &key);
	if (reason)
		return reason;
	__sync_fetch_and_add(&use->states, 1);
	__sync_fetch_and_add(&use->admitted, 1);
	held->serial = key.serial;
	held->source = source->serial;
	held->id = id;
	held->prefix = mask_length(limiter, s->pd.family);
	return 0;
}

/* ---- sweeping -------------------------------------------------------------------------------- */

/* Removes a source of a limiter if it has had no states for long enough, or if its limiter is gone.
 * False if the sweep is to look at it again. */
__inline bool remove_limited(const struct pf_limited_turn *turn, __u32 now)
{
	struct pf_limited_source *source = bpf_map_lookup_elem(&limited_sources, &turn->key);
	struct pf_limiter_use *use = limiter_use(PF_LIMITER_SOURCE, turn->key.id);
	struct pf_status *status = pf_status();
	struct pf_limiter *limiter;
	bool is_void, mine;

	if (!source || source->serial != turn->source || !use || !status)
		return true;
	is_void = use->serial != turn->key.serial;
	limiter = find_limiter(status->generation, PF_LIMITER_SOURCE, turn->key.id);
	/* it should have left its table long ago, and has, unless no packet came or there was a
	 * crowd */
	if (!is_void && limiter && source->in_table && !source->states && limiter->below &&
	    !leave_table(limiter, &turn->key))
		return false;
	bpf_spin_lock(&source->lock);
	mine = !source->gone && (is_void || (!source->states && now > source->stays_until));
	if (mine)
		source->gone = 1;
	bpf_spin_unlock(&source->lock);
	if (!mine)
		return false;
	bpf_map_delete_elem(&limited_sources, &turn->key);
	__sync_fetch_and_sub(&status->limited_sources, 1);
	if (!is_void)
		__sync_fetch_and_sub(&use->sources, 1);
	return true;
}

/* Forgets a source, whose states go on: nobody counts them any more. What it brought into a table
 * stays there, as in OpenBSD. Returns 1, or 0 if there is no such source. */
SEC("syscall")
int pf_forget_limited(struct pf_limited_key *given)
{
	struct pf_limited_key key = *given;
	struct pf_limited_source *source = bpf_map_lookup_elem(&limited_sources, &key);
	struct pf_limiter_use *use = limiter_use(PF_LIMITER_SOURCE, key.id);
	struct pf_status *status = pf_status();
	__u32 states;
	bool mine;

	if (!source || !use || !status)
		return 0;
	bpf_spin_lock(&source->lock);
	mine = !source->gone;
	source->gone = 1;
	states = source->states;
	bpf_spin_unlock(&source->lock);
	if (!mine)
		return 0;
	bpf_map_delete_elem(&limited_sources, &key);
	__sync_fetch_and_sub(&status->limited_sources, 1);
	__sync_fetch_and_sub(&use->sources, 1);
	__sync_fetch_and_sub(&use->states, states);
	return 1;
}

#endif /* PF_LIMITER_H */
