/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Records of dropped packets for the programs that read them (`pfctl drops`), whether a rule logs
 * the packet or not. Each program has a ring and a bit in pf_status.drop_readers. Without such a
 * program, a dropped packet costs a look at that word. Only the slow path and the guard write the
 * records: with a reader, a packet that the fast path would drop takes the slow path.
 *
 * A flood must not cost more because somebody looks at it. So a CPU writes records of at most
 * DROPS_PER_SECOND packets in a second. It drops further packets as if nobody read, and counts
 * them.
 *
 * A reader sets its bit again as it reads. The timer takes the bits of readers that have stopped,
 * so a reader that was killed costs nothing after a few seconds, even if no process is left.
 */
#ifndef PF_DROP_H
#define PF_DROP_H

#include "config.h"
#include "frame.h"
#include "interface.h"
#include "kern.h"
#include "log.h"
#include "reason.h"
#include "scratch.h"
#include "time.h"

#define DROPS_PER_SECOND	10000	/* packets of which a CPU writes records */
#define READER_SECONDS		4	/* interval in which a program has to read */

struct pf_drop_rate {
	__u32 second;
	__u32 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_drop_rate);
} drop_rates SEC(".maps");

/* True if this CPU may write records of `count` more packets in this second. Adds them to those of
 * the second. A test, whose clock stands, has no such limit. */
__global int may_report(__u32 count)
{
	__u32 zero = 0, now;
	struct pf_drop_rate *rate = bpf_map_lookup_elem(&drop_rates, &zero);
	const struct pf_status *status = pf_status();

	if (!rate || !status)
		return 0;
	now = uptime_about(status);
	if (rate->second != now) {
		rate->second = now;
		rate->packets = 0;
	}
	if (rate->packets >= DROPS_PER_SECOND && !driven_by_test())
		return 0;
	rate->packets += count;
	return 1;
}

/* Returns the programs that get a record of a packet that is dropped, as bits. Counts a packet of
 * which they get none. */
__inline __u32 readers_of_drop(const struct pf_status *status)
{
	if (!status->drop_readers)
		return 0;
	if (may_report(1))
		return status->drop_readers;
	count_drop_unreported();
	return 0;
}

/* True if programs read dropped packets. The status is looked up once more, because the paths of
 * packets that pass would otherwise keep a register for it. */
__inline bool drops_are_read(void)
{
	const struct pf_status *status = pf_status();

	return status && status->drop_readers;
}

/* True if the fast path has to leave a packet that it would drop to the slow path, which writes the
 * records. */
__inline bool must_be_reported(void)
{
	return drops_are_read() && may_report(0);
}

/* Counts a packet that the fast path drops although programs read: there were too many in this
 * second. */
__inline void count_if_unreported(void)
{
	if (drops_are_read())
		count_drop_unreported();
}

/* Takes the bits of readers that have not read since this function looked last. Called once a
 * second. */
__inline void end_silent_readers(struct pf_status *status, __u32 second)
{
	__u32 alive;

	if (!status->drop_readers || second % READER_SECONDS)
		return;
	alive = __sync_lock_test_and_set(&status->drop_readers_alive, 0);
	__sync_fetch_and_and(&status->drop_readers, alive);
}

/* True if the filter has answered a SYN in the name of the server, by a cookie: the connection may
 * go on. */
__inline bool answers_for_server(const struct pf_reply *reply)
{
	return reply->kind == PF_REPLY_TCP && reply->tcp_flags == (TH_SYN | TH_ACK);
}

/* Returns the reason for which the packet is dropped. The log has another reason for some packets,
 * because OpenBSD only counts reasons that are met while the rules decide. A state that refuses a
 * packet and challenges its sender counts no reason. PF_REASON_MATCH for a packet that passed: it
 * cannot be sent. */
__inline __u32 drop_reason(const struct pf_scratch *s, bool pass)
{
	const __u8 *counted = s->outcome.counted;

	if (s->outcome.reason != PF_REASON_MATCH || s->rule.action == PF_ACTION_BLOCK)
		return s->outcome.reason;
	for (__u32 reason = PF_REASON_MATCH + 1; reason < PF_REASON_MAX; reason++) {
		if (counted[reason])
			return reason;
	}
	if (pass || counted[PF_REASON_MATCH])
		return PF_REASON_MATCH;
	return s->pd.virtual_protocol == PF_VPROTO_FRAGMENT ? PF_REASON_FRAGMENT :
							      PF_REASON_STATE_MISMATCH;
}

/* Writes a record to each reader. */
__inline void write_drop(struct __sk_buff *skb, struct pf_scratch *s, __u32 readers, __u32 reason,
			 __u32 action)
{
	s->log_reason = reason;
	log_place(s, s->rule.anchor_number, s->rule.anchor);
	for (__u32 number = 0; number < PF_DROP_READERS; number++) {
		if (readers & 1u << number)
			pf_log_to_reader(skb, s, s->rule.number, action,
					 LOG_TARGET_DROPS | number);
	}
}

/* Reports a packet to the programs that read. */
__global int report_to_readers(struct __sk_buff *skb, struct pf_scratch *s, __u32 pass)
{
	const struct pf_status *status = pf_status();
	__u32 readers;

	if (!s || !status || answers_for_server(&s->reply))
		return 0;
	readers = readers_of_drop(status);
	if (readers)
		write_drop(skb, s, readers, drop_reason(s, pass),
			   pass ? PF_ACTION_PASS : PF_ACTION_BLOCK);
	return 0;
}

/* Reports a packet that is dropped. `pass` says that its rule, or its state, passes it. */
__inline void report_drop(struct __sk_buff *skb, struct pf_scratch *s, __u32 pass)
{
	if (drops_are_read())
		report_to_readers(skb, s, pass);
}

/* The place of an IP header in a frame of which the record begins with the link header. */
#define FROM_LINK_HEADER	(~0u)

/* Reports a frame that no rule has judged on the interface. `ip` is the place of its IP header. The
 * scratch of the packet in hand may be that of another packet, so this has one of its own. */
__global int report_frame(struct __sk_buff *skb, __u32 ifindex, __u32 ip, __u32 direction,
			  __u32 reason)
{
	const struct pf_status *status = pf_status();
	__u32 nested = 1, readers;
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &nested);
	__u8 version;

	if (!s || !status)
		return 0;
	readers = readers_of_drop(status);
	if (!readers)
		return 0;
	find_interface(&s->interface, ifindex);
	__builtin_memset(&s->pd, 0, sizeof(s->pd));	/* of the packet before */
	s->pd.direction = direction;
	if (ip != FROM_LINK_HEADER) {
		s->pd.ip = ip;
		if (!bpf_skb_load_bytes(skb, ip, &version, sizeof(version)))
			s->pd.family = version >> 4 == 6 ? AF_INET6 : AF_INET;
	}
	s->rule.number = s->rule.anchor_number = -1;
	s->rule.anchor = 0;
	write_drop(skb, s, readers, reason, PF_ACTION_BLOCK);
	return 0;
}

/* Counts and reports a packet that has passed and cannot leave. Returns the program's result. */
__inline int refuse_leaving(struct __sk_buff *skb, enum pf_reason reason)
{
	__u32 tags = 0, ip;
	__be16 type;

	ip = has_ethernet_header(skb) ? skip_tags(skb, &type, &tags) : other_link_header(skb);
	count_reason(reason);
	report_frame(skb, skb->ifindex, ip, PF_OUT, reason);
	return PF_TCX_DROP;
}

#endif /* PF_DROP_H */
