/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a card as the one device of a process (MIG). */
#pragma once

#include "sim/cuda/model/driver.h"

/*
 * The part that the process has: the one that $CUDA_VISIBLE_DEVICES names, else the first of these cards. Where
 * there is one, it is the only device; cards in MIG mode are none themselves. Returns how many devices are left.
 */
int part_choose(const char *list, int indices[MACHINE_DEVICES_MAX], int count);

/* The process has joined: it uses the part. */
void part_use(void);

/* The UUID of the device: its part's, if it has one. */
void part_uuid(const struct device *device, uint8_t ret_uuid[16]);
