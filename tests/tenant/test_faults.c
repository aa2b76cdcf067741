/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are missing, broken or somebody else's: one clear line, no memory, no crash. */
#include "tests/tenant/tenant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "region/layout.h"

/* Starts a client, which must get no device memory and find one line of error on stderr. */
static void expect_refused(
	struct node *node, struct slice *slice, const char *why, const char *a, const char *b)
{
	char errors[4096], *end;
	struct tenant *t;

	node->is_loud = true;
	unlink(node->errors);
	t = tenant_start(node, slice, "linked", a ? a : "A=", b ? b : "B=", NULL);
	expect(t, OUT_OF_MEMORY, "primary 0");
	expect(t, OUT_OF_MEMORY, "newctx c 0");
	expect(t, OUT_OF_MEMORY, "create h 2m");
	assert_int_equal(tenant_end(t), 0);
	node_read_errors(node, errors, sizeof(errors));
	end = strchr(errors, '\n');
	if (strncmp(errors, "vgpu: level=error", 17) != 0 || !end || end[1] != '\0')
		print_message("%s: stderr: %s\n", why, errors);
	assert_int_equal(strncmp(errors, "vgpu: level=error", 17), 0);
	assert_non_null(end);
	assert_int_equal(end[1], '\0');
	assert_int_equal(slice_truth(slice, 0), 0);
}

static void a_share_file_that_cannot_be_used_refuses_all_memory(void **state)
{
	static const struct {
		const char *name, *text;
		size_t length;
	} files[] = {
		{"empty", "", 0},
		{"no end", "vgpu-share 1\ndevice * memory 1g\n", 33},
		{"cut", "vgpu-share 1\ndevice * memory 1g\nen", 35},
		{"other version", "vgpu-share 2\ndevice * memory 1g\nend\n", 37},
		{"no size", "vgpu-share 1\ndevice * memory 10XB\nend\n", 39},
		{"negative", "vgpu-share 1\ndevice * memory -1\nend\n", 37},
		{"twice", "vgpu-share 1\ndevice * memory 1g\ndevice * memory 2g\nend\n", 56},
		{"unknown line", "vgpu-share 1\nmemory 1g\nend\n", 27},
		{"zero byte", "vgpu-share 1\ndevice * memory 1g\nend\n\0", 37},
		{"relative region", "vgpu-share 1\nregion x\ndevice * memory 1g\nend\n", 46},
		{"noise", "\x80\xff\x01\n\n\x7f\x45LF\n", 10},
	};
	struct node *node = *state;
	struct slice *slice = slice_new_bare(node, "a", 0, 0);
	char option[512], long_text[20000];

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(option, sizeof(option), "VGPU_SHARE=%s",
			node_file(node, "broken", files[i].text, files[i].length));
		expect_refused(node, slice, files[i].name, option, NULL);
	}
	memset(long_text, 'x', sizeof(long_text));
	snprintf(option, sizeof(option), "VGPU_SHARE=%s",
		node_file(node, "long", long_text, sizeof(long_text)));
	expect_refused(node, slice, "too long", option, NULL);
	expect_refused(node, slice, "missing", "VGPU_SHARE=/nonexistent/share", NULL);
	snprintf(option, sizeof(option), "VGPU_SHARE=%s", node->dir);
	expect_refused(node, slice, "directory", option, NULL);
	expect_refused(node, slice, "device", "VGPU_SHARE=/dev/zero", NULL);
	snprintf(option, sizeof(option), "VGPU_SHARE=%s/fifo", node->dir);
	assert_int_equal(mkfifo(strchr(option, '=') + 1, 0666), 0);
	expect_refused(node, slice, "fifo", option, NULL);
}

/* A region with that content is refused and left as it is. */
static void refuse_region(
	struct node *node, struct slice *slice, const char *why, const void *content, size_t length)
{
	_cleanup_free_ char *after = malloc(length + 2);
	const char *path = node_file(node, "a.region", content, length);
	FILE *file;

	assert_non_null(after);
	expect_refused(node, slice, why, NULL, NULL);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(after, 1, length + 2, file), length);
	fclose(file);
	assert_memory_equal(after, content, length);
	assert_int_equal(unlink(slice->region), 0);
}

static void a_region_file_that_cannot_be_used_refuses_all_memory(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	_cleanup_free_ struct region_file *region = calloc(1, sizeof(*region));
	uint8_t *bytes = (uint8_t *)region;
	struct tenant *t;
	FILE *file;

	assert_non_null(region);
	refuse_region(node, slice, "empty", "", 0);
	refuse_region(node, slice, "short", "vgpu", 4);
	refuse_region(node, slice, "zeroes", region, sizeof(*region));
	for (size_t i = 0; i < sizeof(*region); i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	refuse_region(node, slice, "noise", region, sizeof(*region));
	memset(region, 0, sizeof(*region));
	atomic_init(&region->hami.magic, HAMI_MAGIC);
	region->hami.major = HAMI_MAJOR;
	region->hami.minor = HAMI_MINOR;
	refuse_region(node, slice, "HAMi's", region, sizeof(region->hami) + 1);
	/* a good one, of another version or cut */
	t = tenant_new(slice);
	assert_int_equal(tenant_end(t), 0);
	file = fopen(slice->region, "r");
	assert_non_null(file);
	assert_int_equal(fread(region, sizeof(*region), 1, file), 1);
	fclose(file);
	refuse_region(node, slice, "cut", region, sizeof(*region) - 1);
	region->own.version++;
	refuse_region(node, slice, "other version", region, sizeof(*region));
	region->own.version--;
	region->own.size_bytes--;
	refuse_region(node, slice, "other size", region, sizeof(*region));
}

static void set_region(struct slice *slice, const char *path)
{
	char text[600];

	snprintf(text, sizeof(text), "vgpu-share 1\nregion %s\ndevice * memory 1g\nend\n", path);
	slice_write(slice, text);
}

static void a_region_path_that_leads_nowhere_refuses_all_memory(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char path[400];

	set_region(slice, "/nonexistent/folder/region");
	expect_refused(node, slice, "no folder", NULL, NULL);
	set_region(slice, "/proc/region");
	expect_refused(node, slice, "unwritable", NULL, NULL);
	set_region(slice, node->dir);
	expect_refused(node, slice, "directory", NULL, NULL);
	set_region(slice, "/dev/zero");
	expect_refused(node, slice, "device", NULL, NULL);
	snprintf(path, sizeof(path), "%s/fifo", node->dir);
	assert_int_equal(mkfifo(path, 0666), 0);
	set_region(slice, path);
	expect_refused(node, slice, "fifo", NULL, NULL);
	snprintf(path, sizeof(path), "%s/link", node->dir);
	assert_int_equal(symlink("/dev/shm/elsewhere", path), 0);
	set_region(slice, path);
	expect_refused(node, slice, "symbolic link", NULL, NULL);
	assert_int_not_equal(access("/dev/shm/elsewhere", F_OK), 0);
}

static void a_region_for_all_users_is_writable_for_all_whatever_the_umask(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	mode_t mask = umask(077);
	struct tenant *t = tenant_new(slice);
	struct stat st;

	umask(mask);
	assert_int_equal(stat(slice->region, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	assert_int_equal(tenant_end(t), 0);
}

/* A lie: so many bytes of the region file become others. */
struct lie {
	const char *name;
	size_t offset, length;
	int byte;
	bool is_slow; /* running processes need up to a second to notice */
};

static void tell_lie(const struct slice *slice, const struct lie *lie)
{
	_cleanup_fd_ int fd = open(slice->region, O_RDWR | O_CLOEXEC);
	char bytes[256];

	assert_true(fd >= 0 && lie->length <= sizeof(bytes));
	memset(bytes, lie->byte, lie->length);
	assert_int_equal(pwrite(fd, bytes, lie->length, (off_t)lie->offset), lie->length);
}

/* Whatever it is refused, it lives, and takes no more than the quota leaves. */
static void expect_kept(struct tenant *t, const struct lie *lie)
{
	int r = tenant_ask(t, "fill 64m");

	if (r != OUT_OF_MEMORY)
		print_message("%s: the driver's answer is %d%s\n", lie->name, r, t->answer);
	assert_int_equal(r, OUT_OF_MEMORY);
	assert_true(slice_truth(t->slice, 0) <= 2 * GIB);
}

#define DEVICE_0(field) \
	(offsetof(struct region_file, own.devices) + offsetof(struct region_device, field))
#define SLOT_0(field) \
	(offsetof(struct region_file, own.slots) + offsetof(struct region_slot, field))

static void a_region_that_lies_lifts_no_limit(void **state)
{
	static const struct lie lies[] = {
		{"nothing in use", DEVICE_0(total), 8, 0, true},
		{"all in use", DEVICE_0(total), 8, 0xff, false},
		{"small contexts", DEVICE_0(context_bytes), 1, 1, false},
		{"no contexts", DEVICE_0(context_bytes), 8, 0, false},
		{"huge contexts", DEVICE_0(context_bytes), 8, 0xff, false},
		{"doubts", DEVICE_0(doubts), 8, 0xff, false},
		{"another device", DEVICE_0(key), 8, 0x55, false},
		{"no slots", offsetof(struct region_file, own.slot_high), 4, 0, false},
		{"too many slots", offsetof(struct region_file, own.slot_high), 4, 0xff, false},
		{"no devices", offsetof(struct region_file, own.device_count), 4, 0, false},
		{"too many devices", offsetof(struct region_file, own.device_count), 4, 0xff,
			false},
		{"a free slot", SLOT_0(state), 4, 0, false},
		{"an odd slot", SLOT_0(state), 4, 0xff, false},
		{"another owner", SLOT_0(pid), 20, 0xff, false},
		{"holding too much", SLOT_0(held), 8, 0xff, false},
		{"kinds", SLOT_0(kind_bytes), 88, 0xff, false},
		{"HAMi's head", 0, 64, 0xff, false},
		{"endless name", offsetof(struct region_file, hami.uuids), 96, 'x', false},
		{"HAMi's limits", offsetof(struct region_file, hami.limit_bytes), 128, 0xff, false},
		{"HAMi's slot", offsetof(struct region_file, hami.slots), 200, 0xff, false},
	};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);

	node->is_loud = true;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct tenant *old = tenant_new(slice), *new;
		int r;

		expect(old, OK, "alloc a 512m");
		tell_lie(slice, &lies[i]);
		new = tenant_start(node, slice, "linked", NULL);
		r = tenant_ask(new, "primary 0");
		assert_true(r == OK || r == OUT_OF_MEMORY);
		if (r == OK)
			expect_kept(new, &lies[i]);
		if (lies[i].is_slow) {
			tell_lie(slice, &lies[i]);
			usleep(1100000);
		}
		expect_kept(old, &lies[i]);
		assert_int_equal(tenant_end(new), 0);
		expect(old, OK, "free a");
		assert_int_equal(tenant_end(old), 0);
		assert_int_equal(unlink(slice->region), 0);
		node->tenant_count = 0;
	}
}

static void a_limit_on_the_size_of_files_ends_nobody(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char text[1024], errors[4096];
	struct tenant *t;

	node->file_most_bytes = 2000 * KIB;
	expect_refused(node, slice, "ulimit -f 2000", NULL, NULL);
	node_read_errors(node, errors, sizeof(errors));
	assert_non_null(strstr(errors, "(ulimit -f)"));
	/* Where the region is there already, all is well. */
	node->file_most_bytes = 0;
	assert_int_equal(tenant_end(tenant_new(slice)), 0);
	node->file_most_bytes = 2000 * KIB;
	t = tenant_new(slice);
	expect(t, OK, "alloc a 64m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
	/* Neither a record of turns nor the line of log about that may be written. */
	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\nturns %s/turns\ndevice * memory 1g cores "
		"50\nend\n",
		slice->region, node->dir);
	slice_write(slice, text);
	node->file_most_bytes = 1;
	t = tenant_new(slice);
	expect(t, OK, "compute launch 500 count=4");
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_share_file_that_cannot_be_used_refuses_all_memory),
		test_with_node(a_region_file_that_cannot_be_used_refuses_all_memory),
		test_with_node(a_region_that_lies_lifts_no_limit),
		test_with_node(a_region_path_that_leads_nowhere_refuses_all_memory),
		test_with_node(a_limit_on_the_size_of_files_ends_nobody),
		test_with_node(a_region_for_all_users_is_writable_for_all_whatever_the_umask),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
