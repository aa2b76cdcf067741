/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says of NVIDIA's Multi-Process Service. */
#pragma once

#include <stdint.h>

/*
 * The server that the process is a client of: 0 is none. It is one where $CUDA_MPS_PIPE_DIRECTORY has
 * a `control` in it, and, where that is a FIFO, its daemon lives.
 */
uint64_t mps_client_find_server(void);

/* $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, from 1 to 100; else 100. */
uint32_t mps_client_read_percent(void);

/*
 * What $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT ("0=8G,1=512M", with ',' or ';' between) says of device
 * `ordinal` as the program counts them, in bytes; 0: nothing.
 */
uint64_t mps_client_read_limit_bytes(int ordinal);
