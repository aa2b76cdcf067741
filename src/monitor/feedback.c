/* SPDX-License-Identifier: Apache-2.0 */
/* Who of the containers on a device may work. */
#include "monitor/feedback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static bool has_device(const struct hami_figures *container, const char *uuid)
{
	for (unsigned i = 0; i < container->device_count; i++)
		if (!strcmp(container->devices[i].uuid, uuid))
			return true;
	return false;
}

struct company {
	bool is_behind;	 /* a more important one is active */
	unsigned equals; /* active ones of its priority, itself among them */
};

static struct company find_company(const struct hami_figures *const *containers, size_t count,
	const struct feedback *answers, const struct hami_figures *its, const char *uuid)
{
	struct company company = {.equals = 0};

	for (size_t i = 0; i < count; i++) {
		const struct hami_figures *other = containers[i];

		/* Held-back ones are at -1 at most. What a container says of itself is nothing to one with a share. */
		if (answers[i].recent_launches <= 0 || other->priority < 0 ||
			(its->is_granted && !other->is_granted) || !has_device(other, uuid))
			continue;
		company.is_behind |= other->priority < its->priority;
		company.equals += other->priority == its->priority;
	}
	return company;
}

/* All are counted before the first is told, so answers hold what was counted. */
static void decide(const struct hami_figures *const *containers, size_t count, size_t at,
	const struct feedback *counted, struct feedback *ret_answer)
{
	const struct hami_figures *its = containers[at];
	bool is_behind = false, is_limited = false;

	for (unsigned i = 0; i < its->device_count; i++) {
		struct company company;

		if (!*its->devices[i].uuid)
			continue;
		company = find_company(containers, count, counted, its, its->devices[i].uuid);
		is_behind |= company.is_behind;
		is_limited |= company.is_behind || company.equals > 1;
	}
	ret_answer->is_limited = is_limited;
	if (is_behind)
		ret_answer->recent_launches = -1;
	else if (ret_answer->recent_launches < 0)
		ret_answer->recent_launches = 0;
}

int feedback_decide(
	const struct hami_figures *const *containers, size_t count, struct feedback *ret_answers)
{
	_cleanup_free_ struct feedback *counted = calloc(count + 1, sizeof(*counted));

	if (!counted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int32_t recent = containers[i]->recent_launches;

		counted[i].recent_launches = recent > 0 ? recent - 1 : recent;
		ret_answers[i] = counted[i];
	}
	for (size_t i = 0; i < count; i++)
		decide(containers, count, i, counted, &ret_answers[i]);
	return 0;
}
