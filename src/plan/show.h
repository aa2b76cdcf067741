/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of decide() for a person. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "policy/fit.h"

/* Where each pod goes, one row for each device. */
void show_table(FILE *out, const json_t *answers);

/* What a pod asks for, and what each node says to it; with each device, where the answer has them and with_scores. */
void show_answer(FILE *out, const json_t *answer, bool with_scores);

/* What the scheduler's words mean that occur in answers. */
struct show_words {
	bool occurs[FIT_REASONS];
};
void show_note_words(struct show_words *words, const json_t *answer);
void show_words(FILE *out, const struct show_words *words);

/* A pod's devices, one a line with two spaces in front. */
void show_devices(FILE *out, const json_t *devices);

/* A text of a member, harmless on a terminal; "" where it has none. */
void show_text(FILE *out, const json_t *object, const char *key);
