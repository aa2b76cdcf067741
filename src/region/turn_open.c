/* SPDX-License-Identifier: Apache-2.0 */
/* A process's beginning and end with the turns of a device. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "region/turn.h"
#include "region/turn_place.h"
#include "region/turn_record.h"

#define QUANTUM_NS     UINT64_C(5000000)
#define QUANTUM_MAX_NS UINT64_C(35000000) /* below TURN_WANTED_NS, with room for a batch */
#define GRACE_NS       UINT64_C(300000)
#define GRACE_MAX_NS   UINT64_C(5000000)

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

void turn_set_times(struct turn *t, uint64_t quantum_ns, uint64_t grace_ns)
{
	t->quantum_ns = quantum_ns ? at_most(quantum_ns, QUANTUM_MAX_NS) : QUANTUM_NS;
	t->grace_ns = grace_ns ? at_most(grace_ns, GRACE_MAX_NS) : GRACE_NS;
}

void turn_set_patience(struct turn *t, uint64_t patience_ns)
{
	t->patience_ns = patience_ns;
}

/* Counts the process among the slice's. The word of its slot's last owner is wiped. */
static void enter(struct turn *t)
{
	_Atomic uint64_t *high = &t->books->process_high;
	uint64_t seen = atomic_load(high);

	/* relaxed: the process says nothing before the change of a word that shows it */
	atomic_store_explicit(&t->books->busy_until_ns[t->process], 0, memory_order_relaxed);
	while (seen <= t->process)
		if (atomic_compare_exchange_weak(high, &seen, t->process + 1))
			break;
}

int turn_open(struct turn *t, const char *folder, const char *uuid, const char *slice,
	unsigned process, uint64_t now_ns)
{
	size_t folder_length = strlen(folder), uuid_length = strlen(uuid);
	int saved = errno, r;

	if (!turn_record_is_name(slice) || !turn_record_is_name(uuid) || process >= TURN_PROCESSES)
		return -EINVAL;
	if (folder_length + 1 + uuid_length >= sizeof(t->folder))
		return -ENAMETOOLONG;
	memcpy(t->slice, slice, strlen(slice) + 1);
	memcpy(t->folder, folder, folder_length + 1);
	turn_place_make(folder, uuid);
	t->folder[folder_length] = '/';
	memcpy(t->folder + folder_length + 1, uuid, uuid_length + 1);
	t->process = process;
	t->awaited = -1;
	if (!t->clock_ns)
		t->clock_ns = clock_now_ns;
	if (t->patience_ns == 0)
		t->patience_ns = TURN_PATIENCE_NS;
	if (t->quantum_ns == 0)
		turn_set_times(t, 0, 0);
	r = turn_record_open_own(t);
	if (r == 0) {
		enter(t);
		turn_count_peers(t, now_ns);
	}
	errno = saved;
	return r;
}

void turn_close(struct turn *t)
{
	int saved = errno;

	turn_leave(t);
	turn_record_close(t);
	turn_reset_after_fork(t);
	errno = saved;
}

void turn_reset_after_fork(struct turn *t)
{
	*t = (struct turn)TURN_NULL;
}
