/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a slice could not have while others had the device, and is to have back: a word that its processes share. Any of them that waits adds to it, and
 * what the device does for the slice pays it. So the slice saves up as much whichever of its processes asks. What several wait for at one time counts once.
 *
 * The word says as much as is owed, in steps of 16 us; how long the device had worked for the slice when that was, in steps of 16 us; and when a process
 * waited last, in steps of 64 us. The last two repeat after 17 minutes. 0: nothing.
 */
#pragma once

#include <stdint.h>

/* When none has waited for so long the slice does without it. */
#define OWED_BELIEVED_NS UINT64_C(1000000000)

/* The most that is owed. */
#define OWED_MOST_NS UINT64_C(200000000)

/*
 * What is owed at now_ns, when the device has worked for the slice for served_ns since the region was made. paid_permille: how much of that is what it is
 * to have back, as it would be others' time else.
 */
uint64_t owed_ns(uint64_t word, uint64_t served_ns, uint64_t paid_permille, uint64_t now_ns);

/* The word after something for which so much more is owed; it is no more than OWED_MOST_NS. */
uint64_t owed_add(uint64_t word, uint64_t served_ns, uint64_t paid_permille, uint64_t now_ns,
	uint64_t more_ns);

/* The word after a process has waited until now_ns. due_permille: of that time the slice was to have so much, and of what it is served it pays the rest. */
uint64_t owed_wait(uint64_t word, uint64_t served_ns, uint64_t due_permille, uint64_t now_ns,
	uint64_t waited_ns);

/* The word after the slice gave no work for so long: as much is not owed, unless a process has waited meanwhile. */
uint64_t owed_pause(uint64_t word, uint64_t idle_ns, uint64_t now_ns);
