/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `scrub (reassemble tcp)`: what a state remembers of each side's TTL and TCP timestamps (RFC
 * 7323), and what it makes of segments that do not fit (pf-semantics section 13).
 *
 * Timestamps get an offset, so that nobody can tell from them how long a host is up or how many
 * hosts share an address. A timestamp that does not go on from those before it was sent by somebody
 * else.
 */
#ifndef PF_TIMESTAMP_H
#define PF_TIMESTAMP_H

#include "config.h"
#include "kern.h"
#include "packet.h"
#include "scratch.h"
#include "secret.h"
#include "timeout.h"

#define TICKS_A_SECOND	1100		/* RFC 7323 says 1000 at most, and 10% is allowed */
#define TS_MAX_IDLE	(24 * 24 * 60 * 60)	/* the fastest clock comes round in so many seconds */
#define TS_MAX_CONN	(12 * 24 * 60 * 60)	/* so long an echo can be told from one to come */

/* ---- before the state's lock is taken -------------------------------------------------------- */

static int find_timestamp(__unused __u32 i, void *arg)
{
	struct pf_scratch *s = ((struct pf_loop *)arg)->s;
	enum option_step step;
	__u32 at;

	step = step_over_option(s, TCPOPT_TIMESTAMP, TCPOLEN_TIMESTAMP, &at);
	if (step == OPTION_NONE)
		return 1;
	if (step == OPTION_FOUND) {
		s->stamp.count++;
		s->stamp.at = sizeof(struct tcp) + at + 2;
		__builtin_memcpy(&s->stamp.value, s->buffer + at + 2, 4);
		__builtin_memcpy(&s->stamp.echo, s->buffer + at + 6, 4);
	}
	return 0;
}

/* Reads the segment's timestamps, and what the state of a rule in this slot needs besides. */
__global int read_timestamp(struct __sk_buff *skb, struct pf_scratch *s, __u32 rule_slot)
{
	struct pf_loop loop = { .s = s };
	struct pf_rule_states *rule;
	struct pf_config *config;
	struct pf_test *driven;

	if (!s)
		return 0;
	__builtin_memset(&s->stamp, 0, sizeof(s->stamp));
	if (load_tcp_options(skb, s))
		bpf_loop(TCP_MAX_OPTIONS, find_timestamp, &loop, 0);
	driven = pf_driven();
	s->stamp.offset = driven ? driven->timestamp : hash_connection(s, PF_SECRET_TIMESTAMP);
	rule = bpf_map_lookup_elem(&rule_states, &rule_slot);
	config = pf_config(s->generation);
	if (rule)
		s->stamp.slack = rule->timeouts[PF_TIMEOUT_TCP_TSDIFF];
	if (!s->stamp.slack && config)
		s->stamp.slack = config->timeouts[PF_TIMEOUT_TCP_TSDIFF];
	s->stamp.known = 1;
	return 0;
}

/* ---- under the lock -------------------------------------------------------------------------- */

/* A side at its first packet. Its timestamps count only if its SYN has one. */
__inline void meet_timestamp(struct pf_scrub *scrub, const struct pf_scratch *s)
{
	scrub->present = 1;
	scrub->ttl = s->pd.ttl;
	if (!(s->pd.tcp.flags & TH_SYN) || !s->stamp.count)
		return;
	scrub->flags = PF_SCRUB_TIMESTAMP;
	scrub->offset = s->stamp.offset;
	scrub->value = scrub->first = bpf_ntohl(s->stamp.value);
	scrub->echo = bpf_ntohl(s->stamp.echo);
	scrub->last = s->now;
}

/* The same of the side whose first packet this is, if the state's rule wants it or the other side
 * was met. */
__inline void meet_other_timestamp(const struct pf_state *state, struct pf_extension *extension,
				   const struct pf_scratch *s, bool by_maker)
{
	struct pf_scrub *xs = by_maker ? &extension->scrub[0] : &extension->scrub[1];
	const struct pf_scrub *ys = by_maker ? &extension->scrub[1] : &extension->scrub[0];

	if ((state->flags & PF_STATE_REASSEMBLE_TCP || ys->present) && !xs->present)
		meet_timestamp(xs, s);
}

__inline void idle_out(struct pf_scrub *scrub, bool over, __u32 now)
{
	if (scrub->flags & PF_SCRUB_PAWS && (over || now - scrub->last > TS_MAX_IDLE))
		scrub->flags = (scrub->flags & ~PF_SCRUB_PAWS) | PF_SCRUB_PAWS_IDLED;
}

/*
 * Checks the timestamp of a segment that fits otherwise. X and Y are its sender and its receiver.
 * False if its connection cannot have sent it.
 */
__inline bool track_timestamp(const struct pf_state *state, struct pf_extension *extension,
			      struct pf_scratch *s, const struct pf_peer *x,
			      const struct pf_peer *y, bool by_maker)
{
	struct pf_scrub *xs = by_maker ? &extension->scrub[0] : &extension->scrub[1];
	struct pf_scrub *ys = by_maker ? &extension->scrub[1] : &extension->scrub[0];
	struct pf_stamp *stamp = &s->stamp;
	/* OpenBSD leaves a number that it does not modulate in the order of the bytes on the wire,
	 * and goes on with it */
	__u32 value = stamp->value, echo = stamp->echo;
	bool got = false, data = s->pd.payload;
	__u32 latest;

	if (!xs->present && !ys->present)
		return true;
	if (!stamp->known)	/* it was not read: the state was made another meanwhile */
		return false;
	if (xs->present) {
		xs->ttl = max(xs->ttl, s->pd.ttl);
		stamp->ttl = xs->ttl;
	}
	if (stamp->count && (xs->flags | ys->flags) & PF_SCRUB_TIMESTAMP) {
		if (stamp->count > 1)
			return false;
		got = true;
		if (value && xs->flags & PF_SCRUB_TIMESTAMP) {
			value = bpf_ntohl(value);
			stamp->add_to_value = xs->offset;
		}
		if (echo && ys->flags & PF_SCRUB_TIMESTAMP) {
			echo = bpf_ntohl(echo) - ys->offset;
			stamp->take_off_echo = ys->offset;
		}
	}
	idle_out(xs, s->now - state->creation > TS_MAX_CONN, s->now);
	idle_out(ys, false, s->now);

	if (xs->flags & PF_SCRUB_PAWS && ys->flags & PF_SCRUB_PAWS) {
		latest = xs->value + (s->now - xs->last + stamp->slack) * TICKS_A_SECOND;
		if (got && x->state >= PF_TCPS_ESTABLISHED && y->state >= PF_TCPS_ESTABLISHED &&
		    (!SEQ_GEQ(value, ys->echo) || SEQ_GT(value, latest) ||
		     (echo && (SEQ_GT(echo, ys->value) || !SEQ_GEQ(echo, ys->first)))))
			return false;
		if (!got && !(s->pd.tcp.flags & TH_RST) && data && xs->flags & PF_SCRUB_DATA_TS)
			return false;
	}
	if (data && (xs->flags & (PF_SCRUB_TIMESTAMP | PF_SCRUB_DATA_TS | PF_SCRUB_DATA_NO_TS)) ==
	    PF_SCRUB_TIMESTAMP)
		xs->flags |= got ? PF_SCRUB_DATA_TS : PF_SCRUB_DATA_NO_TS;

	if (!got || (xs->flags & (PF_SCRUB_TIMESTAMP | PF_SCRUB_PAWS_IDLED)) != PF_SCRUB_TIMESTAMP)
		return true;
	xs->last = s->now;
	if (SEQ_GEQ(value, xs->value) || !(xs->flags & PF_SCRUB_PAWS))
		xs->value = value;
	if (!echo)
		return true;
	if (SEQ_GEQ(echo, xs->echo) || !(xs->flags & PF_SCRUB_PAWS))
		xs->echo = echo;
	if (!(xs->flags & PF_SCRUB_PAWS) && (!SEQ_GEQ(value, xs->first) || !xs->first))
		xs->first = value;
	/* they are checked from the first one on that echoes something */
	xs->flags |= PF_SCRUB_PAWS;
	return true;
}

#endif /* PF_TIMESTAMP_H */
