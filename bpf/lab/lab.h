/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * What the laboratory's generator and sink share with fwlab. crates/kernel/src/lab mirrors the
 * structs; maps with values of another size are refused when they are opened.
 */
#ifndef LAB_H
#define LAB_H

#include <linux/types.h>

/*
 * The tag stands right behind the transport header. Its serial number has the trial in the upper
 * 16 bits, so that stragglers of one trial are not taken for frames of the next.
 *
 *	 0		2		10		18
 *	| LAB_MAGIC	| serial number	| ns, intended	|
 */
#define LAB_MAGIC		0x5046
#define LAB_TAG_BYTES		18
#define LAB_TRIAL_SHIFT		48
#define LAB_SERIAL_MASK		((1ULL << LAB_TRIAL_SHIFT) - 1)

/* Ethernet, IPv6, 40 bytes of extension headers and TCP header, rounded up */
#define LAB_HEADER_BYTES	120
#define LAB_TEMPLATES		8
#define LAB_PATTERN		64
#define LAB_VALUES		1048576

/* which headers a template has */
enum lab_kind {
	LAB_UDP4,
	LAB_TCP4,
	LAB_UDP6,
	LAB_TCP6,
};

/* how a field of the frames varies */
enum lab_how {
	LAB_FIXED,		/* as in the template */
	LAB_COUNTED,		/* first + serial / every % count */
	LAB_DRAWN,		/* first + something random below count */
	LAB_LISTED,		/* values[first + serial / every % count] */
	LAB_LISTED_DRAWN,	/* values[first + something random below count] */
};

/* the fields that may vary: of addresses the last 32 bits */
enum lab_place {
	LAB_SOURCE,
	LAB_DESTINATION,
	LAB_SOURCE_PORT,
	LAB_DESTINATION_PORT,
	LAB_PLACES,
};

struct lab_field {
	__u32 how;
	__u32 first;
	__u32 count;
	__u32 every;
};

struct lab_template {
	__u32 kind;
	__u32 length;		/* of the frame without its checksum */
	__u32 extension;	/* bytes of extension headers of IPv6: 0, 8, 24 or 40 */
	__u32 pad;
	/* sums of the 16-bit words that do not vary, varying ones taken as 0 */
	__u32 network_sum;
	__u32 transport_sum;
	__u8 headers[LAB_HEADER_BYTES];
};

/* what the generator is to do */
struct lab_order {
	__u64 slots;		/* frames to send, those that are skipped among them */
	__u64 gap;		/* from one to the next in 1/1024 ns; 0 is as fast as it goes */
	__u64 turn;		/* the slot from which on the next gap holds; `slots` if none */
	__u64 second_gap;
	__u64 grace;		/* ns after its time from which a frame is late */
	__u64 patience;		/* ns after its time from which a frame is not sent any more */
	__u32 ifindex;
	__u32 trial;
	__u32 pattern_length;
	__u32 pad;
	struct lab_field fields[LAB_PLACES];
	__u8 pattern[LAB_PATTERN];	/* numbers of templates, in turn */
};

/* what it did */
struct lab_progress {
	__u64 slot;		/* the next one */
	__u64 sent;
	__u64 late;
	__u64 skipped;
	__u64 idle;		/* runs in which it was not yet time, or no more */
	__u64 failed;		/* frames that could not be written or redirected */
	__u64 start;		/* ns when the first slot was due */
	__u64 last;		/* ns when the last frame was sent */
	__u64 worst;		/* ns after its time at most */
	__u64 random;
};

#define LAB_LINEAR		16	/* buckets an octave */
#define LAB_BUCKETS		(64 * LAB_LINEAR)
#define LAB_WINDOW		65536	/* serial numbers in which duplicates are found */
#define LAB_WINDOW_WORDS	(LAB_WINDOW / 64)

/* what the sink counted, on each CPU */
struct lab_counts {
	__u64 frames;
	__u64 bytes;
	__u64 duplicates;
	__u64 reordered;
	__u64 ancient;		/* so late that nobody knows whether they are duplicates */
	__u64 strays;		/* of other trials */
	__u64 first;		/* ns when the first came */
	__u64 last;
	__u64 sum;		/* of latencies, ns */
	__u64 longest;
	__u64 buckets[LAB_BUCKETS];
};

/* the serial numbers that came of late */
struct lab_window {
	__u64 next;		/* the highest that came, and one */
	__u32 trial;
	__u32 pad;
	__u64 came;		/* ns when that one did */
	/* the number before the last one that came where others were due, and its intended ns */
	__u64 hole;
	__u64 hole_end;
	/* the last 64 numbers that left `seen` with some missing, and which */
	__u64 lost_word;
	__u64 lost_bits;
	/* numbers missing in a row, those before and after which came the longest apart */
	__u64 gap_frames;
	__u64 gap;		/* ns between these two */
	__u64 seen[LAB_WINDOW_WORDS];
};

#endif /* LAB_H */
