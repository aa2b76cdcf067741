/* SPDX-License-Identifier: Apache-2.0 */
/* What kube-scheduler says of a node before it asks the extender. */
#include "plan/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/object.h"

#define CORDON_TAINT "node.kubernetes.io/unschedulable"

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool tolerates(const json_t *pod, const char *key, const char *value, const char *effect)
{
	const json_t *list = json_object_get(json_object_get(pod, "spec"), "tolerations"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *its_key = text_at(one, "key"), *its_effect = text_at(one, "effect");
		bool is_any = !strcmp(text_at(one, "operator"), "Exists");

		if (*its_effect && strcmp(its_effect, effect) != 0)
			continue;
		if (!*its_key ? is_any
			      : !strcmp(its_key, key) &&
					(is_any || !strcmp(text_at(one, "value"), value)))
			return true;
	}
	return false;
}

static bool passes_taints(const json_t *node, const json_t *pod, char ret_why[PLACEMENT_WORDS])
{
	const json_t *spec = json_object_get(node, "spec"), *taint;
	size_t i;

	if (json_is_true(json_object_get(spec, "unschedulable")) &&
		!tolerates(pod, CORDON_TAINT, "", "NoSchedule")) {
		snprintf(ret_why, PLACEMENT_WORDS, "the node is cordoned");
		return false;
	}
	json_array_foreach(json_object_get(spec, "taints"), i, taint)
	{
		const char *effect = text_at(taint, "effect"), *key = text_at(taint, "key");
		const char *value = text_at(taint, "value");

		if (!strcmp(effect, "PreferNoSchedule") || tolerates(pod, key, value, effect))
			continue;
		snprintf(
			ret_why, PLACEMENT_WORDS, "untolerated taint {%.100s: %.100s}", key, value);
		return false;
	}
	return true;
}

static const char *label_of(const json_t *node, const char *key)
{
	return json_string_value(
		json_object_get(json_object_get(json_object_get(node, "metadata"), "labels"), key));
}

static bool passes_selector(const json_t *node, const json_t *pod, char ret_why[PLACEMENT_WORDS])
{
	json_t *selector = json_object_get(json_object_get(pod, "spec"), "nodeSelector"), *wanted;
	const char *key;

	json_object_foreach(selector, key, wanted)
	{
		const char *value = label_of(node, key);
		const char *right = json_string_value(wanted);

		if (value && right && !strcmp(value, right))
			continue;
		snprintf(ret_why, PLACEMENT_WORDS,
			"nodeSelector wants %.100s=%.80s, and the node has %.80s", key,
			right ? right : "?", value ? value : "none");
		return false;
	}
	return true;
}

static bool is_in(const json_t *values, const char *value)
{
	const json_t *one;
	size_t i;

	json_array_foreach(values, i,
		one) if (json_is_string(one) && !strcmp(json_string_value(one), value)) return true;
	return false;
}

/* value: NULL: the node has no such label. */
static bool satisfies(const json_t *expression, const char *value)
{
	const char *operator= text_at(expression, "operator");
	const json_t *values = json_object_get(expression, "values");
	const char *first = json_string_value(json_array_get(values, 0));

	if (!strcmp(operator, "In"))
		return value && is_in(values, value);
	if (!strcmp(operator, "NotIn"))
		return !value || !is_in(values, value);
	if (!strcmp(operator, "Exists"))
		return value;
	if (!strcmp(operator, "DoesNotExist"))
		return !value;
	if (!value || !first)
		return false;
	if (!strcmp(operator, "Gt"))
		return strtoll(value, NULL, 10) > strtoll(first, NULL, 10);
	return !strcmp(operator, "Lt") && strtoll(value, NULL, 10) < strtoll(first, NULL, 10);
}

/* All expressions of a term; a term without any matches nothing. */
static bool matches_term(const json_t *node, const json_t *term)
{
	const json_t *labels = json_object_get(term, "matchExpressions"), *one;
	const json_t *fields = json_object_get(term, "matchFields");
	size_t i;

	json_array_foreach(labels, i,
		one) if (!satisfies(one, label_of(node, text_at(one, "key")))) return false;
	json_array_foreach(
		fields, i, one) if (strcmp(text_at(one, "key"), "metadata.name") != 0 ||
				    !satisfies(one, object_text(node, "name"))) return false;
	return json_array_size(labels) || json_array_size(fields);
}

static bool passes_affinity(const json_t *node, const json_t *pod, char ret_why[PLACEMENT_WORDS])
{
	const json_t *affinity = json_object_get(
			     json_object_get(json_object_get(pod, "spec"), "affinity"),
			     "nodeAffinity"),
		     *required = json_object_get(
			     affinity, "requiredDuringSchedulingIgnoredDuringExecution"),
		     *term;
	size_t i;

	if (!json_is_object(required))
		return true;
	json_array_foreach(json_object_get(required, "nodeSelectorTerms"), i,
		term) if (matches_term(node, term)) return true;
	snprintf(ret_why, PLACEMENT_WORDS,
		"the pod's node affinity does not match the node's labels");
	return false;
}

bool placement_allows(const json_t *node, const json_t *pod, char ret_why[PLACEMENT_WORDS])
{
	return passes_taints(node, pod, ret_why) && passes_selector(node, pod, ret_why) &&
	       passes_affinity(node, pod, ret_why);
}
