/* SPDX-License-Identifier: Apache-2.0 */
/* A program in a container, as the simulated node sees it. */
#pragma once

#include <sys/types.h>

/* Works in this instance of the device (-1: in the whole device) until it is ended. */
pid_t mig_program_start(int gpu, int instance);

void mig_program_end(pid_t pid);
