/* SPDX-License-Identifier: Apache-2.0 */
/* Turn records that lie, in the folder of the simulated device; HOSTILE_TURNS is the folder of all devices. */
#pragma once

#include <stdbool.h>

#include "region/turn_record.h"
#include "tests/hostile/served.h"

/* Gives up root for another user, where it may, and goes into the device's folder once another slice has made it. */
void records_enter(void);

/* The same, for one of several such users. */
void records_enter_as(unsigned user);

/* A record of that name, made with its magic where it is missing. */
struct turn_record *records_make(const char *name);

/* So many, of names that differ. */
void records_make_all(struct turn_record **ret_records, int count);

/* The record that an earlier program of this one's slice has left. */
struct turn_record *records_left(void);

/* The record that the library made for this program's own slice, after it has given some work. */
struct turn_record *records_own(void);

/* The slice works without end, and another process, which never touches CUDA, lies in its record meanwhile. */
void records_beside_work(void (*lie)(struct turn_record *record));

/* Another process of the slice gives it kernels of this length until this one ends. */
void records_start_work(uint64_t kernel_ns);

/* The record of another slice, to be read. */
const struct turn_record *records_of(const char *slice);

uint64_t records_now_ns(void);

/* That it holds the time slice, or wants it, from now on for so long. */
void records_say(struct turn_record *record, enum turn_state state, uint32_t rank, uint64_t ns);

/* That it holds the time slice, and each tenth of a second that it has begun anew, without end. */
void records_hold_again(struct turn_record *record);
