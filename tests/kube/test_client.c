/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to an API server that answers, refuses, delays, breaks off, and says what is no JSON. */
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/kube/scene.h"
#include "tests/unit/scratch.h"

static struct scene scene;

/* One call to its end, from nothing to nothing. */
static struct seen get_all(const struct server_step *steps, size_t count)
{
	struct seen seen = {0};
	struct kube_call *call;

	scene_begin(&scene, steps, count);
	assert_int_equal(kube_get(scene.client, "/api/v1/nodes/n", scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 30);
	scene_end(&scene);
	assert_int_equal(seen.count, 1);
	return seen;
}

static void create(struct seen *seen)
{
	struct kube_call *call;
	json_t *object = json_pack("{s:s}", "kind", "Event");

	assert_int_equal(
		kube_create(scene.client, "/api/v1/events", object, scene_done, seen, &call), 0);
	json_decref(object);
	scene_wait(&scene, &seen->is_done, 30);
}

static struct seen create_all(const struct server_step *steps, size_t count)
{
	struct seen seen = {0};

	scene_begin(&scene, steps, count);
	create(&seen);
	scene_end(&scene);
	return seen;
}

#define GET(...)                                           \
	get_all((const struct server_step[]){__VA_ARGS__}, \
		sizeof((const struct server_step[]){__VA_ARGS__}) / sizeof(struct server_step))
#define CREATE(...)                                           \
	create_all((const struct server_step[]){__VA_ARGS__}, \
		sizeof((const struct server_step[]){__VA_ARGS__}) / sizeof(struct server_step))

static const struct server_step good = {
	.expect = "GET /api/v1/nodes/n ", .status = 200, .body = "{\"kind\":\"Node\"}"};

static void an_object_is_handed_over(void **state)
{
	struct seen seen;

	scene = scene_fresh();
	seen = GET(good);
	assert_int_equal(seen.outcome, 0);
	assert_int_equal(seen.attempts, 1);
	assert_string_equal(json_string_value(json_object_get(seen.body, "kind")), "Node");
	seen_clear(&seen);
}

/* A tenant may put it into an annotation; it must not keep the object from being read. */
static void a_zero_character_in_a_text_is_read(void **state)
{
	struct seen seen;

	scene = scene_fresh();
	seen = GET({.expect = "GET", .status = 200, .body = "{\"a\":\"b\\u0000c\"}"});
	assert_int_equal(seen.outcome, 0);
	seen_clear(&seen);
}

static void a_server_that_is_too_busy_is_asked_again_when_it_says(void **state)
{
	uint64_t began = clock_now_ns();
	struct seen seen;

	scene = scene_fresh();
	seen = GET({.expect = "GET", .status = 429, .headers = "Retry-After: 1\r\n", .body = "{}"},
		good);
	assert_int_equal(seen.outcome, 0);
	assert_int_equal(seen.attempts, 2);
	assert_true(clock_now_ns() - began >= SECOND_NS);
	seen_clear(&seen);
	seen = CREATE({.expect = "POST", .status = 429, .headers = "Retry-After: 1\r\n"},
		{.expect = "POST /api/v1/events ", .status = 201, .body = "{}"});
	assert_int_equal(seen.outcome, 0);
	assert_int_equal(seen.attempts, 2);
	seen_clear(&seen);
}

static void a_get_is_repeated_after_500_and_after_a_cut(void **state)
{
	struct seen seen;

	scene = scene_fresh();
	seen = GET({.expect = "GET", .status = 500},
		{.expect = "GET", .status = 200, .body = "{", .end = SERVER_CUT},
		{.expect = "GET", .end = SERVER_CUT}, {.expect = "GET", .status = 503}, good);
	assert_int_equal(seen.outcome, 0);
	assert_int_equal(seen.attempts, 5);
	seen_clear(&seen);
}

static void a_create_whose_answer_is_lost_is_not_repeated(void **state)
{
	struct seen seen;

	scene = scene_fresh();
	seen = CREATE({.expect = "POST", .status = 201, .body = "{\"kin", .end = SERVER_CUT});
	assert_int_equal(seen.outcome, KUBE_E_UNCERTAIN);
	assert_int_equal(seen.attempts, 1);
	seen_clear(&seen);
	seen = CREATE({.expect = "POST", .status = 500});
	assert_int_equal(seen.outcome, KUBE_E_UNCERTAIN);
	seen_clear(&seen);
	scene.settings.attempt_ns = SECOND_NS;
	seen = CREATE({.expect = "POST", .status = 0, .end = SERVER_HANG});
	assert_int_equal(seen.outcome, KUBE_E_UNCERTAIN);
	seen_clear(&seen);
}

/* The server may have carried it out before the connection ended. */
static void a_create_on_an_idle_connection_that_ends_is_not_sent_again(void **state)
{
	struct server_step steps[] = {{.expect = "GET", .status = 200, .body = "{}"},
		{.expect = "POST", .status = 0, .end = SERVER_CUT}};
	struct seen seen = {0};
	struct kube_call *call;

	scene = scene_fresh();
	SCENE_BEGIN(&scene, steps);
	assert_int_equal(kube_get(scene.client, "/api/v1/pods", scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 30);
	seen_clear(&seen);
	create(&seen);
	assert_int_equal(seen.outcome, KUBE_E_UNCERTAIN);
	seen_clear(&seen);
	scene_end(&scene); /* and no further request came */
}

static void every_refusal_has_its_name(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum kube_outcome outcome;
	} rows[] = {
		{404, "{\"reason\":\"NotFound\",\"message\":\"no node n\"}", KUBE_E_NOT_FOUND},
		{409, "{\"reason\":\"Conflict\"}", KUBE_E_CONFLICT},
		{409, "{\"reason\":\"AlreadyExists\"}", KUBE_E_EXISTS},
		{409, "not json", KUBE_E_CONFLICT},
		{410, "", KUBE_E_GONE},
		{401, "", KUBE_E_DENIED},
		{403, "{\"reason\":\"Forbidden\"}", KUBE_E_DENIED},
		{400, "", KUBE_E_INVALID},
		{422, "{\"reason\":\"Invalid\"}", KUBE_E_INVALID},
		{200, "not json", KUBE_E_NOT_UNDERSTOOD},
		{200, "", KUBE_E_NOT_UNDERSTOOD},
		{200, "{\"half\":", KUBE_E_NOT_UNDERSTOOD},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct seen seen;

		scene = scene_fresh();
		seen = GET({.expect = "GET", .status = rows[i].status, .body = rows[i].body});
		assert_int_equal(seen.outcome, rows[i].outcome);
		assert_int_equal(seen.status, rows[i].status);
		assert_null(seen.body);
		if (!i)
			assert_string_equal(seen.words, "the API server answered 404: no node n");
		seen_clear(&seen);
	}
}

static void an_answer_that_is_too_large_is_not_read_to_its_end(void **state)
{
	static char body[70000];
	struct seen seen;

	memset(body, ' ', sizeof(body) - 1);
	scene = scene_fresh();
	scene.settings.answer_most_bytes = 65536;
	seen = GET({.expect = "GET", .status = 200, .body = body});
	assert_int_equal(seen.outcome, KUBE_E_NOT_UNDERSTOOD);
	seen_clear(&seen);
}

static void a_deadline_ends_a_call(void **state)
{
	uint64_t began = clock_now_ns();
	struct seen seen;

	scene = scene_fresh();
	scene.settings.deadline_ns = SECOND_NS;
	seen = GET({.expect = "GET", .status = 0, .end = SERVER_HANG});
	assert_int_equal(seen.outcome, KUBE_E_UNREACHABLE);
	assert_true(clock_now_ns() - began < 20 * SECOND_NS);
	seen_clear(&seen);
}

static void a_server_that_is_away_is_unreachable(void **state)
{
	static char server[] = "http://127.0.0.1:1";
	struct kube_access access = {.server = server};
	struct seen seen = {0};
	struct kube_call *call;

	scene = scene_fresh();
	scene.settings.deadline_ns = 3 * SECOND_NS;
	scene_connect(&scene, &access);
	assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 30);
	assert_int_equal(seen.outcome, KUBE_E_UNREACHABLE);
	assert_true(seen.attempts > 1);
	seen_clear(&seen);
	scene_disconnect(&scene);
}

static void a_patch_names_the_version_it_is_for(void **state)
{
	static const struct server_step steps[] = {
		{.expect = "PATCH /api/v1/nodes/n ", .status = 200, .body = "{}"}};
	json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "a", "b");
	struct seen seen = {0};
	struct kube_call *call;

	scene = scene_fresh();
	SCENE_BEGIN(&scene, steps);
	assert_int_equal(
		kube_patch(scene.client, "/api/v1/nodes/n", patch, "71", scene_done, &seen, &call),
		0);
	scene_wait(&scene, &seen.is_done, 30);
	assert_int_equal(seen.outcome, 0);
	assert_non_null(strstr(server_request(&scene.server, 0),
		"Content-Type: application/merge-patch+json\r\n"));
	assert_non_null(strstr(server_request(&scene.server, 0),
		"{\"metadata\":{\"annotations\":{\"a\":\"b\"},\"resourceVersion\":\"71\"}}"));
	/* the caller's own is as it was */
	assert_null(json_object_get(json_object_get(patch, "metadata"), "resourceVersion"));
	json_decref(patch);
	seen_clear(&seen);
	scene_end(&scene);
}

static void *say_stop(void *context)
{
	assert_return_code(eventfd_write(*(int *)context, 1), 0);
	return NULL;
}

static void another_thread_can_cancel_everything(void **state)
{
	static const struct server_step steps[] = {
		{.expect = "GET", .status = 0, .end = SERVER_HANG}};
	int fd = eventfd(0, EFD_CLOEXEC);
	struct seen one = {0}, two = {0}, later = {0};
	struct kube_call *call;
	pthread_t thread;

	scene = scene_fresh();
	scene.settings.cancel_fd = fd;
	scene.settings.calls_per_s = 1;
	scene.settings.burst = 1;
	SCENE_BEGIN(&scene, steps);
	/* one is under way, the other waits for its turn */
	assert_int_equal(kube_get(scene.client, "/one", scene_done, &one, &call), 0);
	assert_int_equal(kube_get(scene.client, "/two", scene_done, &two, &call), 0);
	scene_wait_for_requests(&scene, 1);
	assert_false(one.is_done || two.is_done);
	pthread_create(&thread, NULL, say_stop, &fd);
	scene_wait(&scene, &one.is_done, 30);
	scene_wait(&scene, &two.is_done, 30);
	pthread_join(thread, NULL);
	assert_int_equal(one.outcome, KUBE_E_CANCELLED);
	assert_int_equal(two.outcome, KUBE_E_CANCELLED);
	assert_int_equal(kube_get(scene.client, "/later", scene_done, &later, &call), 0);
	scene_wait(&scene, &later.is_done, 30);
	assert_int_equal(later.outcome, KUBE_E_CANCELLED);
	scene_end(&scene);
	close(fd);
}

static void a_call_that_is_cancelled_says_nothing_more(void **state)
{
	static const struct server_step steps[] = {
		{.expect = "GET", .status = 0, .end = SERVER_HANG}};
	struct seen seen = {0};
	struct kube_call *call, *waiting;

	scene = scene_fresh();
	SCENE_BEGIN(&scene, steps);
	assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen, &call), 0);
	scene_wait_for_requests(&scene, 1);
	assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen, &waiting), 0);
	kube_cancel(waiting);
	kube_cancel(call);
	kube_cancel(NULL);
	scene_run(&scene, 100);
	assert_false(seen.is_done);
	scene_end(&scene);
}

static void write_token(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void a_token_that_is_refused_is_read_again(void **state)
{
	static const struct server_step steps[] = {
		{.expect = "GET", .status = 200, .body = "{}"},
		{.expect = "GET", .status = 401, .body = "{", .end = SERVER_CUT},
		{.expect = "GET", .status = 200, .body = "{}"},
		{.expect = "GET", .status = 401},
	};
	struct scratch *s = *state;
	struct seen seen = {0};
	struct kube_call *call;

	write_token(s->file, "old\n");
	scene = scene_fresh();
	scene.token_file = s->file;
	SCENE_BEGIN(&scene, steps);
	assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 30);
	write_token(s->file, "new\n");
	seen_clear(&seen);
	assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 30);
	assert_int_equal(seen.outcome, 0);
	assert_non_null(strstr(server_request(&scene.server, 1), "Authorization: Bearer old\r\n"));
	assert_non_null(strstr(server_request(&scene.server, 2), "Authorization: Bearer new\r\n"));
	/* the same once more: nothing to be tried */
	seen_clear(&seen);
	assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 30);
	assert_int_equal(seen.outcome, KUBE_E_DENIED);
	seen_clear(&seen);
	scene_end(&scene);
}

static void calls_keep_to_the_rate(void **state)
{
	static struct server_step steps[10];
	uint64_t began;
	struct seen seen[10] = {0};
	struct kube_call *call;

	for (size_t i = 0; i < 10; i++)
		steps[i] = (struct server_step){.expect = "GET", .status = 200, .body = "{}"};
	scene = scene_fresh();
	scene.settings.calls_per_s = 50;
	scene.settings.burst = 2;
	SCENE_BEGIN(&scene, steps);
	began = clock_now_ns();
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(kube_get(scene.client, "/api", scene_done, &seen[i], &call), 0);
	for (size_t i = 0; i < 10; i++) {
		scene_wait(&scene, &seen[i].is_done, 30);
		seen_clear(&seen[i]);
	}
	/* two at once, and eight in steps of 20 ms */
	assert_true(clock_now_ns() - began >= 8 * SECOND_NS / 50);
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_is_handed_over),
		cmocka_unit_test(a_zero_character_in_a_text_is_read),
		cmocka_unit_test(a_server_that_is_too_busy_is_asked_again_when_it_says),
		cmocka_unit_test(a_get_is_repeated_after_500_and_after_a_cut),
		cmocka_unit_test(a_create_whose_answer_is_lost_is_not_repeated),
		cmocka_unit_test(a_create_on_an_idle_connection_that_ends_is_not_sent_again),
		cmocka_unit_test(every_refusal_has_its_name),
		cmocka_unit_test(an_answer_that_is_too_large_is_not_read_to_its_end),
		cmocka_unit_test(a_deadline_ends_a_call),
		cmocka_unit_test(a_server_that_is_away_is_unreachable),
		cmocka_unit_test(a_patch_names_the_version_it_is_for),
		cmocka_unit_test(another_thread_can_cancel_everything),
		cmocka_unit_test(a_call_that_is_cancelled_says_nothing_more),
		SCRATCH_TEST(a_token_that_is_refused_is_read_again),
		cmocka_unit_test(calls_keep_to_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
