/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The sink: frames that bear the generator's tag are counted, ordered, timed and dropped; all
 * others go on to the host.
 *
 * An interface with several queues may bring frames on several CPUs at once. Duplicates are found
 * all the same, the window's bits being set atomically; only at its front, where words are cleared,
 * one may escape.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "lab.h"

#define __inline	static __always_inline

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lab_counts);
} lab_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lab_window);
} lab_window SEC(".maps");

/* Most extension headers that a frame of the generator has */
#define EXTENSIONS	3

/* What stands behind the extension headers of an IPv6 packet; fragments count as whole ones. */
__inline __u8 *skip_extensions(__u8 *at, void *end, __u8 *protocol)
{
	int i;

#pragma unroll
	for (i = 0; i < EXTENSIONS; i++) {
		if (*protocol != IPPROTO_HOPOPTS && *protocol != IPPROTO_ROUTING &&
		    *protocol != IPPROTO_DSTOPTS && *protocol != IPPROTO_FRAGMENT)
			return at;
		if ((void *)(at + 8) > end)
			return NULL;
		/* the second byte of a fragment header is no length, but 0 */
		*protocol = at[0];
		at += ((__u32)at[1] + 1) * 8;
	}
	return at;
}

/* The tag of a frame, NULL if it has none. */
__inline void *find_tag(void *data, void *end)
{
	struct ethhdr *ethernet = data;
	__u8 *ip = data + ETH_HLEN, *transport, *tag, protocol;

	if ((void *)(ip + 40) > end)
		return NULL;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		transport = ip + (ip[0] & 0xf) * 4;
		protocol = ip[9];
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		protocol = ip[6];
		transport = skip_extensions(ip + 40, end, &protocol);
	} else {
		return NULL;
	}
	if (transport == NULL || (void *)(transport + 16) > end)
		return NULL;
	if (protocol == IPPROTO_UDP)
		tag = transport + 8;
	else if (protocol == IPPROTO_TCP)
		tag = transport + (transport[12] >> 4) * 4;
	else
		return NULL;
	if ((void *)(tag + LAB_TAG_BYTES) > end || *(__u16 *)tag != LAB_MAGIC)
		return NULL;
	return tag;
}

/* Four bits behind the leading one: buckets are at most a sixteenth of their value wide. */
__inline __u32 bucket_of(__u64 value)
{
	__u64 rest = value;
	__u32 octave = 0;

	if (value < LAB_LINEAR)
		return value;
	if (rest >> 32) {
		octave += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		octave += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		octave += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		octave += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		octave += 2;
		rest >>= 2;
	}
	octave += rest >> 1;
	return (octave - 3) * LAB_LINEAR + ((value >> (octave - 4)) & (LAB_LINEAR - 1));
}

struct room {
	struct lab_window *window;
	__u64 word;
};

/* Makes room for the numbers of one word; those it had, one window before, and that did not come
 * are lost. */
static long make_room(__u32 i, struct room *room)
{
	struct lab_window *window = room->window;
	__u64 word = room->word + i, *seen = &window->seen[word % LAB_WINDOW_WORDS];

	if (word >= LAB_WINDOW_WORDS && *seen != ~0ULL) {
		window->lost_word = word - LAB_WINDOW_WORDS;
		window->lost_bits = ~*seen;
	}
	*seen = 0;
	return 0;
}

/* Makes room for serial numbers up to and with `serial`, which is the highest so far. */
__inline void advance(struct lab_window *window, __u64 serial)
{
	/* words before this one are in use */
	__u64 word = (window->next + 63) / 64, last = serial / 64;
	struct room room = { .window = window, .word = word };

	if (last >= word + LAB_WINDOW_WORDS)
		room.word = last - LAB_WINDOW_WORDS + 1;
	if (room.word <= last)
		bpf_loop(last - room.word + 1, make_room, &room, 0);
	/* a leap over a whole window: what it had is older than what did not come */
	if (room.word > word) {
		window->lost_word = room.word - 1;
		window->lost_bits = ~0ULL;
	}
	window->next = serial + 1;
}

/* Numbers from `next` to before `serial` did not come, or not yet. */
__inline void note_hole(struct lab_window *window, __u64 serial, __u64 intended, __u64 now)
{
	window->hole = serial - 1;
	window->hole_end = intended;
	if (window->next > 0 && now - window->came > window->gap) {
		window->gap = now - window->came;
		window->gap_frames = serial - window->next;
	}
}

__inline void order(struct lab_window *window, struct lab_counts *counts, __u64 serial,
    __u64 intended, __u64 now)
{
	__u64 bit = 1ULL << serial % 64;
	__u64 *word = &window->seen[serial / 64 % LAB_WINDOW_WORDS];

	if (serial >= window->next) {
		if (serial > window->next)
			note_hole(window, serial, intended, now);
		advance(window, serial);
		window->came = now;
		__sync_fetch_and_or(word, bit);
		return;
	}
	/* the word that is half old and half new belongs to the new numbers */
	if (serial / 64 + LAB_WINDOW_WORDS <= (window->next - 1) / 64) {
		counts->reordered++;
		counts->ancient++;
	} else if (__sync_fetch_and_or(word, bit) & bit) {
		counts->duplicates++;
	} else {
		counts->reordered++;
	}
}

SEC("xdp")
int lab_sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *tag;
	struct lab_counts *counts;
	struct lab_window *window;
	__u64 serial, intended, now, latency;
	__u32 zero = 0, bucket;

	tag = find_tag(data, end);
	if (tag == NULL)
		return XDP_PASS;
	counts = bpf_map_lookup_elem(&lab_counts, &zero);
	window = bpf_map_lookup_elem(&lab_window, &zero);
	if (counts == NULL || window == NULL)
		return XDP_ABORTED;
	serial = *(__u64 *)(tag + 2);
	if (serial >> LAB_TRIAL_SHIFT != window->trial) {
		counts->strays++;
		return XDP_DROP;
	}
	intended = *(__u64 *)(tag + 10);
	now = bpf_ktime_get_ns();
	latency = now > intended ? now - intended : 0;
	if (counts->frames++ == 0)
		counts->first = now;
	counts->last = now;
	counts->bytes += end - data;
	counts->sum += latency;
	if (latency > counts->longest)
		counts->longest = latency;
	bucket = bucket_of(latency);
	if (bucket < LAB_BUCKETS)
		counts->buckets[bucket]++;
	order(window, counts, serial & LAB_SERIAL_MASK, intended, now);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
