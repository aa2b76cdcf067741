/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a pod may be created as it is, and what is added to it so that this scheduler is asked for it: the answer to an
 * AdmissionReview of version v1 or v1beta1.
 *
 * Annotations by which the scheduler and the device plugin speak of a pod's devices are theirs alone. A new pod loses them,
 * because a pod that claims a device that nobody gave it would take it from others; a change of them by others is denied.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "scheduler/books.h"
#include "scheduler/demand.h"

struct admission_rules {
	struct demand_rules demand;
	const char *priority;  /* the resource's name */
	const char *scheduler; /* the name that pods with devices get; "": theirs stays */
	bool takes_default;    /* pods of default-scheduler, too */
	int64_t default_count; /* devices of a container that only says how much of them; 0: none */
	const char *core_policy;    /* "force", "disable"; "" or "default": nothing is said */
	const char *runtime_class;  /* of pods with devices; "": theirs stays */
	bool hides_devices;	    /* from containers that ask for none */
	const char *const *trusted; /* users who may change the annotations; ends with NULL */
};

/* The review with its response, for the caller to json_decref(). -EINVAL with err set: it is no review; -ENOMEM. */
int admission_answer(const struct admission_rules *rules, const struct books *books,
	const json_t *review, json_t **ret_answer, struct err *err) MUST_CHECK;

/*
 * The same for pods that a selector leaves out, of which some are labels that a pod gives itself: a new one loses what is the
 * scheduler's and the device plugin's to say, and stays as it is otherwise.
 */
int admission_guard(const struct admission_rules *rules, const struct books *books,
	const json_t *review, json_t **ret_answer, struct err *err) MUST_CHECK;

#define ADMISSION_WORDS_BYTES 256

/*
 * A new pod of a namespace alone, as it would be after that: *ret_pod is a copy with the changes, for the caller to json_decref().
 * ret_denied is why it is denied, or "". *ret_remark is why it passes as it is; NULL: it does not, or there is nothing to say. -ENOMEM.
 */
int admission_change(const struct admission_rules *rules, const struct books *books,
	const char *namespace, const json_t *pod, json_t **ret_pod,
	char ret_denied[ADMISSION_WORDS_BYTES], const char **ret_remark) MUST_CHECK;
