/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: their shape, their bounds, and who decides whether they are written. */
#define LOG_TOPIC LOG_SHARE
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/stderr.h"

#include "tests/unit/capture.h"
#include "tests/unit/cmocka_ready.h"

static struct capture out;

static int set_default_levels(void **state)
{
	log_set_level(LOG_WARN);
	return 0;
}

/* The last line of what was captured, without "vgpu: level=... pid=N " and the newline. */
static const char *tail_of_line(void)
{
	char *at = strstr(out.text, "msg=");

	assert_non_null(at);
	at[strcspn(at, "\n")] = '\0';
	return at;
}

static void a_line_has_level_topic_pid_message_and_fields(void **state)
{
	char expected[200];

	capture_begin(&out);
	log_warn("share file is broken", STR("path", "/etc/vgpu/share"), U64("line", 3));
	capture_end(&out);
	snprintf(expected, sizeof(expected),
		"vgpu: level=warn topic=share pid=%d msg=\"share file is broken\" "
		"path=/etc/vgpu/share line=3\n",
		getpid());
	assert_string_equal(out.text, expected);
}

static void a_line_without_fields_ends_behind_the_message(void **state)
{
	capture_begin(&out);
	log_error("it is so");
	capture_end(&out);
	assert_non_null(strstr(out.text, "level=error"));
	assert_string_equal(tail_of_line(), "msg=\"it is so\"");
}

static void numbers_are_written_whole(void **state)
{
	capture_begin(&out);
	log_warn("n", U64("zero", 0), U64("ten", 10), U64("most", UINT64_MAX));
	capture_end(&out);
	assert_string_equal(tail_of_line(), "msg=\"n\" zero=0 ten=10 most=18446744073709551615");
}

static void values_that_would_be_ambiguous_are_quoted(void **state)
{
	const char *none = NULL;

	capture_begin(&out);
	log_warn("q", STR("plain", "a.b/c-d_e:f"), STR("space", "a b"), STR("empty", ""),
		STR("null", none), STR("quote", "a\"b"), STR("equals", "a=b"),
		STR("slash", "a \\"));
	capture_end(&out);
	assert_string_equal(tail_of_line(),
		"msg=\"q\" plain=a.b/c-d_e:f space=\"a b\" empty=\"\" null=\"\" quote=\"a\\\"b\" "
		"equals=\"a=b\" slash=\"a \\\\\"");
}

static void control_bytes_never_reach_the_terminal(void **state)
{
	char hostile[34];
	const char *text = hostile;

	for (int i = 0; i < 31; i++)
		hostile[i] = (char)(i + 1);
	hostile[31] = 0x7f;
	hostile[32] = 'z';
	hostile[33] = '\0';
	capture_begin(&out);
	log_warn("c", STR("hostile", text), STR("line", "a\nvgpu: level=error"));
	capture_end(&out);
	assert_int_equal(strchr(out.text, '\n') - out.text, strlen(out.text) - 1);
	for (const char *at = out.text; at[1]; at++) {
		assert_true((unsigned char)*at >= ' ');
		assert_true(*at != 0x7f);
	}
	assert_non_null(strstr(out.text, "hostile=\"????????????????????????????????z\""));
	assert_non_null(strstr(out.text, "line=\"a?vgpu: level=error\""));
}

static void a_line_that_is_too_long_is_cut_and_still_ends(void **state)
{
	char longer[4096];
	const char *text = longer;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	capture_begin(&out);
	log_warn("long", STR("a", text), STR("b", text), U64("c", 1));
	capture_end(&out);
	assert_int_equal(strlen(out.text), 512);
	assert_int_equal(out.text[511], '\n');
	assert_int_equal(out.text[510], 'x');
}

/* A hundred lines from one place; how many of them were written. */
static unsigned say_again(void)
{
	unsigned lines = 0;

	capture_begin(&out);
	for (int i = 0; i < 100; i++)
		log_warn("again", U64("i", i));
	capture_end(&out);
	for (const char *at = out.text; (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

static void a_daemon_writes_every_line(void **state)
{
	log_set_sink(&log_daemon);
	assert_int_equal(say_again(), 100);
	assert_null(strstr(out.text, "not shown"));
	log_set_sink(&log_guest);
}

static void one_place_writes_sixteen_lines_and_says_that_it_stops(void **state)
{
	assert_int_equal(say_again(), LOG_LINES_PER_SITE);
	assert_non_null(strstr(out.text, "i=15 (more of this is not shown)\n"));
	assert_null(strstr(out.text, "i=14 ("));
	assert_null(strstr(out.text, "i=16"));
}

static void errno_is_kept(void **state)
{
	int saved_fd = dup(STDERR_FILENO), full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	capture_begin(&out);
	errno = EXDEV;
	log_warn("kept");
	capture_end(&out);
	assert_true(strlen(out.text) > 0);
	dup2(full_fd, STDERR_FILENO);
	errno = EXDEV;
	log_warn("nobody listens");
	dup2(saved_fd, STDERR_FILENO);
	close(saved_fd);
	close(full_fd);
	assert_int_equal(errno, EXDEV);
}

static void lines_below_the_level_cost_nothing_and_are_not_evaluated(void **state)
{
	int evaluated = 0;

	capture_begin(&out);
	log_info("quiet", U64("n", ++evaluated));
	log_set_level(LOG_OFF);
	log_error("quiet, too", U64("n", ++evaluated));
	log_set_level(LOG_INFO);
	log_info("heard", U64("n", ++evaluated));
	log_debug("quiet", U64("n", ++evaluated));
	capture_end(&out);
	assert_int_equal(evaluated, 1);
	assert_non_null(strstr(out.text, "level=info"));
	assert_null(strstr(out.text, "quiet"));
}

static void levels_are_set_for_all_topics_or_for_one(void **state)
{
	const char *unknown;

	log_set_levels("error,ledger=trace,door=off", &unknown);
	assert_null(unknown);
	assert_int_equal(log_levels[LOG_SHARE], LOG_ERROR);
	assert_int_equal(log_levels[LOG_LEDGER], LOG_TRACE);
	assert_int_equal(log_levels[LOG_DOOR], LOG_OFF);
	log_set_levels("ledger=debug,info", &unknown);
	assert_null(unknown);
	for (int i = 0; i < LOG_TOPIC_COUNT; i++)
		assert_int_equal(log_levels[i], LOG_INFO);
}

static void every_level_and_topic_has_its_word(void **state)
{
	static const char *const levels[] = {"off", "error", "warn", "info", "debug", "trace"};
	static const char *const topics[] = {
#define X(id, name) name,
		LOG_TOPICS(X)
#undef X
	};
	const char *unknown;
	char text[64];

	for (unsigned l = 0; l < ARRAY_SIZE(levels); l++) {
		log_set_levels(levels[l], &unknown);
		assert_null(unknown);
		assert_int_equal(log_levels[LOG_TOPIC_COUNT - 1], l);
	}
	for (unsigned t = 0; t < ARRAY_SIZE(topics); t++) {
		log_set_level(LOG_OFF);
		snprintf(text, sizeof(text), "%s=debug", topics[t]);
		log_set_levels(text, &unknown);
		assert_null(unknown);
		for (unsigned other = 0; other < ARRAY_SIZE(topics); other++)
			assert_int_equal(log_levels[other], other == t ? LOG_DEBUG : LOG_OFF);
	}
}

static void an_unknown_word_is_named_and_the_others_count(void **state)
{
	static const char *const broken[] = {"loud", "WARN", "warn ", " warn", "ledger=", "=warn",
		"=", "ledger=loud", "nothing=warn", "ledger=warn=info", "2", "ledger warn",
		"off=off"};
	const char *unknown;

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		char text[64];

		log_set_level(LOG_WARN);
		snprintf(text, sizeof(text), "door=info,%s,region=debug", broken[i]);
		assert_ptr_equal(log_check_levels(text), text + strlen("door=info,"));
		assert_int_equal(log_levels[LOG_DOOR], LOG_WARN);
		log_set_levels(text, &unknown);
		assert_ptr_equal(unknown, text + strlen("door=info,"));
		assert_int_equal(log_levels[LOG_DOOR], LOG_INFO);
		assert_int_equal(log_levels[LOG_REGION], LOG_DEBUG);
		assert_int_equal(log_levels[LOG_LEDGER], LOG_WARN);
	}
	log_set_levels("", &unknown);
	assert_null(unknown);
}

/* In a child whose descriptor 2 is that one, which the child closes: how it ended, by a test's question. */
static int in_child(int stderr_fd, int (*question)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		dup2(stderr_fd, STDERR_FILENO);
		close(stderr_fd);
		alarm(5);
		_exit(question());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int says_a_line(void)
{
	sigset_t waiting, mask;
	struct sigaction action;

	log_warn("nobody listens");
	/* Nothing is left of it. */
	if (sigpending(&waiting) < 0 || sigismember(&waiting, SIGPIPE) ||
		sigprocmask(SIG_BLOCK, NULL, &mask) < 0 || sigismember(&mask, SIGPIPE) ||
		sigismember(&mask, SIGTTOU) || sigaction(SIGPIPE, NULL, &action) < 0)
		return 1;
	return action.sa_handler != SIG_DFL;
}

static int keeps_what_waits(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGPIPE);
	log_warn("nobody listens");
	sigpending(&set);
	return !sigismember(&set, SIGPIPE);
}

static void nobody_who_reads_it_ends_no_program(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(in_child(ends[1], says_a_line), 0);
	assert_int_equal(in_child(ends[1], keeps_what_waits), 0);
	close(ends[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	close(ends[0]);
	assert_int_equal(in_child(ends[1], says_a_line), 0);
	close(ends[1]);
}

static void fill(int fd)
{
	static const char bytes[4096];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, bytes, sizeof(bytes)) > 0 || write(fd, bytes, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

/* By an alarm it would end with 142. */
static void nobody_waits_for_a_reader(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	fill(ends[1]);
	assert_int_equal(in_child(ends[1], says_a_line), 0);
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fill(ends[1]);
	assert_int_equal(in_child(ends[1], says_a_line), 0);
	close(ends[0]);
	close(ends[1]);
}

static const char *data_path;

/* Whether a line came into a file that the program has opened with these flags after it closed its stderr. */
static int gets_a_line(int flags)
{
	static const char data[600] = "data";
	char text[1200];
	int fd;

	close(STDERR_FILENO);
	if (open(data_path, flags | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO ||
		write(STDERR_FILENO, data, sizeof(data)) != sizeof(data) ||
		lseek(STDERR_FILENO, 0, SEEK_SET) != 0)
		return 1;
	log_warn("a line");
	fd = open(data_path, O_RDONLY);
	if (read(fd, text, sizeof(text)) < (ssize_t)sizeof(data) ||
		memcmp(text, data, sizeof(data)) != 0)
		return 1;
	return lseek(fd, 0, SEEK_END) != sizeof(data);
}

static int has_a_file_there(void)
{
	stderr_remember();
	return gets_a_line(O_RDWR) | gets_a_line(O_WRONLY) << 1 |
	       gets_a_line(O_RDWR | O_APPEND) << 2 | !gets_a_line(O_WRONLY | O_APPEND) << 3;
}

/* A pipe that another one reads is what programs that show their own stderr have made of it (notebooks). */
static int has_a_pipe_there(void)
{
	char text[64] = "";
	int ends[2], both[2];

	stderr_remember();
	if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
		return 1;
	log_warn("a line");
	if (read(ends[0], text, sizeof(text) - 1) < 6 || strncmp(text, "vgpu: ", 6) ||
		socketpair(AF_UNIX, SOCK_STREAM, 0, both) || dup2(both[1], STDERR_FILENO) < 0)
		return 2;
	log_warn("a line");
	return recv(both[0], text, sizeof(text), MSG_DONTWAIT) >= 0 ? 3 : 0;
}

static void what_a_program_opens_in_the_place_of_its_stderr_is_its_own(void **state)
{
	char path[] = "/tmp/vgpu-log.XXXXXX";
	int fd = mkstemp(path), null_fd = open("/dev/null", O_WRONLY);

	assert_true(fd >= 0 && null_fd >= 0);
	close(fd);
	data_path = path;
	/* A file of lines is written to at its end alone. */
	assert_int_equal(in_child(null_fd, has_a_file_there), 0);
	unlink(path);
	assert_int_equal(in_child(null_fd, has_a_pipe_there), 0);
	close(null_fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_default_levels, set_default_levels)
	const struct CMUnitTest tests[] = {
		TEST(a_line_has_level_topic_pid_message_and_fields),
		TEST(a_line_without_fields_ends_behind_the_message),
		TEST(numbers_are_written_whole),
		TEST(values_that_would_be_ambiguous_are_quoted),
		TEST(control_bytes_never_reach_the_terminal),
		TEST(a_line_that_is_too_long_is_cut_and_still_ends),
		TEST(a_daemon_writes_every_line),
		TEST(one_place_writes_sixteen_lines_and_says_that_it_stops),
		TEST(errno_is_kept),
		TEST(nobody_who_reads_it_ends_no_program),
		TEST(nobody_waits_for_a_reader),
		TEST(what_a_program_opens_in_the_place_of_its_stderr_is_its_own),
		TEST(lines_below_the_level_cost_nothing_and_are_not_evaluated),
		TEST(levels_are_set_for_all_topics_or_for_one),
		TEST(every_level_and_topic_has_its_word),
		TEST(an_unknown_word_is_named_and_the_others_count),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
