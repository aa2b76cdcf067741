/* SPDX-License-Identifier: Apache-2.0 */
/* Slices with compute limits. */
#include "tests/tenant/meter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "region/layout.h"

void meter_use_board(struct node *node, const char *text)
{
	const char *path = node_file(node, "own.board", text, strlen(text));
	char why[256] = "";
	uint8_t uuid[16];

	machine_close(node->machine);
	unlink(node->state);
	if (machine_open(node->state, path, &node->machine, why, sizeof(why)) != 0)
		print_message("no simulated machine: %s\n", why);
	assert_string_equal(why, "");
	for (int i = 0; i < NODE_DEVICES; i++) {
		board_uuid(machine_board(node->machine), i, uuid);
		machine_uuid_text(uuid, node->uuid[i]);
	}
}

void meter_change(struct slice *slice, const char *lines, const char *limits)
{
	char text[1024];
	size_t used = (size_t)snprintf(text, sizeof(text), "vgpu-share 1\nslice %s\nregion %s\n%s",
		slice->name, slice->region, lines);

	for (int d = 0; d < NODE_DEVICES; d++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"device %s memory 16g %s\n", slice->node->uuid[d], limits ? limits : "");
	snprintf(text + used, sizeof(text) - used, "end\n");
	slice_write(slice, text);
}

struct slice *meter_slice(
	struct node *node, const char *name, const char *lines, const char *limits)
{
	struct slice *slice = slice_new(node, name, "16g", "16g");

	slice->slack_bytes = GIB; /* of streams; memory is not what is tried here */
	meter_change(slice, lines, limits);
	return slice;
}

struct tenant *meter_start(
	struct slice *slice, const char *door, int device, const char *setting, const char *work)
{
	struct tenant *t = tenant_start(slice->node, slice, door, setting, NULL);

	tenant_tell(t, "primary %d", device);
	tenant_tell(t, "%s", work);
	return t;
}

uint64_t meter_busy_ns(const struct slice *slice, int device)
{
	_cleanup_free_ struct machine_snapshot *snapshot = malloc(sizeof(*snapshot));
	uint64_t busy_ns = 0;

	assert_non_null(snapshot);
	assert_int_equal(machine_read_snapshot(slice->node->machine, 0, snapshot), 0);
	for (int i = 0; i < snapshot->process_count; i++)
		if (strcmp(snapshot->process[i].tag, slice->name) == 0)
			busy_ns += snapshot->process[i].device[device].busy_ns;
	return busy_ns;
}

unsigned meter_permille(const struct slice *slice, int device, unsigned window_us)
{
	uint64_t from_ns = machine_now_ns(), busy_ns = meter_busy_ns(slice, device);

	usleep(window_us);
	busy_ns = meter_busy_ns(slice, device) - busy_ns;
	return (unsigned)(busy_ns * 1000 / (machine_now_ns() - from_ns));
}

uint64_t meter_calls(const struct node *node, const char *symbol)
{
	int call = call_find(symbol);

	assert_true(call >= 0);
	return inject_read_count(node->machine, (unsigned)call);
}

const struct region_compute *meter_books(const struct slice *slice)
{
	static struct region_file file;
	int fd = open(slice->region, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	assert_true(fd >= 0);
	got = read(fd, &file, sizeof(file));
	close(fd);
	assert_int_equal(got, sizeof(file));
	return &file.own.compute[0];
}

struct region_file *meter_region(const struct slice *slice)
{
	int fd = open(slice->region, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED
			  : mmap(NULL, sizeof(struct region_file), PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, 0);

	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}
