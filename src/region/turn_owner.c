/* SPDX-License-Identifier: Apache-2.0 */
/* What records that are gone leave to the next ones of their owner. */
#include "region/turn_owner.h"

#include <unistd.h>

#define OWNER_IS_RECORD (UINT64_C(1) << 63) /* of a key; users' are smaller */

static struct turn_owner *find_owner(struct turn *turn, uint64_t owner)
{
	for (unsigned i = 0; i < TURN_OWNERS; i++)
		if (turn->owners[i].at_ns && turn->owners[i].owner == owner)
			return &turn->owners[i];
	return NULL;
}

/* The place for an owner: the one that it has, or the oldest. */
static struct turn_owner *take_owner(struct turn *turn, uint64_t owner)
{
	struct turn_owner *to = find_owner(turn, owner);

	if (to)
		return to;
	to = &turn->owners[0];
	for (unsigned i = 1; i < TURN_OWNERS; i++)
		if (turn->owners[i].at_ns < to->at_ns)
			to = &turn->owners[i];
	*to = (struct turn_owner){.owner = owner};
	return to;
}

/*
 * A record that is broken, replaced or gone may come back under any name: what is known of it counts for the next ones of
 * its user. The operator's can only come back as it was, and the next one is another tenant's.
 */
void turn_owner_leave(struct turn *turn, unsigned i)
{
	struct turn_owner *to = take_owner(turn, turn->peer_records[i].owner);
	struct turn_doubt *doubt = &turn->peers[i].doubt;
	uint64_t now_ns = turn->clock_ns();

	if (doubt->is_awaited && now_ns > turn->polled_ns)
		turn_order_note_wait(doubt, now_ns - turn->polled_ns);
	turn_order_inherit(&to->doubt, doubt);
	to->at_ns = now_ns;
}

void turn_owner_take_over(struct turn *turn, unsigned i)
{
	struct turn_owner *from = find_owner(turn, turn->peer_records[i].owner);

	if (!from)
		return;
	turn_order_inherit(&turn->peers[i].doubt, &from->doubt);
	from->doubt.way_ns = from->doubt.round_ns = from->doubt.excused_ns = 0;
}

static uint64_t key_of(const struct file_identity *record)
{
	return hash_u64(record->inode) | OWNER_IS_RECORD;
}

/* Where nobody but the operator makes records, each is one tenant's; else a user may have made all that are his. */
static uint64_t owner_of(const struct turn *turn, const struct file_identity *record)
{
	if (record->owner == geteuid() || turn->is_by_operator)
		return key_of(record);
	return record->owner + 1u;
}

void turn_owner_note(struct turn *turn, unsigned i, const struct file_identity *record)
{
	turn->peer_records[i].owner = turn->is_by_operator ? key_of(record) : record->owner;
	turn->peers[i].owner = owner_of(turn, record);
}

void turn_owner_doubt(struct turn *turn, unsigned i)
{
	struct turn_owner *to;

	if (turn->peers[i].owner & OWNER_IS_RECORD)
		return;
	to = take_owner(turn, turn->peer_records[i].owner);
	turn_order_inherit(&to->doubt, &turn->peers[i].doubt);
	to->at_ns = turn->clock_ns();
}
