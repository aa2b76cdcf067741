/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter: one for each device of this process. It measures what its streams' work takes, charges that to the
 * slice's budget in the region, and says when more may be given to the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/compute/meters.h"

enum meter_admitted {
	METER_IN_BATCH,
	METER_ENDS_BATCH, /* its batch is full with it, and meter_given() is to be called */
	METER_WITHOUT, /* too much waits to be measured for a batch of its own: meter_given_late() is to be called */
};

/*
 * Waits until work of this kind may be given to the stream, and expects it. now_ns may be off by
 * some us. With the meter's lock, which it leaves while it waits.
 */
enum meter_admitted meter_admit(struct stream_state *s, uint32_t estimate, uint64_t now_ns);

/*
 * After the work was given, with the lock: closes the batch. given_ns: when the driver's call had returned. Where nobody knows how long it takes, and other slices are about,
 * waits a while for its end, without the lock. The stream has users.
 */
void meter_given(struct stream_state *s, uint64_t given_ns);

/*
 * After work was given that is in no batch, because another thread closed it before or there was none, with the lock: it is
 * measured as a batch of its own, or as part of the one that is open, or of the last closed one. It went to the driver at since_ns or later, and
 * may have ended meanwhile. is_followed: what the stream had since then began where the last batch ended, so that its events cover this, too; else it is charged from
 * since_ns on.
 */
void meter_given_late(
	struct stream_state *s, uint32_t estimate, uint64_t since_ns, bool is_followed);

/* Waits until work of this kind might be given to the stream, as meter_admit() does, and gives none. */
void meter_wait(struct stream_state *s, uint32_t estimate);
