/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that a workload would make. */
#include "plan/template.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A DaemonSet has as many as nodes, and is not here. */
static const struct kind {
	const char *name, *count; /* NULL: one */
	bool is_nested;		  /* the template is that of a job */
} kinds[] = {
	{"Deployment", "replicas", false},
	{"ReplicaSet", "replicas", false},
	{"ReplicationController", "replicas", false},
	{"StatefulSet", "replicas", false},
	{"Job", "parallelism", false},
	{"CronJob", NULL, true},
};

static const struct kind *find(const json_t *workload)
{
	const char *name = json_string_value(json_object_get(workload, "kind"));

	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int template_read(const json_t *workload, struct template *ret_template, struct err *err)
{
	const struct kind *kind = find(workload);
	const json_t *spec = json_object_get(workload, "spec"), *count;

	*ret_template = (struct template){.workload = workload};
	if (!kind)
		return 0;
	if (kind->is_nested)
		spec = json_object_get(json_object_get(spec, "jobTemplate"), "spec");
	ret_template->pod = json_object_get(spec, "template");
	if (!json_is_object(json_object_get(ret_template->pod, "spec")))
		return err_set(err, EINVAL, "%s is missing or no mapping; a pod's spec is right",
			kind->is_nested ? "spec.jobTemplate.spec.template.spec"
					: "spec.template.spec");
	count = kind->count ? json_object_get(spec, kind->count) : NULL;
	ret_template->replicas = count ? json_integer_value(count) : 1;
	if (count && (!json_is_integer(count) || ret_template->replicas < 0 ||
			     ret_template->replicas > TEMPLATE_REPLICAS_MOST))
		return err_set(err, EINVAL, "spec.%s is no number from 0 to %d", kind->count,
			TEMPLATE_REPLICAS_MOST);
	return 0;
}

json_t *template_make(const struct template *template, int64_t number)
{
	const json_t *owner = json_object_get(template->workload, "metadata");
	const char *name = json_string_value(json_object_get(owner, "name"));
	json_t *pod = json_deep_copy(template->pod), *metadata = json_object_get(pod, "metadata"),
	       *namespace = json_object_get(owner, "namespace");
	char text[300];

	snprintf(text, sizeof(text), "%.250s-%lld", name ? name : "pod", (long long)number);
	if (pod && !json_is_object(metadata)) {
		metadata = json_object();
		json_object_set_new(pod, "metadata", metadata);
	}
	if (!pod || json_object_set_new(metadata, "name", json_string(text)) ||
		(namespace && json_object_set(metadata, "namespace", namespace))) {
		json_decref(pod);
		return NULL;
	}
	json_object_del(metadata, "uid");
	return pod;
}
