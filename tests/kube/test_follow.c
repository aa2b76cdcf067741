/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collection that is followed while its server breaks off, forgets, and says what is no JSON: what was told
 * is written down.
 */
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kube/follow.h"
#include "tests/kube/scene.h"

/* The log of callbacks: "[" begin, "]" complete, "+name@version", "-name@version", "!" trouble. */
struct told {
	char text[2048];
	struct kube_follow *follow;
	bool stops_at_object; /* the callback ends it */
	bool stops_at_last;   /* the same with the last word */
	unsigned silence_s;
	bool is_over; /* the text ends with the last word */
	const char *last;
	enum kube_outcome outcome;
};

static struct scene scene;

static void tell(struct told *told, const char *text)
{
	size_t length = strlen(told->text);

	snprintf(told->text + length, sizeof(told->text) - length, "%s", text);
	if (told->last && strstr(told->text, told->last))
		told->is_over = true;
}

static void begin(void *context)
{
	tell(context, "[");
}

static void complete(void *context)
{
	tell(context, "]");
}

static void trouble(void *context, enum kube_outcome outcome, const char *words)
{
	struct told *told = context;

	told->outcome = outcome;
	tell(told, "!");
}

static void object(void *context, bool is_present, const json_t *object)
{
	struct told *told = context;
	const json_t *metadata = json_object_get(object, "metadata");
	char text[128];

	snprintf(text, sizeof(text), "%c%s@%s ", is_present ? '+' : '-',
		json_string_value(json_object_get(metadata, "name")),
		json_string_value(json_object_get(metadata, "resourceVersion")));
	tell(told, text);
	if (told->stops_at_object || (told->stops_at_last && told->is_over))
		kube_follow_stop(told->follow);
}

static const struct kube_follow_events events = {begin, object, complete, trouble};

#define OBJECT(name, version) \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define PAGE(version, next, items)                                                \
	"{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next \
	"\"},\"items\":[" items "]}"
#define LIST "GET /api/v1/pods?limit=2 "
#define WATCH(version) \
	"GET "         \
	"/api/v1/"     \
	"pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=480&resourceVersion=" version " "
#define GONE                                                                                  \
	"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too " \
	"old\"}}\n"

static const struct server_step one_page = {
	.expect = LIST, .status = 200, .body = PAGE("10", "", OBJECT("a", "7"))};

static struct server_step stream(const char *expect, const char *body, enum server_end end)
{
	return (struct server_step){
		.expect = expect, .status = 200, .body = body, .is_stream = true, .end = end};
}

static void start(struct told *told)
{
	struct kube_follow_request request = {
		.path = "/api/v1/pods", .page_objects = 2, .silence_s = told->silence_s};

	assert_int_equal(
		kube_follow_start(scene.client, &request, &events, told, &told->follow), 0);
}

/* Follows until the last word is told, and a moment longer, in which nothing may come. */
static void follow_to(const struct server_step *steps, size_t count, const char *expected)
{
	struct told told = {.last = expected};

	scene = scene_fresh();
	scene_begin(&scene, steps, count);
	start(&told);
	for (uint64_t until = clock_now_ns() + 30 * SECOND_NS;
		!told.is_over && clock_now_ns() < until;)
		assert_int_equal(loop_run(scene.loop, until), 0);
	scene_wait_for_requests(&scene, count);
	assert_string_equal(told.text, expected);
	assert_in_range(
		kube_follow_heard_ns(told.follow), clock_now_ns() - 30 * SECOND_NS, clock_now_ns());
	kube_follow_stop(told.follow);
	scene_end(&scene);
}

#define FOLLOW_TO(expected, ...)                                               \
	do {                                                                   \
		const struct server_step steps_[] = {__VA_ARGS__};             \
		follow_to(steps_, sizeof(steps_) / sizeof(*steps_), expected); \
	} while (0)

static void a_list_comes_in_pages_and_changes_behind_it(void **state)
{
	FOLLOW_TO("[+a@7 +b@8 +c@9 ]+b@11 -a@12 ",
		{.expect = LIST,
			.status = 200,
			.body = PAGE("10", "t/=", OBJECT("a", "7") "," OBJECT("b", "8"))},
		{.expect = "GET /api/v1/pods?limit=2&continue=t%2F%3D ",
			.status = 200,
			.body = PAGE("10", "", OBJECT("c", "9"))},
		stream(WATCH("10"), EVENT("MODIFIED", "b", "11") EVENT("DELETED", "a", "12"),
			SERVER_HANG));
}

static void a_collection_may_be_empty(void **state)
{
	FOLLOW_TO("[]+a@11 ",
		{.expect = LIST,
			.status = 200,
			.body = "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":null}"},
		stream(WATCH("10"), EVENT("ADDED", "a", "11"), SERVER_HANG));
}

static void a_watch_goes_on_where_it_was(void **state)
{
	/* it ends, is cut, is answered with 500, ends without a word, is forbidden for a while */
	FOLLOW_TO("[+a@7 ]+b@11 !!!+c@21 ", one_page,
		stream(WATCH("10"), EVENT("ADDED", "b", "11"), SERVER_WHOLE),
		stream(WATCH("11"), EVENT("BOOKMARK", "", "20"), SERVER_CUT),
		{.expect = WATCH("20"), .status = 500}, stream(WATCH("20"), "", SERVER_WHOLE),
		{.expect = WATCH("20"), .status = 403},
		stream(WATCH("20"), EVENT("ADDED", "c", "21"), SERVER_HANG));
}

static void half_a_line_is_not_told_and_comes_again(void **state)
{
	FOLLOW_TO("[+a@7 ]+b@11 !+c@12 ", one_page,
		stream(WATCH("10"),
			EVENT("ADDED", "b", "11") "{\"type\":\"ADDED\",\"object\":{\"metad",
			SERVER_CUT),
		stream(WATCH("11"), EVENT("ADDED", "c", "12"), SERVER_HANG));
	/* the same where the answer ends as it should */
	FOLLOW_TO("[+a@7 ]+b@11 +c@12 ", one_page,
		stream(WATCH("10"),
			EVENT("ADDED", "b", "11") "{\"type\":\"ADDED\",\"object\":{\"metad",
			SERVER_WHOLE),
		stream(WATCH("11"), EVENT("ADDED", "c", "12"), SERVER_HANG));
}

/* The server does not close, neither before its first event nor after it: what happened meanwhile is told to the next watch. */
static void a_watch_that_falls_silent_is_begun_anew(void **state)
{
	struct server_step steps[] = {one_page, stream(WATCH("10"), "", SERVER_HANG),
		stream(WATCH("10"), EVENT("ADDED", "b", "11"), SERVER_HANG),
		stream(WATCH("11"), EVENT("DELETED", "a", "12"), SERVER_HANG)};
	struct told told = {.last = "-a@12 ", .stops_at_last = true, .silence_s = 1};

	scene = scene_fresh();
	SCENE_BEGIN(&scene, steps);
	start(&told);
	scene_wait(&scene, &told.is_over, 60);
	assert_string_equal(told.text, "[+a@7 ]!+b@11 !-a@12 ");
	scene_end(&scene);
}

static void what_is_no_event_is_trouble(void **state)
{
	FOLLOW_TO("[+a@7 ]+b@11 !!!+c@12 ", one_page,
		stream(WATCH("10"), EVENT("ADDED", "b", "11") "no json\n", SERVER_HANG),
		stream(WATCH("11"), "{\"type\":\"ADDED\"}\n", SERVER_HANG),
		stream(WATCH("11"), "{\"type\":\"ADDED\",\"object\":{}}\n", SERVER_HANG),
		stream(WATCH("11"), EVENT("ADDED", "c", "12"), SERVER_HANG));
}

static void a_place_that_is_forgotten_means_a_new_list(void **state)
{
	FOLLOW_TO("[+a@7 ][+c@30 ][+d@40 ]", one_page, {.expect = WATCH("10"), .status = 410},
		{.expect = LIST, .status = 200, .body = PAGE("31", "", OBJECT("c", "30"))},
		stream(WATCH("31"), GONE, SERVER_WHOLE),
		{.expect = LIST, .status = 200, .body = PAGE("41", "", OBJECT("d", "40"))},
		stream(WATCH("41"), "", SERVER_HANG));
}

static void another_error_in_a_watch_is_trouble(void **state)
{
	FOLLOW_TO("[+a@7 ]!+c@12 ", one_page,
		stream(WATCH("10"),
			"{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd\"}}\n",
			SERVER_WHOLE),
		stream(WATCH("10"), EVENT("ADDED", "c", "12"), SERVER_HANG));
}

static void a_page_that_is_forgotten_means_a_new_list(void **state)
{
	FOLLOW_TO("[+a@7 ![+c@9 ]",
		{.expect = LIST, .status = 200, .body = PAGE("10", "x", OBJECT("a", "7"))},
		{.expect = "GET /api/v1/pods?limit=2&continue=x ", .status = 410},
		{.expect = LIST, .status = 200, .body = PAGE("20", "", OBJECT("c", "9"))},
		stream(WATCH("20"), "", SERVER_HANG));
}

static void it_can_be_stopped_from_its_own_callback(void **state)
{
	struct server_step steps[] = {{.expect = LIST, .status = 200, .body = PAGE("10", "", "")},
		stream(WATCH("10"), EVENT("ADDED", "b", "11") EVENT("ADDED", "c", "12"),
			SERVER_HANG)};
	struct told told = {.stops_at_object = true};

	scene = scene_fresh();
	SCENE_BEGIN(&scene, steps);
	start(&told);
	scene_wait_for_requests(&scene, 2);
	assert_string_equal(told.text, "[]+b@11 ");
	scene_end(&scene);
	/* and in a list */
	told = (struct told){.stops_at_object = true};
	scene = scene_fresh();
	scene_begin(&scene, &one_page, 1);
	start(&told);
	scene_wait_for_requests(&scene, 1);
	assert_string_equal(told.text, "[+a@7 ");
	scene_end(&scene);
}

static void a_client_that_is_cancelled_follows_no_more(void **state)
{
	struct server_step steps[] = {one_page, stream(WATCH("10"), "", SERVER_HANG)};
	struct told told = {.last = "!"};
	int fd = eventfd(0, EFD_CLOEXEC);

	scene = scene_fresh();
	scene.settings.cancel_fd = fd;
	SCENE_BEGIN(&scene, steps);
	start(&told);
	scene_wait_for_requests(&scene, 2);
	assert_return_code(eventfd_write(fd, 1), 0);
	scene_wait(&scene, &told.is_over, 30);
	scene_run(&scene, 300);
	assert_string_equal(told.text, "[+a@7 ]!");
	assert_int_equal(told.outcome, KUBE_E_CANCELLED);
	kube_follow_stop(told.follow);
	scene_end(&scene);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_comes_in_pages_and_changes_behind_it),
		cmocka_unit_test(a_collection_may_be_empty),
		cmocka_unit_test(a_watch_goes_on_where_it_was),
		cmocka_unit_test(half_a_line_is_not_told_and_comes_again),
		cmocka_unit_test(a_watch_that_falls_silent_is_begun_anew),
		cmocka_unit_test(what_is_no_event_is_trouble),
		cmocka_unit_test(a_place_that_is_forgotten_means_a_new_list),
		cmocka_unit_test(another_error_in_a_watch_is_trouble),
		cmocka_unit_test(a_page_that_is_forgotten_means_a_new_list),
		cmocka_unit_test(it_can_be_stopped_from_its_own_callback),
		cmocka_unit_test(a_client_that_is_cancelled_follows_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
