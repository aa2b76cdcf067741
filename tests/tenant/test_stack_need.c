/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library runs on the program's threads, whose stacks may be small: how much of them its calls take.
 *
 * A client is told the same with the library and without it: what is written to more is the library's. That all messages
 * are written belongs to it.
 */
#include "tests/tenant/scene.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "region/turn_record.h"

/* What docs/troubleshooting.md promises. 4.5 KiB were measured, with gcc 12 on x86-64. */
#define MOST_BYTES (8 * KIB)

struct pair {
	struct tenant *with, *without;
	uint64_t most_bytes;
	char deepest[64];
};

static uint64_t depth_of(struct tenant *t, const char *words)
{
	int r = tenant_ask(t, "depth %s", words);

	/* the driver's result is any, but none of the client's own: these words are not right */
	if (r >= 9000)
		print_message("%s: %d%s\n", words, r, t->answer);
	assert_true(r < 9000);
	return tenant_number(t, "depth");
}

static void compare(struct pair *p, const char *words)
{
	uint64_t with = depth_of(p->with, words), without = depth_of(p->without, words);

	if (with > without && with - without >= p->most_bytes) {
		p->most_bytes = with - without;
		snprintf(p->deepest, sizeof(p->deepest), "%s", words);
	}
}

static void compare_all(struct pair *p, const char *const *words)
{
	for (; *words; words++)
		compare(p, *words);
}

static void check(const struct pair *p)
{
	print_message(
		"%llu bytes of stack, in: %s\n", (unsigned long long)p->most_bytes, p->deepest);
	/* nothing at all were a measure that measures nothing */
	assert_in_range(p->most_bytes, 1, MOST_BYTES);
}

static struct pair start(struct slice *slice, const char *door, const char *setting)
{
	struct node *node = slice->node;
	struct pair p = {.with = tenant_start(node, slice, door, "VGPU_LOG=trace", setting, NULL)};

	node->is_loud = true;
	node->is_without_library = true;
	p.without = tenant_start(node, NULL, door, setting, NULL);
	node->is_without_library = false;
	return p;
}

static const char *const cuda[] = {"init", "primary 0", "info", "infonull", "totalmem 0",
	"alloc a 3m", "free a", "alloc b 2m", "pitch c 1000 1000", "managed d 2m", "async e 2m",
	"freeasync e", "stream s", "module m data=3m", "launch m", "launchex m", "launchcoop m",
	"launchmulti m s", "module n heap printf", "launch n", "modulefat o data=1m", "unload o",
	"library l data=3m", "uselibrary l data", "endlibrary l", "array r 2d:64x64", "endarray r",
	"graph g", "gmem g x 4m", "gspin g 2 10", "instantiate e g", "upload e", "glaunch e",
	"update e g", "endexec e", "createx h 2m", "export f h", "import i f", "release h",
	"release i", "closefd f", "vmm v 2m", "range k b 2m", "unmap v 0 2m", "unreserve v 2m",
	"newpoolx q", "exportpool p q", "importpool u p", "ipcget b", "external y 2m",
	"endexternal y", "limit stack 4k", "endstream s", "tour", "load 1 2000", "newctx z 0",
	"endctx z", "primary 0", "green w 0", "usegreen w", "endgreen w", "primary 0", "fork",
	"init", NULL};

/* From the first of a process on, which loads the share file, makes the region and its first context. */
static void calls_of_cuda_need_8_kib(void **state)
{
	struct slice *slice = slice_new(*state, "a", "6g", "1g");
	struct pair p = start(slice, "linked", NULL);

	slice->slack_bytes = GIB;
	compare_all(&p, cuda);
	check(&p);
}

static void a_share_that_is_read_again_and_a_refusal_need_8_kib(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct pair p = start(slice, "linked", NULL);

	slice->slack_bytes = GIB;
	compare_all(&p, (const char *const[]){"primary 0", "alloc a 1g", NULL});
	slice_change(slice, "1g", NULL);
	compare_all(&p, (const char *const[]){"alloc b 3g", "module m data=3g", "vmm v 3g",
				"async c 3g", "array r 2d:60000x60000", NULL});
	slice_write(slice, "vgpu-share 1\ndevice none of a share's lines\n");
	compare(&p, "alloc d 3g");
	check(&p);
}

static const char *const nvml[] = {"nvml 0", "nvml2 0", "nvmlcount", "devices", "procs 0",
	"list nvmlDeviceGetComputeRunningProcesses 0 100",
	"list nvmlDeviceGetComputeRunningProcesses_v2 0 100",
	"list nvmlDeviceGetComputeRunningProcesses_v3 0 100",
	"list nvmlDeviceGetGraphicsRunningProcesses_v3 0 100",
	"list nvmlDeviceGetMPSComputeRunningProcesses_v3 0 100", "details 0 0 100", "busy 0",
	"samples 0 100", "accounts 0 100", "account 0 1", "sessions 0 100", "name 1 100",
	"oldinfo 0", "bar1 0", "endnvml", NULL};

#define PROCESSES 16

static void calls_of_nvml_need_8_kib_beside_many_processes(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "20g", NULL);
	struct pair p = start(slice, "found-dlopen", "VGPU_SIM_NVML=accounting,sessions"), shown;

	for (unsigned i = 0; i < PROCESSES; i++) {
		struct tenant *t = tenant_new(slice);

		/* what is shared is added to its maker's */
		if (i % 4 == 0) {
			expect(t, OK, "createx h 2m");
			expect(t, OK, "export f h");
		}
	}
	compare_all(&p, nvml);
	check(&p);
	shown = start(slice, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice");
	compare_all(&shown, nvml);
	check(&shown);
}

/* As many records as are looked at, all of them like the one that is there. */
static void fill(const char *folder)
{
	struct turn_record record;
	struct dirent **entries;
	char path[512];
	FILE *file;
	int count = scandir(folder, &entries, NULL, alphasort);

	/* behind "." and ".." */
	assert_int_equal(count, 3);
	for (unsigned i = 0; i <= TURN_PEERS; i++) {
		snprintf(path, sizeof(path), "%s/%s%.*u", folder, entries[2]->d_name, i > 0, i);
		file = fopen(path, i ? "w" : "r");
		assert_non_null(file);
		assert_int_equal(i ? fwrite(&record, sizeof(record), 1, file)
				   : fread(&record, sizeof(record), 1, file),
			1);
		assert_int_equal(fclose(file), 0);
	}
	while (count > 0)
		free(entries[--count]);
	free(entries);
}

static void share_time(struct slice *slice, const char *folder)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice %s\nregion %s\nturns %s\ndevice * memory 8g cores 40\nend\n",
		slice->name, slice->region, folder);
	slice_write(slice, text);
}

static void work_beside_many_slices_needs_8_kib(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "8g", "8g"),
		     *other_slice = slice_new(node, "b", "8g", "8g");
	struct tenant *other;
	char folder[200], of_device[300];
	struct pair p;

	snprintf(folder, sizeof(folder), "%s/turns", node->dir);
	assert_true(mkdir(folder, 0777) == 0 || errno == EEXIST);
	share_time(slice, folder);
	share_time(other_slice, folder);
	other = tenant_new(other_slice);
	expect(other, OK, "module m");
	expect(other, OK, "launch m");
	snprintf(of_device, sizeof(of_device), "%s/%s", folder, node->uuid[0]);
	fill(of_device);
	p = start(slice, "linked", NULL);
	slice->slack_bytes = other_slice->slack_bytes = GIB;
	compare_all(&p,
		(const char *const[]){"primary 0", "module m", "launch m", "stream s", "launch m s",
			"sync", "launchcoop m", "graph g", "gspin g 2 1000", "instantiate e g",
			"glaunch e s", "streamsync s", "glaunch e", "sync", NULL});
	check(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(calls_of_cuda_need_8_kib),
		test_with_node(a_share_that_is_read_again_and_a_refusal_need_8_kib),
		test_with_node(calls_of_nvml_need_8_kib_beside_many_processes),
		test_with_node(work_beside_many_slices_needs_8_kib),
	};

	return cmocka_run_group_tests_name("stack_need", tests, NULL, NULL);
}
