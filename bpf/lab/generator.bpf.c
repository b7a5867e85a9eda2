/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The generator: each run makes a frame and sends it by redirection, or drops its page because
 * the time of the next frame has not come. BPF_PROG_RUN with live frames is the loop around it.
 *
 * Pages come back after they were sent, with what the device under test wrote into them. So all
 * headers are written anew each time.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "lab.h"

#define __inline	static __always_inline

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lab_order);
} lab_order SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lab_progress);
} lab_progress SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAB_TEMPLATES);
	__type(key, __u32);
	__type(value, struct lab_template);
} lab_templates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAB_VALUES);
	__type(key, __u32);
	__type(value, __u32);
} lab_values SEC(".maps");

/* xorshift64*: the same seed gives the same frames */
__inline __u32 draw(struct lab_progress *progress, __u32 count)
{
	__u64 x = progress->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	progress->random = x;
	return (((x * 0x2545f4914f6cdd1dULL) >> 32) * count) >> 32;
}

__inline __u32 value_of(const struct lab_field *field, __u32 fixed, struct lab_progress *progress)
{
	__u32 serial = progress->sent, place, *value;

	if (field->how == LAB_FIXED)
		return fixed;
	if (field->how == LAB_DRAWN || field->how == LAB_LISTED_DRAWN) {
		place = field->first + draw(progress, field->count);
	} else {
		if (field->every > 1)
			serial /= field->every;
		place = field->first + serial % field->count;
	}
	if (field->how == LAB_COUNTED || field->how == LAB_DRAWN)
		return place;
	value = bpf_map_lookup_elem(&lab_values, &place);
	return value ? *value : fixed;
}

__inline __u16 checksum_of(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

__inline __u64 halves(__u64 word)
{
	return (word & 0xffffffff) + (word >> 32);
}

/* Writes a frame of one kind; the offsets are constants where this is inlined. */
__inline int write_frame(struct xdp_md *ctx, const struct lab_template *template,
    const struct lab_order *order, struct lab_progress *progress, __u64 due, const __u32 kind,
    const __u32 extension)
{
	const __u32 is_tcp = kind == LAB_TCP4 || kind == LAB_TCP6;
	const __u32 is_ip6 = kind == LAB_UDP6 || kind == LAB_TCP6;
	const __u32 transport = is_ip6 ? 54 + extension : 34;
	const __u32 source = is_ip6 ? 34 : 26;
	const __u32 destination = is_ip6 ? 50 : 30;
	const __u32 checksum = transport + (is_tcp ? 16 : 6);
	const __u32 tag = transport + (is_tcp ? 20 : 8);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const void *headers = template->headers;
	__u64 serial = progress->sent | (__u64)order->trial << LAB_TRIAL_SHIFT;
	__u32 from, to, ports, i;
	__u64 sum;

	if (data + tag + LAB_TAG_BYTES > end)
		return -1;
	for (i = 0; i < tag / 8; i++)
		((__u64 *)data)[i] = ((const __u64 *)headers)[i];
	/* 42, 54, 62 or 74 bytes, and eights of extension headers: what is left are two or six */
	if (tag % 8 == 6)
		*(__u32 *)(data + tag - 6) = *(const __u32 *)(headers + tag - 6);
	*(__u16 *)(data + tag - 2) = *(const __u16 *)(headers + tag - 2);
	from = bpf_htonl(value_of(&order->fields[LAB_SOURCE],
	    bpf_ntohl(*(__u32 *)(headers + source)), progress));
	to = bpf_htonl(value_of(&order->fields[LAB_DESTINATION],
	    bpf_ntohl(*(__u32 *)(headers + destination)), progress));
	ports = bpf_ntohl(*(__u32 *)(headers + transport));
	ports = bpf_htonl(value_of(&order->fields[LAB_SOURCE_PORT], ports >> 16, progress) << 16 |
	    (value_of(&order->fields[LAB_DESTINATION_PORT], ports & 0xffff, progress) & 0xffff));
	*(__u32 *)(data + source) = from;
	*(__u32 *)(data + destination) = to;
	*(__u32 *)(data + transport) = ports;
	*(__u16 *)(data + tag) = LAB_MAGIC;
	*(__u64 *)(data + tag + 2) = serial;
	*(__u64 *)(data + tag + 10) = due;

	sum = (__u64)from + to;
	if (!is_ip6)
		*(__u16 *)(data + 24) = checksum_of(sum + template->network_sum);
	sum += template->transport_sum + (__u64)ports + halves(serial) + halves(due);
	*(__u16 *)(data + checksum) = checksum_of(sum) ?: (is_tcp ? 0 : 0xffff);
	return 0;
}

__inline int write_frame6(struct xdp_md *ctx, const struct lab_template *template,
    const struct lab_order *order, struct lab_progress *progress, __u64 due, const __u32 kind)
{
	switch (template->extension) {
	case 0:
		return write_frame(ctx, template, order, progress, due, kind, 0);
	case 8:
		return write_frame(ctx, template, order, progress, due, kind, 8);
	case 24:
		return write_frame(ctx, template, order, progress, due, kind, 24);
	case 40:
		return write_frame(ctx, template, order, progress, due, kind, 40);
	}
	return -1;
}

__inline int write_any(struct xdp_md *ctx, const struct lab_template *template,
    const struct lab_order *order, struct lab_progress *progress, __u64 due)
{
	switch (template->kind) {
	case LAB_UDP4:
		return write_frame(ctx, template, order, progress, due, LAB_UDP4, 0);
	case LAB_TCP4:
		return write_frame(ctx, template, order, progress, due, LAB_TCP4, 0);
	case LAB_UDP6:
		return write_frame6(ctx, template, order, progress, due, LAB_UDP6);
	case LAB_TCP6:
		return write_frame6(ctx, template, order, progress, due, LAB_TCP6);
	}
	return -1;
}

/* When the next slot is due. */
__inline __u64 due_time(const struct lab_order *order, const struct lab_progress *progress)
{
	__u64 first = progress->slot, second = 0;

	if (first > order->turn) {
		second = first - order->turn;
		first = order->turn;
	}
	return progress->start + ((first * order->gap + second * order->second_gap) >> 10);
}

/* When the next frame is due, 0 if not yet. Slots that nobody can catch up with are skipped. */
__inline __u64 next_slot(const struct lab_order *order, struct lab_progress *progress, __u64 now)
{
	__u64 due, behind, missed, gap, end;

	if (order->gap == 0)
		return now;
	due = due_time(order, progress);
	if (now < due)
		return 0;
	behind = now - due;
	if (behind > order->patience) {
		/* no further than to the turn, behind which slots have another length */
		gap = progress->slot < order->turn ? order->gap : order->second_gap;
		end = progress->slot < order->turn ? order->turn : order->slots;
		missed = (behind << 10) / gap;
		if (missed > end - progress->slot)
			missed = end - progress->slot;
		progress->skipped += missed;
		progress->slot += missed;
		if (progress->slot >= order->slots || (missed > 0 && progress->slot == order->turn))
			return 0;
		due = due_time(order, progress);
		behind = now - due;
	}
	if (behind > order->grace)
		progress->late++;
	if (behind > progress->worst)
		progress->worst = behind;
	return due;
}

__inline const struct lab_template *next_template(const struct lab_order *order,
    const struct lab_progress *progress)
{
	__u32 index;
	__u64 turn = 0;

	if (order->pattern_length > 1)
		turn = (__u32)progress->sent % order->pattern_length;
	index = order->pattern[turn & (LAB_PATTERN - 1)];
	return bpf_map_lookup_elem(&lab_templates, &index);
}

SEC("xdp")
int lab_generate(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct lab_order *order = bpf_map_lookup_elem(&lab_order, &zero);
	struct lab_progress *progress = bpf_map_lookup_elem(&lab_progress, &zero);
	const struct lab_template *template;
	__u64 now = bpf_ktime_get_ns(), due;
	int length;

	if (order == NULL || progress == NULL)
		return XDP_ABORTED;
	if (progress->start == 0)
		progress->start = now;
	if (progress->slot >= order->slots || (due = next_slot(order, progress, now)) == 0) {
		progress->idle++;
		return XDP_DROP;
	}
	template = next_template(order, progress);
	if (template == NULL)
		goto failed;
	length = (long)ctx->data_end - (long)ctx->data;
	if ((__u32)length != template->length &&
	    bpf_xdp_adjust_tail(ctx, (int)template->length - length) != 0)
		goto failed;
	if (write_any(ctx, template, order, progress, due) != 0)
		goto failed;
	progress->slot++;
	progress->sent++;
	progress->last = now;
	return bpf_redirect(order->ifindex, 0);
failed:
	progress->slot++;
	progress->failed++;
	return XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
