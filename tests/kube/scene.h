/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a loop before a scripted server, or before any other. */
#pragma once

#include "base/clock.h"
#include "kube/client.h"
#include "net/loop.h"
#include "tests/kube/server.h"
#include "tests/unit/cmocka_ready.h"

#define SECOND_NS 1000000000ull

struct scene {
	struct server server;
	struct loop *loop;
	struct kube_client *client;
	struct kube_settings settings;
	const char *token_file;
};

/* The end of a call. */
struct seen {
	bool is_done;
	enum kube_outcome outcome;
	int status;
	unsigned attempts, count;
	json_t *body;
	char words[512];
};

/* Short pauses, no limit of the rate, deadlines of a few seconds. */
static inline struct scene scene_fresh(void)
{
	struct scene scene = {.settings = kube_settings_default};

	scene.settings.calls_per_s = 0;
	scene.settings.deadline_ns = 40 * SECOND_NS;
	scene.settings.attempt_ns = 20 * SECOND_NS;
	scene.settings.first_pause_ns = SECOND_NS / 50;
	scene.settings.most_pause_ns = SECOND_NS / 5;
	return scene;
}

static inline void scene_connect(struct scene *scene, const struct kube_access *access)
{
	struct err err = ERR_NULL;

	assert_int_equal(loop_new(&scene->loop), 0);
	if (kube_client_new(scene->loop, access, &scene->settings, &scene->client, &err))
		fail_msg("%s", err.text);
}

/* The settings and the token's file are set before. */
static inline void scene_begin(struct scene *scene, const struct server_step *steps, size_t count)
{
	struct kube_access access = KUBE_ACCESS_NULL;
	char server[64];

	server_start(&scene->server, steps, count);
	snprintf(server, sizeof(server), "http://127.0.0.1:%u", scene->server.port);
	access.server = server;
	access.token_file = (char *)scene->token_file;
	scene_connect(scene, &access);
}

static inline void scene_disconnect(struct scene *scene)
{
	kube_client_free(scene->client);
	loop_free(scene->loop);
}

static inline void scene_end(struct scene *scene)
{
	scene_disconnect(scene);
	server_stop(&scene->server);
}

/* Lets the loop run until the flag is set; fails the test after some seconds. */
static inline void scene_wait(struct scene *scene, const bool *flag, unsigned most_s)
{
	uint64_t until = clock_now_ns() + most_s * SECOND_NS;

	while (!*flag && clock_now_ns() < until)
		assert_int_equal(loop_run(scene->loop, until), 0);
	assert_true(*flag);
}

/* Lets the loop run for a time. */
static inline void scene_run(struct scene *scene, unsigned ms)
{
	uint64_t until = clock_now_ns() + ms * 1000000ull;

	while (clock_now_ns() < until)
		assert_int_equal(loop_run(scene->loop, until), 0);
}

/* Lets the loop run until so many requests have come, and a moment longer. */
static inline void scene_wait_for_requests(struct scene *scene, size_t count)
{
	uint64_t until = clock_now_ns() + 30 * SECOND_NS;

	while (server_count(&scene->server) < count && clock_now_ns() < until)
		scene_run(scene, 10);
	assert_int_equal(server_count(&scene->server), count);
	scene_run(scene, 50);
}

static inline void scene_done(void *context, const struct kube_result *result)
{
	struct seen *seen = context;

	seen->is_done = true;
	seen->count++;
	seen->outcome = result->outcome;
	seen->status = result->status;
	seen->attempts = result->attempts;
	json_decref(seen->body);
	seen->body = json_incref((json_t *)result->body);
	snprintf(seen->words, sizeof(seen->words), "%s", result->words);
}

static inline void seen_clear(struct seen *seen)
{
	json_decref(seen->body);
	*seen = (struct seen){0};
}

#define SCENE_BEGIN(scene, steps) scene_begin(scene, steps, sizeof(steps) / sizeof(*(steps)))
