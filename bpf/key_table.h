/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The way from a key to its state (pf-semantics section 6): lines of sixteen entries, each line one
 * of the cache's. A key's entry is in one of two lines that its hash says, in the one that had
 * fewer when it came (Azar, Broder, Karlin and Upfal, "Balanced allocations", 1994): so lines do
 * not run over, though nothing is ever moved or driven out. Two keys that have the same ends the
 * other way round have the same two lines: mostly they are those of one flow, where it comes in and
 * where it leaves, so lines that were read for one are in the cache for the other.
 *
 * An entry is one word: the place of the state, and a tag from the hash of the key, so that hardly
 * any state is looked at in vain. Words change by compare-and-swap alone. Of two CPUs that bring
 * the same key at the same time one must lose: each first claims an entry that nobody follows, then
 * looks for others with its key. Who finds one that holds gives way; of two claims the one that
 * stands further behind does, and the other waits until it has. Then the claim is taken off.
 * crates/kernel/tests/all/key_table.rs goes through all orders in which that can happen.
 *
 * In the line of the cache behind them stands of each entry which state knows the packets where
 * they leave: of a million states hardly one is in the cache, and so both come from the memory at
 * once. It is a guess, on which nothing else hangs.
 *
 * Who finds an entry may follow it to a state that is removed meanwhile: a place has an entry only
 * as long as its state lives, and the state's serial number, read before and after its key, says
 * that it was one state all the time.
 */
#ifndef PF_KEY_TABLE_H
#define PF_KEY_TABLE_H

#include "kern.h"
#include "state_key.h"

/* looks at a claim that stands in the way until it is the way's turn: nobody takes as long */
#define CLAIM_LOOKS	512

/* attempts to claim an entry, while others take those that are seen to be free */
#define CLAIM_ATTEMPTS	4

/* 1 if the ends of a key are hashed the other way round, else 0: so that a key and the one with the
 * same ends turned come to the same. */
__inline __u64 is_turned(const struct pf_state_key *key)
{
	const __u32 *first = (const __u32 *)key->address[0], *second = (const __u32 *)key->address[1];
	__u64 before = first[0] ^ first[1] ^ first[2] ^ first[3];
	__u64 after = second[0] ^ second[1] ^ second[2] ^ second[3];
	__u64 difference = after - before;

	/* no branch, which nobody could foretell */
	barrier_var(difference);
	return difference >> 63;
}

/* What one end of a key adds to its sum, under its words of the secret. */
__inline __u64 sum_of_end(const __u8 *address, const __u32 *secret)
{
	const __u32 *word = (const __u32 *)address;

	return (__u64)(word[0] + secret[0]) * (word[1] + secret[1]) +
	       (__u64)(word[2] + secret[2]) * (word[3] + secret[3]);
}

/* NH (Black et al., "UMAC: fast and secure message authentication", 1999): two keys that differ,
 * and not only in that one is the other turned, have the same sum with a probability of 2^-32 for
 * whoever does not know the secret, whatever keys those are. What follows spreads its bits. */
__inline void locate_key(const struct pf_state_key *key, const struct pf_key_hash *hash,
			 struct pf_key_spot *spot)
{
	const __u32 *word = (const __u32 *)key;
	__u64 turned = is_turned(key);
	const __u32 ports = ((__u64)word[8] << 32 | word[8]) >> (turned * 16);
	__u64 sum = (__u64)(ports + hash->secret[8]) * (word[9] + hash->secret[9]) +
		    (__u64)(word[10] + hash->secret[10]) * (word[11] + hash->secret[11]);

	_Static_assert(sizeof(*key) == sizeof(hash->secret), "a word of the secret for each of the key");
	_Static_assert(offsetof(struct pf_state_key, port) == 8 * sizeof(*word), "ends, then ports");
	sum += sum_of_end(key->address[turned], &hash->secret[0]);
	sum += sum_of_end(key->address[turned ^ 1], &hash->secret[4]);
	sum = (sum ^ sum >> 32) * 0x9e3779b97f4a7c15ull;
	spot->line[0] = (sum >> 32) * hash->lines >> 32;
	sum = (sum ^ sum >> 29) * 0xbf58476d1ce4e5b9ull;
	spot->line[1] = (sum >> 32) * hash->lines >> 32;
	spot->tag = (__u32)(sum ^ -turned) & ~hash->index_mask & ~PF_KEY_CLAIMED;
	spot->index_mask = hash->index_mask;
}

__inline bool find_spot(const struct pf_state_key *key, struct pf_key_spot *spot)
{
	__u32 zero = 0;
	const struct pf_key_hash *hash = bpf_map_lookup_elem(&key_hash, &zero);

	if (!hash)
		return false;
	locate_key(key, hash, spot);
	return true;
}

/* Finds the spot of a key, and asks the memory for its lines, all at once: who does something else
 * before the key is looked for does not wait for them meanwhile. */
__inline bool seek_key(const struct pf_state_key *key, struct pf_key_spot *spot)
{
	const struct pf_key_line *line, *other;

	if (!find_spot(key, spot))
		return false;
	line = bpf_map_lookup_elem(&state_keys, &spot->line[0]);
	other = bpf_map_lookup_elem(&state_keys, &spot->line[1]);
	if (!line || !other)
		return false;
	fetch_line(&line->entry);
	fetch_line(&line->peer);
	fetch_line(&other->entry);
	fetch_line(&other->peer);
	return true;
}

/* Asks the memory for what a packet will need of its state, all lines of it at once: among many
 * states none is in the cache, and asked one after the other each would be waited for by itself. */
__inline void fetch_state(const struct pf_state *state)
{
	fetch_line(&state->serial);
	fetch_line(&state->src);
	fetch_line(&state->key);
}

/* The same for the state where it leaves, which is not asked for its key. */
__inline void fetch_onward(__u32 place)
{
	__u32 index = place - 1;
	const struct pf_state *state = bpf_map_lookup_elem(&states, &index);

	if (!state)
		return;
	fetch_line(&state->serial);
	fetch_line(&state->src);
}

/* Whether an entry leads to a state that has the key; its place and serial number go to `ref`. */
__inline bool leads_to(__u32 entry, const struct pf_key_spot *spot, const struct pf_state_key *key,
		       struct pf_state_ref *ref, __u32 onward)
{
	__u32 index = (entry & spot->index_mask) - 1, serial;
	const struct pf_state *state = bpf_map_lookup_elem(&states, &index);

	if (!state)
		return false;
	fetch_state(state);
	if (onward)
		fetch_onward(onward);
	serial = now_in(state->serial);
	if (!same_key(key, &state->key[PF_WIRE]) &&
	    (!key->made || !same_key(key, &state->key[PF_STACK])))
		return false;
	ref->index = index;
	ref->serial = serial;
	/* of one that is not alive, and may soon be another, the number is even */
	return serial & 1 && now_in(state->serial) == serial;
}

/* Finds the state that a key leads to, which was sought: its entry is in a spot. Returns 1, or 0 if
 * there is none. */
__inline int find_there(const struct pf_state_key *key, const struct pf_key_spot *spot,
			struct pf_state_ref *ref)
{
	const struct pf_key_line *line = bpf_map_lookup_elem(&state_keys, &spot->line[0]);
	const struct pf_key_line *other = bpf_map_lookup_elem(&state_keys, &spot->line[1]);
	__u32 entry;

	if (!line || !other)
		return 0;
	for (int i = 0; i < 2; i++, line = other) {
		for (int j = 0; j < PF_KEY_ENTRIES; j++) {
			entry = now_in(line->entry[j]);
			/* one that is claimed differs in that bit */
			if ((entry & ~spot->index_mask) == spot->tag &&
			    leads_to(entry, spot, key, ref, now_in(line->peer[j])))
				return 1;
		}
	}
	return 0;
}

/* The same of any key, and of one that was sought. */
__global int find_key(const struct pf_state_key *key, struct pf_state_ref *ref)
{
	struct pf_key_spot spot;

	return key && ref && seek_key(key, &spot) && find_there(key, &spot, ref);
}

__global int find_key_at(const struct pf_state_key *key, const struct pf_key_spot *spot,
			 struct pf_state_ref *ref)
{
	return key && spot && ref && find_there(key, spot, ref);
}

/* ---- change -------------------------------------------------------------------------------------- */

/* How many entries of a line are not free, counted without branches: to the verifier each would be
 * two ways on. */
__inline __u32 entries_in(const struct pf_key_line *line)
{
	__u64 count = 0;

#pragma unroll
	for (int i = 0; i < PF_KEY_ENTRIES; i++) {
		count += (now_in(line->entry[i]) + 0xffffffffull) >> 32;
		barrier_var(count);	/* one after the other: the stack has no room for them all */
	}
	return count;
}

/* Claims a free entry of a line. */
__inline bool claim_in(struct pf_key_line *line, __u32 entry, __u32 *at)
{
	for (int i = 0; i < PF_KEY_ENTRIES; i++) {
		if (!now_in(line->entry[i]) &&
		    !__sync_val_compare_and_swap(&line->entry[i], 0, entry | PF_KEY_CLAIMED)) {
			*at = i;
			return true;
		}
	}
	return false;
}

/* Claims an entry in the emptier of the two lines. Returns 0, or -1 if both are full. */
__inline int claim_entry(const struct pf_key_spot *spot, __u32 entry, struct pf_key_entry *claimed)
{
	struct pf_key_line *one, *other;

	one = bpf_map_lookup_elem(&state_keys, &spot->line[0]);
	other = bpf_map_lookup_elem(&state_keys, &spot->line[1]);
	if (!one || !other)
		return -1;
	for (int i = 0; i < CLAIM_ATTEMPTS; i++) {
		if (entries_in(one) <= entries_in(other)) {
			claimed->line = spot->line[0];
			if (claim_in(one, entry, &claimed->at))
				return 0;
		} else {
			claimed->line = spot->line[1];
			if (claim_in(other, entry, &claimed->at))
				return 0;
		}
	}
	return -1;
}

/* Waits until an entry is not claimed any more, or nobody's. Returns what it is then. */
__inline __u32 wait_for_claim(const __u32 *word, __u32 entry)
{
	__u32 now = entry;
	int i;

	bpf_for(i, 0, CLAIM_LOOKS) {
		now = now_in(*word);
		if (now != entry)
			break;
	}
	return now;
}

/* Returns a bit for each entry of a line that has a spot's tag, claimed or not: without branches,
 * since the verifier would go both ways at each. */
__inline __u64 entries_with_tag(const struct pf_key_line *line, const struct pf_key_spot *spot)
{
	const __u32 mask = ~spot->index_mask & ~PF_KEY_CLAIMED;
	__u64 found = 0, difference;

#pragma unroll
	for (int i = 0; i < PF_KEY_ENTRIES; i++) {
		difference = (now_in(line->entry[i]) ^ spot->tag) & mask;
		found |= ((difference - 1) >> 63) << i;
		barrier_var(found);	/* one after the other, as in entries_in */
	}
	return found;
}

/* 1 if a claim must give way to one of the entries in `found`, all in one line, which have its
 * tag. */
__global int gives_way_to(const struct pf_key_spot *spot, const struct pf_state_key *key,
			  const struct pf_key_entry *claimed, __u32 number, __u32 found)
{
	const struct pf_key_line *line = bpf_map_lookup_elem(&state_keys, &number);
	struct pf_state_ref ref;
	__u32 entry, after;
	bool behind;
	int i;

	if (!line || !spot || !key || !claimed)
		return 1;
	bpf_for(i, 0, PF_KEY_ENTRIES) {
		if (!(found >> i & 1))
			continue;
		entry = now_in(line->entry[i & (PF_KEY_ENTRIES - 1)]);
		if ((entry & ~spot->index_mask & ~PF_KEY_CLAIMED) != spot->tag ||
		    !leads_to(entry, spot, key, &ref, 0))
			continue;
		behind = number > claimed->line ||
			 (number == claimed->line && (__u32)i > claimed->at);
		if (!(entry & PF_KEY_CLAIMED) || !behind)
			return 1;
		after = wait_for_claim(&line->entry[i & (PF_KEY_ENTRIES - 1)], entry);
		/* a claim that came since sees this one */
		if (after == entry || (after && (after & ~spot->index_mask) == spot->tag))
			return 1;
	}
	return 0;
}

/* Whether a claim must give way to another entry with its key in its two lines. Hardly any other
 * entry there has its tag. */
__inline bool gives_way(const struct pf_key_spot *spot, const struct pf_state_key *key,
			const struct pf_key_entry *claimed)
{
	const struct pf_key_line *line;
	__u32 number, found;

	for (__u32 which = 0; which < 2; which++) {
		number = spot->line[which];
		line = bpf_map_lookup_elem(&state_keys, &number);
		if (!line)
			return true;
		found = entries_with_tag(line, spot);
		if (number == claimed->line)
			found &= ~(1u << (claimed->at & (PF_KEY_ENTRIES - 1)));
		if (found && gives_way_to(spot, key, claimed, number, found))
			return true;
	}
	return false;
}

/* Leads a key to the state in a place, by an entry in a spot. Returns 0, or -1 if it leads to one
 * already or there is no room. */
__inline int insert_there(const struct pf_state_key *key, const struct pf_key_spot *spot, __u32 index,
			  struct pf_key_entry *claimed)
{
	const __u32 entry = spot->tag | (index + 1);
	struct pf_key_line *line;
	bool stays;
	__u32 at;

	if (claim_entry(spot, entry, claimed))
		return -1;
	stays = !gives_way(spot, key, claimed);
	line = bpf_map_lookup_elem(&state_keys, &claimed->line);
	at = claimed->at;
	if (!line || at >= PF_KEY_ENTRIES)
		return -1;
	line->peer[at] = 0;
	__sync_val_compare_and_swap(&line->entry[at], entry | PF_KEY_CLAIMED, stays ? entry : 0);
	return stays ? 0 : -1;
}

/* The same of any key. */
__global int insert_key(const struct pf_state_key *key, __u32 index)
{
	struct pf_key_entry claimed = {};
	struct pf_key_spot spot;

	if (!key || !find_spot(key, &spot))
		return -1;
	return insert_there(key, &spot, index, &claimed);
}

/* Leads a key that leads to the state in one place to that in another; to none for PF_NO_PLACE.
 * Returns 0, or -1 if it does not lead there any more. */
__global int replace_key(const struct pf_state_key *key, __u32 before, __u32 after)
{
	struct pf_key_line *line;
	struct pf_key_spot spot;
	__u32 was, is;

	if (!key || !find_spot(key, &spot))
		return -1;
	was = spot.tag | (before + 1);
	is = after == PF_NO_PLACE ? 0 : spot.tag | (after + 1);
	for (int i = 0; i < 2; i++) {
		line = bpf_map_lookup_elem(&state_keys, &spot.line[i]);
		if (!line)
			return -1;
		for (int j = 0; j < PF_KEY_ENTRIES; j++) {
			if (now_in(line->entry[j]) == was)
				return __sync_val_compare_and_swap(&line->entry[j], was, is) ==
					       was ? 0 : -1;
		}
	}
	return -1;
}

/* Notes which state knows packets with the key where they leave, beside the entry that leads to
 * that where they come in. */
__global int point_onward(const struct pf_state_key *key, __u32 index, __u32 onward)
{
	struct pf_key_line *line;
	struct pf_key_spot spot;

	if (!key || !find_spot(key, &spot))
		return 0;
	for (int i = 0; i < 2; i++) {
		line = bpf_map_lookup_elem(&state_keys, &spot.line[i]);
		if (!line)
			return 0;
		for (int j = 0; j < PF_KEY_ENTRIES; j++) {
			if (now_in(line->entry[j]) == (spot.tag | (index + 1)))
				line->peer[j] = onward + 1;
		}
	}
	return 0;
}

/* The same beside an entry that is known. */
__inline void point_entry_onward(const struct pf_key_entry *entry, __u32 onward)
{
	struct pf_key_line *line = bpf_map_lookup_elem(&state_keys, &entry->line);

	if (line && entry->at < PF_KEY_ENTRIES)
		line->peer[entry->at] = onward + 1;
}

#endif /* PF_KEY_TABLE_H */
