/* SPDX-License-Identifier: Apache-2.0 */
/* A thread, by which its own streams are told from those of others, also of one that has its place in memory later. */
#pragma once

#include <stdbool.h>

/* The calling thread; never NULL. ends is called when it ends, in it; the same for all. */
const void *stream_thread(void (*ends)(const void *thread));

/* Whether that is the calling thread. */
bool stream_thread_is_own(const void *thread);
