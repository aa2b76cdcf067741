/* SPDX-License-Identifier: Apache-2.0 */
/* Which pauses of streams are doubted. */
#include "tenant/compute/doubts.h"

#include "base/bits.h"

/*
 * After a pause that is doubted each piece of work is measured for so many times as long as the pause, which is as much as it
 * may have hidden; a launch costs 1.7 us more then (H200). Once that has shown work to be hidden, the next pauses are all doubted.
 */
#define DOUBTED_TIMES	   16
#define DOUBTED_WHEN_SHOWN 32 /* twice as many each time */
#define DOUBTED_AGAIN	   7

void doubts_note_hidden(struct doubts *doubts)
{
	/* Found out anew, by chance. */
	if (!doubts->pauses && doubts->times < DOUBTED_AGAIN)
		doubts->times++;
	doubts->pauses = DOUBTED_WHEN_SHOWN << doubts->times;
}

/*
 * One of each DOUBTED in a row, and nobody can foresee which. Were each drawn by itself, a program would be lucky now and then,
 * and hide work for as long as it is judged.
 */
static bool draw_lot(struct doubts *doubts, uint64_t now_ns)
{
	bool is_doubted;

	if (!doubts->drawn)
		doubts->lot = (uint32_t)(hash_u64(now_ns) % DOUBTED);
	is_doubted = doubts->drawn == doubts->lot;
	doubts->drawn = (doubts->drawn + 1) % DOUBTED;
	return is_doubted;
}

bool doubts_draw(struct doubts *doubts, uint64_t since_ns, uint64_t now_ns)
{
	if (!draw_lot(doubts, now_ns))
		return false;
	doubts->until_ns = now_ns + DOUBTED_TIMES * (now_ns - since_ns);
	return true;
}

bool doubts_end_pause(struct doubts *doubts, bool is_estimated, uint64_t since_ns, uint64_t now_ns,
	uint64_t *ret_until_ns)
{
	bool is_doubted = (is_estimated && doubts_draw(doubts, since_ns, now_ns)) ||
			  doubts->pauses || now_ns < doubts->until_ns;
	/* At a stream's beginning: until its first pause. */
	uint64_t until_ns = now_ns + DOUBTED_TIMES * (now_ns - since_ns);

	/* A stream's beginning is none of these. */
	doubts->pauses -= doubts->pauses && since_ns;
	*ret_until_ns = until_ns < doubts->until_ns ? doubts->until_ns : until_ns;
	return is_doubted;
}
