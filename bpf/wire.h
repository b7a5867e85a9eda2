/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Headers as they are on the wire, and the numbers in them.
 */
#ifndef PF_WIRE_H
#define PF_WIRE_H

#include "kern.h"

struct ethernet {
	__u8 destination[6];
	__u8 source[6];
	__be16 type;
};

/* Whether two link addresses are the same. */
__inline bool same_link_address(const __u8 *one, const __u8 *other)
{
	return one[0] == other[0] && one[1] == other[1] && one[2] == other[2] &&
	       one[3] == other[3] && one[4] == other[4] && one[5] == other[5];
}

struct vlan_tag {
	__be16 control;
	__be16 type;
};

/* 802.2 with SNAP; the first three bytes stand alone if the access points are other ones */
struct llc_snap {
	__u8 destination;		/* service access points */
	__u8 source;
	__u8 control;
	__u8 organization[3];
	__be16 type;
} __attribute__((packed));

#define ETHERTYPE_IP		0x0800
#define ETHERTYPE_ARP		0x0806
#define ETHERTYPE_REVARP	0x8035
#define ETHERTYPE_IPV6		0x86dd
#define ETHERTYPE_VLAN		0x8100
#define ETHERTYPE_QINQ		0x88a8
#define ETHERTYPE_QINQ_OLD	0x9100	/* as many switches had it before 802.1ad */
#define ETHERTYPE_MPLS		0x8847
#define ETHERTYPE_MPLS_SHARED	0x8848	/* labels that routers of one link share (RFC 5332) */
#define ETHERTYPE_MIN		0x0600	/* below it the field is a length, and 802.2 follows */

#define LLC_SAP_IP		0x06
#define LLC_SAP_SNAP		0xaa

struct ip {				/* RFC 791 */
	__u8 version_ihl;
	__u8 tos;
	__be16 length;
	__be16 id;
	__be16 offset;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__be32 source;
	__be32 destination;
};

#define IP_RF		0x8000		/* reserved */
#define IP_DF			0x4000
#define IP_MF			0x2000
#define IP_OFFMASK		0x1fff
#define IPTOS_ECN_MASK		0x03
#define IPTOS_LOWDELAY		0x10
#define IP_DEFAULT_TTL		64

#define IP_MAX_OPTIONS		40
#define IPOPT_EOL		0
#define IPOPT_NOP		1
#define IPOPT_ROUTER_ALERT	148

struct ip6 {				/* RFC 8200 */
	__be32 flow;			/* version, traffic class, flow label */
	__be16 payload_length;
	__u8 next_header;
	__u8 hop_limit;
	__u8 source[16];
	__u8 destination[16];
};

struct ip6_extension {
	__u8 next_header;
	__u8 length;			/* in 8 byte units without the first; AH: 4 byte units minus 2 */
};

struct ip6_routing {
	__u8 next_header;
	__u8 length;
	__u8 type;
	__u8 segments_left;
};

struct ip6_jumbo {			/* RFC 2675: an extension header with one option */
	__u8 next_header;
	__u8 header_length;
	__u8 option;
	__u8 option_length;
	__be32 length;			/* behind the IPv6 header */
};

struct ip6_fragment {
	__u8 next_header;
	__u8 reserved;
	__be16 offset;			/* upper 13 bits, lowest is "more" */
	__be32 id;
};

#define IPV6_MIN_MTU		1280

#define IP6_OFFSET_MASK		0xfff8
#define IP6_MORE_FRAGMENTS	0x0001

#define IP6OPT_PAD1		0x00
#define IP6OPT_PADN		0x01
#define IP6OPT_ROUTER_ALERT	0x05
#define IP6OPT_JUMBO		0xc2

struct tcp {				/* RFC 9293 */
	__be16 source;
	__be16 destination;
	__be32 seq;
	__be32 ack;
	__u8 offset;			/* upper 4 bits, in words; the lower 4 are reserved */
	__u8 flags;
	__be16 window;
	__be16 checksum;
	__be16 urgent;
};

#define TH_FIN			0x01
#define TH_SYN			0x02
#define TH_RST			0x04
#define TH_PUSH			0x08
#define TH_ACK			0x10
#define TH_URG			0x20

/* serial number arithmetic, RFC 1982 */
#define SEQ_GEQ(a, b)	((__s32)((a) - (b)) >= 0)
#define SEQ_GT(a, b)	((__s32)((a) - (b)) > 0)
#define SEQ_LEQ(a, b)	((__s32)((a) - (b)) <= 0)

#define TCPOPT_EOL		0
#define TCPOPT_NOP		1
#define TCPOPT_MAXSEG		2
#define TCPOPT_WINDOW		3
#define TCPOPT_SACK_PERMITTED	4
#define TCPOPT_SACK		5
#define TCPOPT_TIMESTAMP	8
#define TCPOLEN_MAXSEG		4
#define TCPOLEN_WINDOW		3
#define TCPOLEN_SACK_BLOCK	8
#define TCPOLEN_TIMESTAMP	10
#define TCP_USUAL_OPTIONS	0x0101080a	/* how they begin if there is but a timestamp, aligned */
#define TCP_MAX_OPTIONS		40
#define TCP_MAX_WINSHIFT	14
#define TCP_MAX_WINDOW		65535

struct udp {
	__be16 source;
	__be16 destination;
	__be16 length;
	__be16 checksum;
};

struct sctp {				/* RFC 9260 */
	__be16 source;
	__be16 destination;
	__be32 tag;
	__be32 checksum;		/* of everything behind the IP header, and of nothing there */
};

struct icmp {				/* of both families; RFC 792, RFC 4443 */
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be16 id;
	__be16 seq;
	__u8 target[16];		/* neighbour discovery and listener discovery only */
};

#define ICMP_HEADER		8

#define ICMP_UNREACH_HOST	1		/* codes of the next */
#define ICMP_UNREACH_PORT	3
#define ICMP_UNREACH_NEEDFRAG	4
#define ICMP6_DST_UNREACH_NOROUTE 0
#define ICMP6_DST_UNREACH_NOPORT 4

#define ICMP_ECHOREPLY		0
#define ICMP_UNREACH		3
#define ICMP_SOURCEQUENCH	4
#define ICMP_REDIRECT		5
#define ICMP_ECHO		8
#define ICMP_ROUTERADVERT	9
#define ICMP_ROUTERSOLICIT	10
#define ICMP_TIMXCEED		11
#define ICMP_PARAMPROB		12
#define ICMP_TSTAMP		13
#define ICMP_TSTAMPREPLY	14
#define ICMP_IREQ		15
#define ICMP_IREQREPLY		16
#define ICMP_MASKREQ		17
#define ICMP_MASKREPLY		18
#define ICMP_WHEREAREYOU	33
#define ICMP_IAMHERE		34
#define ICMP_MOBILE_REQUEST	35
#define ICMP_MOBILE_REPLY	36

#define ICMP6_DST_UNREACH	1
#define ICMP6_PACKET_TOO_BIG	2
#define ICMP6_TIME_EXCEEDED	3
#define ICMP6_PARAM_PROB	4
#define ICMP6_ECHO_REQUEST	128
#define ICMP6_ECHO_REPLY	129
#define MLD_LISTENER_QUERY	130
#define MLD_LISTENER_REPORT	131
#define MLD_LISTENER_DONE	132
#define ND_ROUTER_SOLICIT	133
#define ND_ROUTER_ADVERT	134
#define ND_NEIGHBOR_SOLICIT	135
#define ND_NEIGHBOR_ADVERT	136
#define ND_REDIRECT		137
#define ICMP6_WRUREQUEST	139
#define ICMP6_WRUREPLY		140
#define MLDV2_LISTENER_REPORT	143
#define MLD_MTRACE_RESP		200
#define MLD_MTRACE		201

#define IPPROTO_HOPOPTS		0
#define IPPROTO_ICMP		1
#define IPPROTO_IGMP		2
#define IPPROTO_IPIP		4
#define IPPROTO_TCP		6
#define IPPROTO_UDP		17
#define IPPROTO_IPV6		41
#define IPPROTO_ROUTING		43
#define IPPROTO_FRAGMENT	44
#define IPPROTO_AH		51
#define IPPROTO_ICMPV6		58
#define IPPROTO_DSTOPTS		60
#define IPPROTO_SCTP		132
#define IPPROTO_ETHERNET	143

#endif /* PF_WIRE_H */
