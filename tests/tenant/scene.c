/* SPDX-License-Identifier: Apache-2.0 */
/* A scene of the tests of what NVML shows. */
#include "tests/tenant/scene.h"

#include <stdio.h>
#include <string.h>

const char *const compute_lists[3] = {"nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"};
const char *const empty_lists[6] = {"nvmlDeviceGetGraphicsRunningProcesses",
	"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3",
	"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3"};

struct scene make_scene(struct node *node, const char *setting)
{
	struct scene s = {
		.a = slice_new(node, "a", "4g", "1g"), .b = slice_new(node, "b", "4g", NULL)};

	s.one = tenant_start(node, s.a, "linked", setting, NULL);
	s.two = tenant_start(node, s.a, "linked", setting, NULL);
	s.other = tenant_start(node, s.b, "linked", setting, NULL);
	s.looker = tenant_start(node, s.a, "found-dlopen", setting, NULL);
	expect(s.one, OK, "primary 0");
	expect(s.one, OK, "alloc x 100m");
	expect(s.two, OK, "primary 0");
	expect(s.two, OK, "alloc x 10m");
	expect(s.other, OK, "primary 0");
	expect(s.other, OK, "alloc x 1g");
	return s;
}

bool shows(const struct tenant *t, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return strstr(t->answer, text) != NULL;
}

void check_rows(const struct scene *s)
{
	const struct tenant *l = s->looker;

	assert_int_equal(tenant_number(l, "count"), 2);
	assert_true(
		shows(l, " %d:%llu", s->one->pid, (unsigned long long)(CONTEXT_BYTES + 100 * MIB)));
	assert_true(
		shows(l, " %d:%llu", s->two->pid, (unsigned long long)(CONTEXT_BYTES + 10 * MIB)));
}

void make_busy(struct scene *s)
{
	struct machine *machine = s->a->node->machine;

	assert_int_equal(inject_set_kernel(machine, "work", 300 * UINT64_C(1000000)), 0);
	tenant_tell(s->one, "work work");
	tenant_tell(s->other, "work work");
	assert_int_equal(tenant_answer(s->one), OK);
	assert_int_equal(tenant_answer(s->other), OK);
}
