/* SPDX-License-Identifier: Apache-2.0 */
/* The program (stage.h) on a simulated node whose cards are cut into instances (MIG), and pods that reserve some. */
#pragma once

#include "sim/machine/machine.h"
#include "tests/plugin/stage.h"

#define CUT_UID	  "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c0" /* and one letter more */
#define CUT_PHASE "hami.io/bind-phase"
#define CUT_NODE  "{\"nodeconfig\":[{\"name\":\"" STAGE_NODE "\",\"operatingmode\":\"mig\"}]}"

struct cut {
	struct machine *machine;
	char gpus[2][MACHINE_UUID_SIZE];
};
extern struct cut cut;

/* Files of the build; before all others. */
void cut_set_files(const char *program, const char *library);

/* cmocka's; the program is configured and not started. */
int cut_setup(void **state);
int cut_teardown(void **state);

/* The machine of a fresh state. */
void cut_take_machine(const char *board);

/* Instances of a card. */
unsigned cut_count(int gpu);
void cut_await_counts(unsigned first, unsigned second, unsigned most_s);

/* As a restart of the node does: the card has none, and is not cut any more. */
void cut_forget_instances(int gpu);

/* The name of the instance at exactly this place, "" where there is none; one at a time. */
const char *cut_instance(int gpu, const char *profile, unsigned start);

/* A program in a container that has the instance; NULL: the whole card. */
pid_t cut_start_program(int gpu, const char *uuid);

/* Adds one to a text of reservations, which begins as "". */
void cut_reserve(char *text, size_t size, unsigned container, unsigned device, int gpu,
	const char *profile, unsigned start, unsigned places);

/* A pod of so many containers, of one device each. */
json_t *cut_make_pod(const char *name, const char *slots, const char *instances, unsigned count);

/* Takes the pod over; it has the lock. */
void cut_bind_pod(const char *name, json_t *pod);

/* A pod of one container with one instance is bound, and served as reserved, or refused with such words. */
void cut_bind(const char *name, int gpu, const char *profile, unsigned start, unsigned places);
void cut_serve(const char *name, int gpu, const char *profile, unsigned start);
void cut_refuse(int gpu, const char *words);

void cut_allocate(int gpu, unsigned count, struct stage_answer *answer);
void cut_assert_list(const struct stage_answer *answer, const char *expected);

/* NULL: of the node; that it is not there. */
bool cut_is_annotated(const char *pod, const char *key, const char *expected);
void cut_await_annotation(const char *pod, const char *key, const char *expected);
