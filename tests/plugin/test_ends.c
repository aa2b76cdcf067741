/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a slice's last process is told beside its share, and nothing else is. */
#include "plugin/host/ends.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "prepare_host.h"
#include "region/ended.h"
#include "tests/plugin/living.h"
#include "tests/unit/cmocka_ready.h"

static struct ends ends;

static int setup(void **state)
{
	host_make();
	ends = (struct ends){.settings = &host.settings};
	return 0;
}

static int teardown(void **state)
{
	ends_deinit(&ends);
	host_remove();
	return 0;
}

static struct prepared prepare(const char *pod_uid)
{
	return host_prepare(pod_uid, "main");
}

/* Until each of them was listed and asked. */
static void look(void)
{
	for (unsigned i = 0; i <= ENDS_OPEN_LOOKS; i++)
		ends_look(&ends);
}

/* What the library reads; 0: nothing. */
static uint64_t told(const struct prepared *p)
{
	char path[600];
	struct file_identity id;

	snprintf(path, sizeof(path), "%s/share", p->share_folder);
	return file_identify_path(p->region_file, &id) ? 0 : ended_read(path, id.device, id.inode);
}

static void an_end_is_told_and_a_life_is_not(void **state)
{
	struct prepared p = prepare(POD), other = prepare(OTHER);
	struct child c = living_start(p.region_file);
	uint64_t before_ns, first_ns;

	look();
	assert_int_equal(told(&p), 0);
	assert_int_not_equal(told(&other), 0);
	kill(c.pid, SIGSTOP);
	look();
	assert_int_equal(told(&p), 0);
	before_ns = clock_now_ns();
	child_kill(&c);
	ends_look(&ends);
	first_ns = told(&p);
	assert_in_range(first_ns, before_ns, clock_now_ns());
	/* The first look is the nearest. */
	look();
	assert_int_equal(told(&p), first_ns);
	c = living_start(p.region_file);
	look();
	assert_int_equal(told(&p), first_ns);
	child_kill(&c);
	ends_look(&ends);
	assert_in_range(told(&p), first_ns + 1, clock_now_ns());
}

static void who_begins_anew_leaves_what_was_told(void **state)
{
	struct prepared p = prepare(POD);
	struct child c;
	uint64_t first_ns;
	char path[600];

	look();
	first_ns = told(&p);
	ends_deinit(&ends);
	ends = (struct ends){.settings = &host.settings};
	look();
	assert_int_equal(told(&p), first_ns);
	/* but not what is none */
	snprintf(path, sizeof(path), "%s/" ENDED_FILE, p.share_folder);
	assert_int_equal(truncate(path, 7), 0);
	assert_int_equal(told(&p), 0);
	ends_deinit(&ends);
	ends = (struct ends){.settings = &host.settings};
	look();
	assert_in_range(told(&p), first_ns + 1, clock_now_ns());
	/* One that was away while a process lived and died does not know; one that saw it live does. */
	first_ns = told(&p);
	c = living_start(p.region_file);
	ends_deinit(&ends);
	ends = (struct ends){.settings = &host.settings};
	look();
	child_kill(&c);
	look();
	assert_in_range(told(&p), first_ns + 1, clock_now_ns());
}

static void a_region_that_is_made_anew_is_another(void **state)
{
	struct prepared p = prepare(POD);
	struct child c = living_start(p.region_file);

	look();
	assert_int_equal(told(&p), 0);
	assert_int_equal(unlink(p.region_file), 0);
	look();
	prepare(POD);
	assert_int_equal(told(&p), 0);
	look();
	assert_int_not_equal(told(&p), 0);
	child_kill(&c);
}

/* Only locks are asked for, whatever stands in it. */
static void what_a_tenant_writes_does_not_count(void **state)
{
	struct prepared p = prepare(POD);
	struct child c = living_start(p.region_file);

	assert_int_equal(truncate(p.region_file, 0), 0);
	look();
	assert_int_equal(told(&p), 0);
	assert_int_equal(truncate(p.region_file, 1 << 30), 0);
	look();
	assert_int_equal(told(&p), 0);
	child_kill(&c);
	ends_look(&ends);
	assert_int_not_equal(told(&p), 0);
}

static void what_is_no_region_is_left_alone(void **state)
{
	struct prepared p = prepare(POD);

	assert_int_equal(unlink(p.region_file), 0);
	assert_int_equal(mkfifo(p.region_file, 0666), 0);
	look();
	assert_int_equal(unlink(p.region_file), 0);
	assert_int_equal(symlink(host.library, p.region_file), 0);
	look();
	assert_int_equal(host_count("state/shares/" POD "_main"), 1);
}

static unsigned count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void a_container_that_is_gone_leaves_nothing(void **state)
{
	unsigned before = count_descriptors();

	prepare(POD);
	prepare(OTHER);
	look();
	assert_int_equal(count_descriptors(), before + 2);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	assert_int_equal(host_count("state/shares"), 0);
	look();
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(host_count("state/shares"), 0);
}

/* The folder is full, or was removed by hand: it is told as soon as it can be. */
static void what_cannot_be_told_is_told_later(void **state)
{
	struct prepared p = prepare(POD);
	char aside[600];

	snprintf(aside, sizeof(aside), "%s.aside", p.share_folder);
	assert_int_equal(rename(p.share_folder, aside), 0);
	look();
	assert_int_equal(rename(aside, p.share_folder), 0);
	assert_int_equal(told(&p), 0);
	ends_look(&ends);
	assert_int_not_equal(told(&p), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_end_is_told_and_a_life_is_not),
		TEST(who_begins_anew_leaves_what_was_told),
		TEST(a_region_that_is_made_anew_is_another),
		TEST(what_a_tenant_writes_does_not_count),
		TEST(what_is_no_region_is_left_alone),
		TEST(a_container_that_is_gone_leaves_nothing),
		TEST(what_cannot_be_told_is_told_later),
	};

	return cmocka_run_group_tests_name("ends", tests, NULL, NULL);
}
