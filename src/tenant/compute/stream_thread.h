/* SPDX-License-Identifier: Apache-2.0 */
/* A thread, by which its own streams are told from those of others, also of one that has its place in memory later. */
#pragma once

/* The calling thread; never NULL. When it ends its streams are told so (streams_thread_ends()). */
const void *stream_thread(void);
