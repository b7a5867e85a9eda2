/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Records for pflog (pf-semantics section 18), with the packet as it was seen, before anything in
 * it is changed. skipstepd writes the beginning of each to a file; a program that reads pflogN
 * itself, while it is at work, gets those of that log, and whole packets.
 */
#ifndef PF_LOG_H
#define PF_LOG_H

#include "kern.h"
#include "owner.h"
#include "reason.h"
#include "scratch.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} log_ring SEC(".maps");

/* made by the program that reads */
struct ring_of_reader {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 12);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PF_LOGS + PF_DROP_READERS);
	__type(key, __u32);
	__array(values, struct ring_of_reader);
} log_readers SEC(".maps");

/* Which rule set the records written from now on name, and the anchor rule that led there. */
__inline void log_place(struct pf_scratch *s, __s32 anchor_rule, __u32 anchor)
{
	s->log_anchor_rule = anchor_rule;
	s->log_anchor = anchor;
}

__inline __u8 log_flags(const struct pf_rule *rule)
{
	return (rule->flags & PF_RULE_LOG_ALL ? PF_LOG_ALL : 0) |
	       (rule->flags & PF_RULE_LOG_USER ? PF_LOG_USER : 0);
}

#define LOG_TARGET_USER		(1 << 8)
#define LOG_TARGET_DROPS	(1 << 9)	/* a reader of dropped packets, instead of a log */

/* Where a record goes, n of pflogN, and whether it names the owner of the socket: all that pf_log
 * needs to know of the rule that asked for it. */
__inline __u32 log_target(__u8 log_to, __u8 flags)
{
	return log_to | (flags & PF_LOG_USER ? LOG_TARGET_USER : 0);
}

/* All of a record but the packet. */
__inline void log_describe(struct __sk_buff *skb, const struct pf_scratch *s,
			   struct pf_log_record *record, __s32 rule, __u32 action, __u32 target)
{
	record->time = bpf_ktime_get_boot_ns();
	__builtin_memcpy(record->ifname, s->interface.name, sizeof(record->ifname));
	__builtin_memcpy(record->source, &s->pd.source, sizeof(record->source));
	__builtin_memcpy(record->destination, &s->pd.destination, sizeof(record->destination));
	record->source_port = s->pd.source_port;
	record->destination_port = s->pd.destination_port;
	record->rule = rule;
	record->anchor_rule = s->log_anchor_rule;
	record->anchor = s->log_anchor;
	record->family = s->pd.family;
	record->action = action;
	record->reason = s->log_reason;
	record->direction = s->pd.direction;
	record->log_to = target;
	record->uid = target & LOG_TARGET_USER ? s->owner_uid : NOBODY;
	record->rewritten = PF_LOG_UNCHANGED;
	if (has_new_ends(&s->pd))
		record->rewritten = s->cross_to ? PF_LOG_CROSSES : PF_LOG_TRANSLATED;
	record->wirelen = skb->len - s->pd.ip;
}

/* The packet, of which `room` bytes fit into the record; what cannot be had is left out. */
__inline void log_copy(struct __sk_buff *skb, const struct pf_scratch *s,
		       struct pf_log_record *record, __u32 room)
{
	__u32 length = min(record->wirelen, room);

	if (load_bytes(skb, s->pd.ip, (void *)record + offsetof(struct pf_log_record, data), length,
		       room))
		length = 0;
	record->caplen = length;
}

/* A record for the program that reads this log itself, or dropped packets; 0 if none does. Most
 * packets of interest are short, and what is reserved in a ring is of one size or another. */
__global int pf_log_to_reader(struct __sk_buff *skb, struct pf_scratch *s, __s32 rule, __u32 action,
			      __u32 target)
{
	struct pf_log_record *record;
	__u32 number = target % PF_LOGS, place = number;
	void *ring;

	if (!s)
		return 0;
	if (target & LOG_TARGET_DROPS)
		place += PF_LOGS;
	ring = bpf_map_lookup_elem(&log_readers, &place);
	if (!ring)
		return 0;
	if (skb->len - s->pd.ip <= PF_SNAPLEN) {
		record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
		if (record) {
			log_describe(skb, s, record, rule, action, target);
			log_copy(skb, s, record, PF_SNAPLEN);
			bpf_ringbuf_submit(record, 0);
			return 1;
		}
	} else {
		record = bpf_ringbuf_reserve(ring, offsetof(struct pf_log_record, data) + PF_LOG_WHOLE, 0);
		if (record) {
			log_describe(skb, s, record, rule, action, target);
			log_copy(skb, s, record, PF_LOG_WHOLE);
			bpf_ringbuf_submit(record, 0);
			return 1;
		}
	}
	if (target & LOG_TARGET_DROPS)
		count_drop_lost(number);
	else
		count_log_lost();
	return 1;
}

/* Writes a record to its target: rule number and action as given, the rest from s->log_*. */
/* Differs from OpenBSD: linux.md, "The log" */
__global int pf_log(struct __sk_buff *skb, struct pf_scratch *s, __s32 rule, __u32 action,
		    __u32 target)
{
	struct pf_log_record *record;

	if (!s)
		return 0;
	if (s->outcome.logged < 255)
		s->outcome.logged++;
	if (target & LOG_TARGET_USER)
		find_owner(skb, s);
	if (pf_log_to_reader(skb, s, rule, action, target))
		return 0;
	record = bpf_ringbuf_reserve(&log_ring, sizeof(*record), 0);
	if (!record) {
		count_log_lost();
		return 0;
	}
	log_describe(skb, s, record, rule, action, target);
	log_copy(skb, s, record, PF_SNAPLEN);
	bpf_ringbuf_submit(record, 0);
	return 0;
}

struct pf_log_loop {
	struct __sk_buff *skb;
	struct pf_scratch *s;
	__s32 rule;
	__u32 action;
};

static int log_for_match_rule(__u32 i, void *arg)
{
	struct pf_log_loop *loop = arg;

	if (i >= PF_MATCH_RULES || i >= loop->s->test.match_count)
		return 1;
	if (loop->s->test.match_log_matches[i])
		pf_log(loop->skb, loop->s, loop->rule, loop->action,
		       log_target(loop->s->test.match[i].log_to, loop->s->test.match[i].log));
	return 0;
}

/* A rule matched after `match log (matches)` rules: a record to the log of each. */
__global int pf_log_matches(struct __sk_buff *skb, struct pf_scratch *s, __s32 rule, __u32 action)
{
	struct pf_log_loop loop = { .skb = skb, .s = s, .rule = rule, .action = action };

	if (!s)
		return 0;
	bpf_loop(PF_MATCH_RULES, log_for_match_rule, &loop, 0);
	return 0;
}

#endif /* PF_LOG_H */
