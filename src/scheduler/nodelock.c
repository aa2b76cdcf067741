/* SPDX-License-Identifier: Apache-2.0 */
/* The lock on a node. */
#include "scheduler/nodelock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "scheduler/reservation.h"
#include "scheduler/object.h"

/* RFC 3339: "2026-01-02T03:04:05Z", with a fraction or a zone "+08:00"; INT64_MAX: it is none. */
static int64_t parse_stamp(const char *text)
{
	struct tm tm = {.tm_isdst = 0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int hours = 0, minutes = 0, used = 0;
	char sign = 0;

	if (!rest)
		return INT64_MAX;
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (!strcmp(rest, "Z"))
		return timegm(&tm);
	if (sscanf(rest, "%c%2d:%2d%n", &sign, &hours, &minutes, &used) != 3 || rest[used] ||
		(sign != '+' && sign != '-'))
		return INT64_MAX;
	return timegm(&tm) - (sign == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
}

bool nodelock_parse(const char *text, struct nodelock *ret_lock)
{
	char copy[NODELOCK_BYTES], *rest = copy, *part[4] = {NULL};
	size_t count = 0;

	if (!text || !*text)
		return false;
	*ret_lock = (struct nodelock){.set_s = INT64_MAX};
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return true;
	while (rest && count < 4)
		part[count++] = strsep(&rest, ",");
	ret_lock->set_s = parse_stamp(part[0]);
	if (count == 3 && !rest && strlen(part[1]) < sizeof(ret_lock->namespace) &&
		strlen(part[2]) < sizeof(ret_lock->name)) {
		strcpy(ret_lock->namespace, part[1]);
		strcpy(ret_lock->name, part[2]);
	}
	return true;
}

bool nodelock_is_of(const struct nodelock *lock, const char *namespace, const char *name)
{
	return *lock->name && !strcmp(lock->namespace, namespace) && !strcmp(lock->name, name);
}

void nodelock_format(const struct timespec *now, const char *namespace, const char *name,
	char ret_text[NODELOCK_BYTES])
{
	struct tm tm;
	char stamp[32];

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now->tv_sec, &tm));
	snprintf(ret_text, NODELOCK_BYTES, "%s.%09ldZ,%s,%s", stamp, now->tv_nsec, namespace, name);
}

static const char *text_at(const json_t *object, const char *outer, const char *inner)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(object, outer), inner));

	return text ? text : "";
}

/* The plugin sets the phase to something else when it has served the pod or failed to. */
static bool waits_for_devices(const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");

	return !strcmp(text_at(pod, "status", "phase"), "Pending") &&
	       !strcmp(text_at(metadata, "annotations", RESERVATION_PHASE), RESERVATION_ALLOCATING);
}

enum nodelock_verdict nodelock_judge(const struct nodelock *lock, const char *node,
	const json_t *pod, int64_t now_s, int64_t seen_s, int64_t timeout_s)
{
	int64_t age_s = lock->set_s < now_s ? now_s - lock->set_s : 0;
	const char *bound;

	if (age_s < seen_s)
		age_s = seen_s;
	if (!*lock->name)
		return age_s > timeout_s ? NODELOCK_LEFT : NODELOCK_HELD;
	if (!pod || object_is_over(pod))
		return NODELOCK_LEFT;
	bound = text_at(pod, "spec", "nodeName");
	if (!*bound)
		return age_s > NODELOCK_BINDING_S ? NODELOCK_LEFT : NODELOCK_HELD;
	return !strcmp(bound, node) && waits_for_devices(pod) ? NODELOCK_HELD : NODELOCK_LEFT;
}
