/* SPDX-License-Identifier: Apache-2.0 */
/* When a slice had no living process: seen by its locks, told in a file, and believed only where the share is. */
#include "region/ended.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "region/slot.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define AT	UINT64_C(123456789012)
#define DEVICE	0x801
#define INODE	131074
#define SKIPPED 77
#define SECOND	UINT64_C(1000000000)

struct files {
	char share[320], ended[320];
};

static struct files files_of(const struct scratch *s)
{
	struct files f;

	snprintf(f.share, sizeof(f.share), "%s/share", s->folder);
	snprintf(f.ended, sizeof(f.ended), "%s/" ENDED_FILE, s->folder);
	return f;
}

static void put(const char *path, const void *content, size_t bytes)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, bytes), (ssize_t)bytes);
	assert_int_equal(close(fd), 0);
}

static struct files make_files(const struct scratch *s)
{
	struct files f = files_of(s);
	char text[ENDED_BYTES];

	assert_int_equal(ended_format(AT, DEVICE, INODE, text), 0);
	put(f.share, "", 0);
	put(f.ended, text, strlen(text));
	return f;
}

static uint64_t told(const struct files *f)
{
	return ended_read(f->share, DEVICE, INODE);
}

static void what_is_told_is_read(void **state)
{
	struct files f = make_files(*state);

	assert_int_equal(told(&f), AT);
	assert_int_equal(ended_read(NULL, DEVICE, INODE), 0);
	assert_int_equal(ended_read("share", DEVICE, INODE), 0);
	assert_int_equal(unlink(f.ended), 0);
	assert_int_equal(told(&f), 0);
}

static void what_is_of_another_region_boot_or_clock_is_not(void **state)
{
	char text[ENDED_BYTES], other[ENDED_BYTES], *at;

	assert_int_equal(ended_format(AT, DEVICE, INODE, text), 0);
	assert_int_equal(ended_parse(text, DEVICE, INODE), AT);
	assert_int_equal(ended_parse(text, DEVICE + 1, INODE), 0);
	assert_int_equal(ended_parse(text, DEVICE, INODE + 1), 0);
	strcpy(other, text);
	at = strstr(other, "boot ") + 5;
	*at = *at == '0' ? '1' : '0';
	assert_int_equal(ended_parse(other, DEVICE, INODE), 0);
	strcpy(other, text);
	at = strstr(other, "clock ") + 6;
	*at = *at == '5' ? '6' : '5';
	assert_int_equal(ended_parse(other, DEVICE, INODE), 0);
}

static void a_text_that_is_none_tells_nothing(void **state)
{
	static const char *const texts[] = {"", " ", "\n", "x", "12", "-1 region", "+1", "0x10",
		"99999999999999999999 region 801:20002", "18446744073709551616",
		"                                                                          "};
	char text[ENDED_BYTES], part[ENDED_BYTES];
	struct files f = make_files(*state);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(ended_parse(texts[i], DEVICE, INODE), 0);
	assert_int_equal(ended_format(AT, DEVICE, INODE, text), 0);
	/* cut short, longer, and with a zero byte within or behind */
	for (size_t length = 0; length < strlen(text); length++) {
		snprintf(part, sizeof(part), "%.*s", (int)length, text);
		assert_int_equal(ended_parse(part, DEVICE, INODE), 0);
	}
	put(f.ended, text, strlen(text) + 1);
	assert_int_equal(told(&f), 0);
	memcpy(part, text, sizeof(part));
	part[5] = '\0';
	put(f.ended, part, strlen(text));
	assert_int_equal(told(&f), 0);
	put(f.ended, "", 0);
	assert_int_equal(told(&f), 0);
	memset(part, '1', sizeof(part));
	put(f.ended, part, sizeof(part));
	assert_int_equal(told(&f), 0);
	snprintf(part, sizeof(part), "0%s", text);
	put(f.ended, part, strlen(part));
	assert_int_equal(told(&f), 0);
}

static void what_a_tenant_could_have_put_there_is_not_believed(void **state)
{
	struct files f = make_files(*state);
	char other[340];

	assert_int_equal(told(&f), AT);
	assert_int_equal(chmod(f.ended, 0464), 0);
	assert_int_equal(told(&f), 0);
	assert_int_equal(chmod(f.ended, 0446), 0);
	assert_int_equal(told(&f), 0);
	assert_int_equal(chmod(f.ended, 0444), 0);
	snprintf(other, sizeof(other), "%s.other", f.ended);
	assert_int_equal(link(f.ended, other), 0);
	assert_int_equal(told(&f), 0);
	assert_int_equal(unlink(f.ended), 0);
	assert_int_equal(symlink(other, f.ended), 0);
	assert_int_equal(told(&f), 0);
	assert_int_equal(unlink(f.ended), 0);
	assert_int_equal(mkfifo(f.ended, 0444), 0);
	assert_int_equal(told(&f), 0);
	assert_int_equal(unlink(f.ended), 0);
	assert_int_equal(mkdir(f.ended, 0755), 0);
	assert_int_equal(told(&f), 0);
}

static void what_is_not_of_the_shares_owner_is_not_believed(void **state)
{
	struct files f = make_files(*state);

	if (chown(f.ended, 1234, 1234) < 0)
		skip();
	assert_int_equal(told(&f), 0);
	assert_int_equal(chown(f.share, 1234, 1234), 0);
	assert_int_equal(told(&f), AT);
}

/* The share alone is mounted into a folder that is the container's own, as an operator may do by hand. */
static int read_beside_mounted_share(int fd, void *argument)
{
	const struct files *f = argument;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(f->share, f->share, NULL, MS_BIND, NULL) < 0)
		return SKIPPED;
	return told(f) == 0 ? 0 : 1;
}

static void what_is_not_of_the_shares_mount_is_not_believed(void **state)
{
	struct files f = make_files(*state);
	struct child c = child_start(read_beside_mounted_share, &f);
	int status = child_wait(&c);

	if (status == SKIPPED)
		skip();
	assert_int_equal(status, 0);
	assert_int_equal(told(&f), AT);
}

#define BUSY_NS (3 * SECOND)

/* Has work under way since a while, and says since when. */
static int work(int fd, void *argument)
{
	const char *path = argument;
	struct region region = REGION_NULL;
	uint64_t since_ns = clock_now_ns() - BUSY_NS;
	unsigned slot;

	if (region_open(path, &region) != 0 || slot_claim(&region, &slot) != 0)
		return 1;
	region_drop_fd(&region);
	atomic_store(&region.file->own.slots[slot].busy_since_ns[0], since_ns);
	atomic_store(&region.file->own.slots[slot].busy_since_ns[3], since_ns);
	child_say(fd, since_ns);
	child_hear(fd);
	return 0;
}

static bool is_ended(const struct region *region)
{
	bool is_ended;
	int fd = open(region->path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ended_look(fd, &is_ended), 0);
	assert_int_equal(close(fd), 0);
	return is_ended;
}

static void a_slice_has_ended_when_its_last_process_has(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child one, other;

	assert_int_equal(region_open(s->file, &region), 0);
	assert_true(is_ended(&region));
	one = child_start(work, s->file);
	other = child_start(work, s->file);
	child_hear(one.fd);
	child_hear(other.fd);
	assert_false(is_ended(&region));
	child_kill(&one);
	assert_false(is_ended(&region));
	kill(other.pid, SIGSTOP);
	assert_false(is_ended(&region));
	child_kill(&other);
	assert_true(is_ended(&region));
	region_close(&region);
}

/* Leaves a dead process's work, and what it is charged by whoever finds it 3 s later. */
static uint64_t charge(const struct scratch *s, uint64_t ended_after_ns, bool has_token)
{
	struct files f = files_of(s);
	struct region region = REGION_NULL;
	struct child c = child_start(work, (void *)s->file);
	char text[ENDED_BYTES];
	uint64_t since_ns = child_hear(c.fd), charged_ns;

	child_kill(&c);
	assert_int_equal(region_open(s->file, &region), 0);
	region.share = f.share;
	put(f.share, "", 0);
	assert_int_equal(
		ended_format(since_ns + ended_after_ns, region.device, region.inode, text), 0);
	put(f.ended, text, strlen(text));
	atomic_store(&region.file->own.slots[0].token_place, has_token);
	slot_charge_dead(&region, REGION_SLOTS);
	charged_ns = region.file->own.compute[0].busy_ns;
	assert_in_range(region.file->own.compute[3].busy_ns, charged_ns - SECOND / 10,
		charged_ns + SECOND / 10);
	region_close(&region);
	assert_int_equal(unlink(s->file), 0);
	return charged_ns;
}

static void the_dead_are_charged_until_then(void **state)
{
	assert_in_range(charge(*state, SECOND / 2, false), SECOND / 2 - 10000, SECOND / 2);
	/* before it had work under way: another process's end */
	assert_in_range(charge(*state, 0, false), BUSY_NS - 10000, BUSY_NS + 60 * SECOND);
	/* to come */
	assert_in_range(
		charge(*state, 1000 * SECOND, false), BUSY_NS - 10000, BUSY_NS + 60 * SECOND);
	/* one that may have lived without its lock */
	assert_in_range(charge(*state, SECOND / 2, true), BUSY_NS - 10000, BUSY_NS + 60 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(what_is_told_is_read),
		cmocka_unit_test(what_is_of_another_region_boot_or_clock_is_not),
		SCRATCH_TEST(a_text_that_is_none_tells_nothing),
		SCRATCH_TEST(what_a_tenant_could_have_put_there_is_not_believed),
		SCRATCH_TEST(what_is_not_of_the_shares_owner_is_not_believed),
		SCRATCH_TEST(what_is_not_of_the_shares_mount_is_not_believed),
		SCRATCH_TEST(a_slice_has_ended_when_its_last_process_has),
		SCRATCH_TEST(the_dead_are_charged_until_then),
	};

	return cmocka_run_group_tests_name("ended", tests, NULL, NULL);
}
