/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod's priority class is worth. */
#include "plan/priority.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "scheduler/object.h"

/* Classes that each cluster has. */
static const struct {
	const char *name;
	json_int_t value;
} own[] = {{"system-cluster-critical", 2000000000}, {"system-node-critical", 2000001000}};

int priority_add(json_t *classes, const json_t *object, struct err *err)
{
	const char *name = object_text(object, "name");

	if (!*name || !json_is_integer(json_object_get(object, "value")))
		return err_set(err, EINVAL, "metadata.name and value, a whole number, are right");
	return json_object_set(classes, name, (json_t *)object) ? err_set(err, ENOMEM, "no memory")
								: 0;
}

static const json_t *class_for_all(const json_t *classes)
{
	const json_t *found = NULL;
	const char *name;
	json_t *one;

	json_object_foreach((json_t *)classes, name,
		one) if (json_is_true(json_object_get(one, "globalDefault"))) found = one;
	return found;
}

static bool find_own(const char *name, json_int_t *ret_value)
{
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strcmp(own[i].name, name)) {
			*ret_value = own[i].value;
			return true;
		}
	return false;
}

int priority_give(const json_t *classes, json_t *pod, struct err *err)
{
	json_t *spec = json_object_get(pod, "spec");
	const char *name = json_string_value(json_object_get(spec, "priorityClassName"));
	const json_t *class =
		name && *name ? json_object_get(classes, name) : class_for_all(classes);
	json_int_t value = json_integer_value(json_object_get(class, "value"));
	json_t *policy = json_object_get(class, "preemptionPolicy");

	if (json_object_get(spec, "priority"))
		return 0;
	if (!class && name && *name && !find_own(name, &value))
		return err_set(err, EINVAL,
			"spec.priorityClassName: no PriorityClass '%.100s' is known", name);
	if (json_object_set_new(spec, "priority", json_integer(value)) ||
		(policy && !json_object_get(spec, "preemptionPolicy") &&
			json_object_set(spec, "preemptionPolicy", policy)))
		return err_set(err, ENOMEM, "no memory");
	return 0;
}
