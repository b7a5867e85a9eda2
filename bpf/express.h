/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The way past the kernel: in XDP, before the driver has made an skb of a frame, the ordinary
 * packet of a state takes the path that its tc programs have noted, straight to the driver of the
 * interface where it leaves; or, from a port of a bridge of ours, straight to that of another. Both
 * states judge and count it, and it ends as it would behind the kernel. All other packets go on to
 * the tc programs as if nobody had looked at them.
 */
#ifndef PF_EXPRESS_H
#define PF_EXPRESS_H

#include "bridge_hop.h"
#include "onward.h"
#include "ordinary.h"

/* True if the frame is an skb that has more than its bytes: that would be lost on the way past the
 * kernel. A veth pair hands its packets over as skbs, whose checksum may have to be made yet, or
 * whose VLAN tag may stand apart. The pointer to the skb is behind the xdp_buff there: struct
 * veth_xdp_buff. */
__inline bool is_more_than_bytes(const struct xdp_buff *frame)
{
	const struct sk_buff_head *behind;
	const struct sk_buff *skb;

	behind = bpf_core_cast((void *)frame + bpf_core_type_size(struct xdp_buff),
			       struct sk_buff_head);
	skb = behind->next;
	return skb && (BPF_CORE_READ_BITFIELD(skb, ip_summed) == CHECKSUM_PARTIAL || skb->vlan_all);
}

/* Whether the frame is for this host's link address. */
__inline bool is_for_us(const struct ethernet *ethernet, const struct net_device *device)
{
	return same_link_address(ethernet->destination, device->dev_addr_shadow);
}

/* The state of s->ref has counted a packet that does not come through here after all. What it has
 * learnt of the packet it will learn once more. */
__global int take_back(struct pf_scratch *s)
{
	struct pf_state *state;
	__u32 way;

	if (!s)
		return 0;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return 0;
	way = s->against_state & 1;
	bpf_spin_lock(&state->lock);
	if (state->serial == s->ref.serial) {
		state->packets[way] -= s->segments;
		state->bytes[way] -= s->bytes;
	}
	bpf_spin_unlock(&state->lock);
	return 0;
}

/* Whether the driver may have taken a VLAN tag off the frame: XDP would not know. */
__inline bool may_hide_tags(const struct net_device *device)
{
	return device->features & NETIF_F_HW_VLAN_CTAG_RX;
}

/* ---- a packet with new ends -------------------------------------------------------------------------- */

/* Adds to a sum the change of a checksum (RFC 1624) where `from` is replaced by `to`, `words` of
 * them. */
__inline __u64 replaced(__u64 sum, const __be32 *from, const __be32 *to, int words)
{
	for (int i = 0; i < words; i++)
		sum += (__u64)(__u32)~from[i] + to[i];
	return sum;
}

/* The checksum with all that was replaced in what it covers. */
__inline __u16 with_changes(__u16 checksum, __u64 sum)
{
	sum += (__u16)~checksum;
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	return ~fold(sum);
}

/* The same for a transport checksum, where zero is written as 0xffff and stands in UDP for there
 * being none. */
__inline __u16 with_changes_of_ends(__u16 checksum, __u64 sum, __u8 protocol)
{
	if (protocol == IPPROTO_UDP && !checksum)
		return 0;
	checksum = with_changes(checksum, sum);
	return checksum ? checksum : 0xffff;
}

/* Writes the ends of the ordinary packet `pd` to its frame. False if its bytes are not where they
 * were. */
__inline bool write_ends(void *data, void *end, const struct pf_pdesc *pd)
{
	void *network = data + sizeof(struct ethernet), *transport;
	const __be16 ports[2] = { pd->source_port, pd->destination_port };
	struct ip6 *ip6 = network;
	struct ip *ip = network;
	struct tcp *tcp;
	struct udp *udp;
	__u64 sum = 0;

	if (pd->family == AF_INET) {
		if ((void *)(ip + 1) > end)
			return false;
		sum = replaced(sum, &ip->source, &pd->source.word[0], 1);
		sum = replaced(sum, &ip->destination, &pd->destination.word[0], 1);
		ip->source = pd->source.word[0];
		ip->destination = pd->destination.word[0];
		ip->checksum = with_changes(ip->checksum, sum);
		transport = ip + 1;
	} else {
		if ((void *)(ip6 + 1) > end)
			return false;
		sum = replaced(sum, (__be32 *)ip6->source, pd->source.word, 4);
		sum = replaced(sum, (__be32 *)ip6->destination, pd->destination.word, 4);
		__builtin_memcpy(ip6->source, &pd->source, 16);
		__builtin_memcpy(ip6->destination, &pd->destination, 16);
		transport = ip6 + 1;
	}
	tcp = transport;
	udp = transport;
	if ((void *)(udp + 1) > end)
		return false;
	/* both begin with their ports, source first */
	sum = replaced(sum, transport, (const __be32 *)ports, 1);
	__builtin_memcpy(transport, ports, sizeof(ports));
	if (pd->protocol == IPPROTO_UDP) {
		udp->checksum = with_changes_of_ends(udp->checksum, sum, IPPROTO_UDP);
		return true;
	}
	if ((void *)(tcp + 1) > end)
		return false;
	tcp->checksum = with_changes_of_ends(tcp->checksum, sum, IPPROTO_TCP);
	return true;
}

/* ---- both verdicts, and away ------------------------------------------------------------------------- */

__inline void keep_judged(struct pf_judged *judged, const struct pf_scratch *s)
{
	judged->ref = s->ref;
	judged->interface = s->interface.id;
	judged->refused = s->refused;
	judged->has_state = s->has_state;
	judged->made = s->made;
	judged->against_state = s->against_state;
	judged->translated = s->translated;
}

/* Goes back to that side. */
__inline void recall_judged(struct pf_scratch *s, const struct pf_judged *judged, __u8 direction)
{
	s->pd.direction = direction;
	s->ref = judged->ref;
	s->interface.id = judged->interface;
	s->refused = judged->refused;
	s->has_state = judged->has_state;
	s->made = judged->made;
	s->against_state = judged->against_state;
}

/* Makes the state that the rules want of the packet where it came in: last it was judged where it
 * leaves. False if there can be none: then nothing has happened, on neither side. */
__inline bool keep_entering(struct pf_scratch *s)
{
	struct pf_judged *entering = &s->entering, leaving;

	keep_judged(&leaving, s);
	recall_judged(s, entering, PF_IN);
	/* last that of the key where it leaves was sought */
	s->sought = false;
	if (!keep_plainly(s, false)) {
		entering->ref = s->ref;
		entering->has_state = entering->made = 1;
		s->far_entry = s->entry;
	}
	recall_judged(s, &leaving, PF_OUT);
	if (!entering->made && s->has_state)
		take_back(s);
	return entering->made;
}

/* Makes the states that the rules want of the packet, and notes its path for those behind it.
 * `keeps` says whether they want one where it came in, `verdict` what they say where it leaves.
 * Returns what becomes of it there: it is dropped if it can have no state there, as it would be
 * behind the kernel. */
__inline int keep_both(struct pf_scratch *s, bool keeps, int verdict)
{
	bool has_path;

	if (keeps && !keep_entering(s))
		return PF_PLAINLY_UNKNOWN;
	has_path = s->entering.has_state && !is_port(&s->leaving);
	if (verdict == PF_PLAINLY_KEEP) {
		s->refused = keep_plainly(s, has_path);
		verdict = s->refused ? PF_PLAINLY_DROP : PF_PLAINLY_PASS;
	}
	s->far = s->entering.ref;
	s->far_made = s->entering.made;
	if (has_path && s->has_state)
		keep_path(s);
	return verdict;
}

/* Counts the packet that was judged on both sides: last where it leaves. Its ends are those between
 * the two. */
__inline void count_both(struct pf_scratch *s)
{
	struct pf_judged leaving;

	keep_judged(&leaving, s);
	recall_judged(s, &s->entering, PF_IN);
	count_verdict(s);
	recall_judged(s, &leaving, PF_OUT);
	count_judged(s);
	if (s->entering.translated)
		s->translated = s->entering.translated;
}

/* Takes the packet past the kernel, if it can. `length` is that of the frame. Returns what the
 * program returns. */
/* Differs from OpenBSD: linux.md, "XDP" */
__global int take_express(struct xdp_md *xdp, __u32 length)
{
	struct xdp_buff *kern = bpf_cast_to_kern_ctx(xdp);
	const struct net_device *device = kern->rxq->dev;
	const struct net *net = device->nd_net.net;
	__u32 zero = 0, ifindex = xdp->ingress_ifindex;
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct pf_status *status = pf_status();
	struct pf_interface *interface;
	struct pf_config *config;
	struct pf_bytes frame = {
		.data = (void *)(long)xdp->data,
		.end = (void *)(long)xdp->data_end,
	};
	bool crosses, keeps;
	int verdict;

	if (!s || !status || !status->running || status->crossing)
		return XDP_PASS;
	s->generation = status->generation;
	config = pf_config(s->generation);
	if (!config || config->fast_forward == PF_FAST_FORWARD_NO)
		return XDP_PASS;
	if (!read_ordinary(frame, &s->pd, length, 0, true))
		return XDP_PASS;
	interface = interface_at(ifindex);
	if (!interface || interface->rdomain || skipped(interface, s->generation))
		return XDP_PASS;
	crosses = is_port(interface);
	if (crosses ? !is_between_stations(frame.data, device) || !only_bridges(device) :
		      !is_for_us(frame.data, device) ||
			      left_to(device, net, s->pd.family, config->fast_forward) != PF_LEFT_TO_NOBODY)
		return XDP_PASS;
	s->pd.direction = PF_IN;
	s->pd.rdomain = 0;
	seek_state(status, s);
	s->segments = 1;
	s->bytes = s->length = s->pd.length;
	s->crosses_back = 0;
	s->in_one_piece = frame.end - frame.data == length;
	s->now = uptime_about(status);
	keep_original(&s->pd);

	verdict = judge_shortly(s, status, interface, !crosses);
	if (verdict == PF_PLAINLY_UNKNOWN)
		return XDP_PASS;
	if (verdict == PF_PLAINLY_DROP) {
		if (must_be_reported())
			return XDP_PASS;
		count_if_unreported();
		count_plainly(s);
		return XDP_DROP;
	}
	keeps = verdict == PF_PLAINLY_KEEP;
	keep_judged(&s->entering, s);
	translate_ordinary(s);
	verdict = crosses ? find_way_across(xdp, s, length) :
			    find_way_past(xdp, s, device, net, ifindex, PF_FORWARDED_XDP);
	/* a packet that needs a state may be dropped for want of one */
	if ((verdict == PF_PLAINLY_DROP || verdict == PF_PLAINLY_KEEP) && must_be_reported())
		verdict = PF_PLAINLY_UNKNOWN;
	if (verdict == PF_PLAINLY_KEEP || (keeps && verdict != PF_PLAINLY_UNKNOWN))
		verdict = keep_both(s, keeps, verdict);
	if (verdict == PF_PLAINLY_UNKNOWN) {
		recall_judged(s, &s->entering, PF_IN);
		if (s->has_state)
			take_back(s);
		return XDP_PASS;
	}
	count_both(s);
	if (crosses)
		count_crossed(s, length);
	if (verdict == PF_PLAINLY_DROP) {
		count_if_unreported();
		return XDP_DROP;
	}
	frame.data = (void *)(long)xdp->data;
	frame.end = (void *)(long)xdp->data_end;
	if ((s->translated && !write_ends(frame.data, frame.end, &s->pd)) ||
	    (!crosses && !write_hop(frame.data, frame.end, &s->hop, s->pd.family)))
		return XDP_DROP;
	count_forwarded(PF_FORWARDED_XDP);
	return bpf_redirect(s->hop.leaves_by, 0);
}

#endif /* PF_EXPRESS_H */
