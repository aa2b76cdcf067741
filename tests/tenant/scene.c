/* SPDX-License-Identifier: Apache-2.0 */
/* A scene of the tests of what NVML shows. */
#include "tests/tenant/scene.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"

#define MS UINT64_C(1000000)

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

/* The simulated card looks six times a second who works: whoever works alone for that long is seen. */
void make_busy(struct scene *s)
{
	struct tenant *const in_turn[] = {s->other, s->one};
	uint64_t began_ns;
	unsigned tries = 0;

	assert_int_equal(inject_set_kernel(s->a->node->machine, "work", 300 * MS), 0);
	do {
		assert_true(tries++ < 20);
		began_ns = clock_now_ns();
		for (unsigned i = 0; i < ARRAY_SIZE(in_turn); i++) {
			tenant_tell(in_turn[i], "work work");
			assert_int_equal(tenant_answer(in_turn[i]), OK);
		}
	} while (clock_now_ns() - began_ns > 800 * MS);
}
