/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's own runtime: what a context takes for device code that allocates, launches or prints.
 *
 * Each context takes it once (H200, driver 580): 138 MiB with the first image whose code allocates or launches
 * kernels, 64 MiB with the first one that prints, and the heap itself, its limit and 2 MiB, when such a function is
 * launched for the first time or is in a graph that is instantiated. All of it stays until the context ends.
 */
#pragma once

#include "tenant/memory/charge.h"
#include "tenant/memory/image.h"

/* What loading an image into the current context may bring of it. CUDA_ERROR_OUT_OF_MEMORY without our own. */
CUresult runtime_load_begin(const struct image *image, uint64_t *ret_bytes) MUST_CHECK;

/*
 * Whether that load may bring more of it than that: what the image does not tell, or what is noted as being there by what images said that
 * need not have used it.
 */
bool runtime_load_is_open(const struct image *image);

/*
 * The driver was asked to load the image into the current context. One that tells nothing may use the heap. grown_bytes
 * is what the load is known to have taken; 0: not known. life is the context's; 0: another one was made current meanwhile.
 */
void runtime_loaded(const struct image *image, bool is_there, uint64_t life, uint64_t grown_bytes);

/*
 * Around a call that may bring the heap of the current context: what may come is told, and nobody changes its
 * limit until the end. 0, and nothing to end, where it cannot come. CUDA_ERROR_OUT_OF_MEMORY where another thread
 * is about to change the limit for too long. since is current_since() before all of it.
 */
CUresult runtime_heap_begin(uint64_t *ret_bytes) MUST_CHECK;
void runtime_heap_end(uint64_t bytes, uint64_t since);

/* Whether a heap that was booked is there now: from then on NVML shows it. Before a call's end is judged. */
void runtime_heap_look(void);

/* Books the charge for a heap that may come later, with nobody asked, until the context ends. */
void runtime_heap_keep(struct charge *charge);

/* The program changes a limit of the current context. */
CUresult runtime_set_limit(CUlimit limit, size_t value);

/* The context is gone, and its runtime with it. */
void runtime_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void runtime_reset_after_fork(void);
