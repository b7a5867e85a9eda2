/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Tables with many entries: an index for each, in which an address is found by few lines of the
 * cache (abi/table_index.h says what stands where).
 *
 * A host is found by its hash, in one line: where most addresses that are looked up are in no
 * table, as with lists of those who are to be blocked, that line is all that is read. Only if there
 * are networks, or lines that ran over, is there a second search: byte by byte, as Poptrie does it
 * with six bits (Asai and Ohara, 2015), over what networks have in common at once. It takes four
 * steps at most for IPv4 and sixteen for IPv6, whatever is in the table.
 *
 * Nothing in an index changes. A version with PF_TABLE_INDEXED names the place of its index, so a
 * table changes with one store whether it had an index or not.
 */
#ifndef PF_TABLE_INDEX_H
#define PF_TABLE_INDEX_H

#include "kern.h"

/* Made to the measure of its table; with BPF_F_MMAPABLE it begins with a page, so that a cell is
 * one cache line. By sizes, because clang does not describe a struct in BTF that only the maps in a
 * map of maps have. */
struct cells_of_one_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct pf_index_cell));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2 * PF_TABLE_SLOTS);
	__type(key, __u32);
	__array(values, struct cells_of_one_table);
} table_indexes SEC(".maps");

/* The index of a version of a table, which has room for two: one in force, and one to follow. */
__inline void *index_of_table(__u32 slot, __u32 version)
{
	__u32 place = 2 * slot + (version & 1);

	return bpf_map_lookup_elem(&table_indexes, &place);
}

/* The entry with a number. */
__inline struct pf_index_entry *entry_in(void *index, __u32 number)
{
	__u32 at = (number & ~PF_INDEX_NEGATED) + 1, cell = at / 2;
	struct pf_index_entry *pair = bpf_map_lookup_elem(index, &cell);

	if (!pair)
		return NULL;
	barrier_var(pair);	/* clang would add to it before */
	return pair + (at & 1);
}

__inline bool same_address(const struct pf_addr *address, const __u8 *other)
{
	const __u32 *word = (const __u32 *)other;

	return address->word[0] == word[0] && address->word[1] == word[1] &&
	       address->word[2] == word[2] && address->word[3] == word[3];
}

/* Spreads an address, in a way that nobody knows who sends packets. */
__inline __u64 hash_address(const struct pf_index_head *head, const struct pf_addr *address, bool six)
{
	__u64 sum = address->word[0] ^ head->secret[0];

	if (six) {
		sum = (__u64)(address->word[0] + head->secret[0]) *
			      (address->word[1] + head->secret[1]) +
		      (__u64)(address->word[2] + head->secret[2]) *
			      (address->word[3] + head->secret[3]);
		sum ^= sum >> 32;
	}
	sum *= 0x9e3779b97f4a7c15ull;
	sum ^= sum >> 29;
	return sum * 0xbf58476d1ce4e5b9ull;
}

/* Bits that are set. */
__inline __u32 count_bits(__u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555ull;
	bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return bits * 0x0101010101010101ull >> 56;
}

/* Whether an address begins as all that is behind a node. */
__inline bool has_common(const struct pf_index_node *node, const struct pf_addr *address)
{
	const __u64 *one = (const __u64 *)address, *other = (const __u64 *)node->common;
	__u64 first = bpf_be64_to_cpu(one[0] ^ other[0]), second = bpf_be64_to_cpu(one[1] ^ other[1]);
	__u32 depth = node->depth & 15;

	if (depth < 8)
		return !(first >> 1 >> (63 - 8 * depth));
	return !first && !(second >> 1 >> (63 - 8 * (depth - 8)));
}

/* One step of the search for networks: the value that follows. */
__inline __u32 step_in(void *index, const struct pf_index_head *head, __u32 value,
		       const struct pf_addr *address)
{
	__u32 place = head->first_node + (value & ~PF_INDEX_NODE);
	const struct pf_index_node *node = bpf_map_lookup_elem(index, &place);
	const struct pf_index_cell *values;
	__u32 byte, word;

	if (!node)
		return 0;
	if (!has_common(node, address))
		return node->otherwise;
	byte = address->bytes[node->depth & 15];
	word = byte >> 6;
	place = node->first + node->before[word] +
		count_bits(node->starts[word] << (63 - (byte & 63))) - 1;
	word = place % PF_INDEX_WORDS;
	place = head->first_value + place / PF_INDEX_WORDS;
	values = bpf_map_lookup_elem(index, &place);
	return values ? values->word[word] : 0;
}

/* Searches the index of a table for the longest match. Returns what it comes to. */
__global __u32 search_index(__u32 slot, __u32 version, __u32 family, const struct pf_addr *address)
{
	void *index = index_of_table(slot, version);
	__u32 six = family == AF_INET6, place = 0, key, value;
	const struct pf_index_head *head;
	const struct pf_index_entry *entry;
	const struct pf_index_line *line;
	__u64 hash;

	if (!index || !address)
		return 0;
	head = bpf_map_lookup_elem(index, &place);
	if (!head)
		return 0;
	value = head->networks[six];
	if (head->lines[six]) {
		hash = hash_address(head, address, six);
		place = head->first_line[six] + ((hash >> 32) * head->lines[six] >> 32);
		line = bpf_map_lookup_elem(index, &place);
		if (!line)
			return 0;
		key = six ? (__u32)hash : address->word[0];
#pragma unroll
		for (int i = 0; i < PF_LINE_KEYS; i++) {
			if (line->key[i] != key || !key)
				continue;
			place = line->first + i;
			if (line->flags >> i & 1)
				place |= PF_INDEX_NEGATED;
			if (!six)
				return place;
			entry = entry_in(index, place);
			if (entry && same_address(address, entry->address))
				return place;
		}
		if (!(line->flags & PF_LINE_GOES_ON))
			return 0;
	}
	for (int i = 0; i < 16; i++) {
		if (!(value & PF_INDEX_NODE))
			break;
		value = step_in(index, head, value, address);
	}
	return value & PF_INDEX_NODE ? 0 : value;
}

/* The entry that is the longest match. */
__inline struct pf_table_entry *find_in_index(__u32 slot, __u32 version, __u32 family,
					      const struct pf_addr *address)
{
	void *index = index_of_table(slot, version);
	struct pf_index_entry *entry;
	__u32 number;

	if (!index)
		return NULL;
	number = search_index(slot, version, family, address);
	if (!number)
		return NULL;
	entry = entry_in(index, number);
	return entry ? &entry->entry : NULL;
}

#endif /* PF_TABLE_INDEX_H */
