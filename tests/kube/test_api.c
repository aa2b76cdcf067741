/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client before a real API server, in a cluster of tests/cluster: CLUSTER_FOLDER names its files, and
 * CLUSTER its script, which stops and starts its programs. Skipped elsewhere.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kube/follow.h"
#include "tests/kube/scene.h"
#include "tests/unit/scratch.h"

#define CORE "/api/v1/namespaces/default"
#define MAPS CORE "/configmaps"

/* The label of all that the tests make, by which it is followed and deleted. */
#define OURS	"labelSelector=test%3Dkube"
#define OBJECTS 2000

/* Eight connections, and two ends of libcurl's own. */
#define SOCKETS 10

static struct scene scene;
static const char *folder, *script;

static void connect_as(struct kube_access *access)
{
	scene = scene_fresh();
	scene.settings.deadline_ns = 60 * SECOND_NS;
	scene.settings.attempt_ns = 30 * SECOND_NS;
	scene_connect(&scene, access);
}

static void read_access(struct kube_access *ret_access)
{
	struct err err = ERR_NULL;
	char path[300];

	snprintf(path, sizeof(path), "%s/admin.kubeconfig", folder);
	if (kube_access_read(path, ret_access, &err))
		fail_msg("%s", err.text);
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char command[600];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

/* Removes the objects of an earlier test. */
static void delete_ours(void)
{
	/* one call; without --raw kubectl makes one for each */
	shell("%s", "kubectl delete --raw '" MAPS "?" OURS "' >/dev/null");
}

static int setup(void **state)
{
	struct kube_access access;

	delete_ours();
	read_access(&access);
	connect_as(&access);
	kube_access_deinit(&access);
	return 0;
}

static int teardown(void **state)
{
	scene_disconnect(&scene);
	return 0;
}

static void restart_server(void)
{
	shell("\"$CLUSTER\" stop apiserver && \"$CLUSTER\" start apiserver");
}

/* Runs the loop until the call is at its end; its object goes with seen_clear(). */
static struct seen get(const char *path)
{
	struct seen seen = {0};
	struct kube_call *call;

	assert_int_equal(kube_get(scene.client, path, scene_done, &seen, &call), 0);
	scene_wait(&scene, &seen.is_done, 90);
	return seen;
}

static struct seen create(const char *path, json_t *object)
{
	struct seen seen = {0};
	struct kube_call *call;

	assert_non_null(object);
	assert_int_equal(kube_create(scene.client, path, object, scene_done, &seen, &call), 0);
	json_decref(object);
	scene_wait(&scene, &seen.is_done, 90);
	return seen;
}

static enum kube_outcome patch_value(const char *path, const char *value, const char *version)
{
	json_t *patch = json_pack("{s:{s:s}}", "data", "value", value);
	struct seen seen = {0};
	struct kube_call *call;

	assert_int_equal(
		kube_patch(scene.client, path, patch, version, scene_done, &seen, &call), 0);
	json_decref(patch);
	scene_wait(&scene, &seen.is_done, 90);
	json_decref(seen.body);
	return seen.outcome;
}

static json_t *map_of(const char *name)
{
	return json_pack("{s:{s:s,s:{s:s}},s:{s:s}}", "metadata", "name", name, "labels", "test",
		"kube", "data", "value", "new");
}

static void must(struct seen seen, enum kube_outcome outcome)
{
	if (seen.outcome != outcome)
		fail_msg("outcome %d, status %d: %s", seen.outcome, seen.status, seen.words);
	seen_clear(&seen);
}

static unsigned open_sockets(void)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;
	char target[64];

	while ((entry = readdir(fds))) {
		ssize_t length = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));

		count += length > 7 && !memcmp(target, "socket:", 7);
	}
	closedir(fds);
	return count;
}

/* The followed maps: how often each was reported, and which are present. */
struct model {
	unsigned lists, told[OBJECTS], troubles;
	bool is_present[OBJECTS], is_complete;
	unsigned present;
	bool has_all;
	unsigned all;
};

static void model_begin(void *context)
{
	struct model *model = context;

	model->lists++;
	model->is_complete = false;
	model->present = 0;
	memset(model->is_present, 0, sizeof(model->is_present));
}

static void model_object(void *context, bool is_present, const json_t *object)
{
	struct model *model = context;
	const char *name =
		json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
	unsigned i;

	assert_int_equal(sscanf(name, "map-%u", &i), 1);
	assert_true(i < OBJECTS);
	model->told[i]++;
	model->present += is_present - model->is_present[i];
	model->is_present[i] = is_present;
	model->has_all = model->is_complete && model->present == model->all;
}

static void model_complete(void *context)
{
	struct model *model = context;

	model->is_complete = true;
	model->has_all = model->present == model->all;
}

static void model_trouble(void *context, enum kube_outcome outcome, const char *words)
{
	struct model *model = context;

	model->troubles++;
}

static const struct kube_follow_events model_events = {
	model_begin, model_object, model_complete, model_trouble};

static struct kube_follow *follow(struct model *model, unsigned page_objects)
{
	struct kube_follow_request request = {
		.path = MAPS, .query = OURS, .page_objects = page_objects};
	struct kube_follow *started;

	assert_int_equal(
		kube_follow_start(scene.client, &request, &model_events, model, &started), 0);
	return started;
}

static void name_of(unsigned i, char name[32])
{
	snprintf(name, 32, "map-%u", i);
}

static void create_maps(unsigned from, unsigned count)
{
	struct seen *seen = calloc(count, sizeof(*seen));
	struct kube_call *call;

	for (unsigned i = 0; i < count; i++) {
		char name[32];
		json_t *map;

		name_of(from + i, name);
		map = map_of(name);
		assert_int_equal(
			kube_create(scene.client, MAPS, map, scene_done, &seen[i], &call), 0);
		json_decref(map);
	}
	for (unsigned i = 0; i < count; i++) {
		scene_wait(&scene, &seen[i].is_done, 90);
		must(seen[i], 0);
	}
	free(seen);
}

static void two_thousand_objects_come_in_pages_over_few_connections(void **state)
{
	static struct model model;
	struct kube_follow *followed;

	model = (struct model){.all = OBJECTS};
	create_maps(0, OBJECTS);
	assert_in_range(open_sockets(), 1, SOCKETS);
	followed = follow(&model, 300);
	scene_wait(&scene, &model.has_all, 30);
	assert_int_equal(model.lists, 1);
	for (unsigned i = 0; i < OBJECTS; i++)
		assert_int_equal(model.told[i], 1);
	assert_in_range(open_sockets(), 1, SOCKETS);
	/* and are told when they go */
	model.all = 0;
	delete_ours();
	scene_wait(&scene, &model.has_all, 60);
	assert_int_equal(model.lists, 1);
	kube_follow_stop(followed);
}

static void nothing_is_lost_while_the_server_restarts(void **state)
{
	static struct model model;
	struct kube_follow *followed;

	model = (struct model){.all = 0};
	followed = follow(&model, 300);
	scene_wait(&scene, &model.has_all, 30);
	for (unsigned round = 0; round < 2; round++) {
		create_maps(round * 100, 50);
		/* what these make is told by the server that follows, or is in its list */
		model.has_all = false;
		model.all = round * 100 + 100;
		create_maps(round * 100 + 50, 25);
		restart_server();
		create_maps(round * 100 + 75, 25);
		scene_wait(&scene, &model.has_all, 60);
	}
	/* once for each list at most, and once by the watch */
	for (unsigned i = 0; i < 200; i++)
		assert_in_range(model.told[i], 1, model.lists);
	fprintf(stderr, "%u lists, %u troubles\n", model.lists, model.troubles);
	kube_follow_stop(followed);
}

static void a_patch_at_an_old_version_is_a_conflict(void **state)
{
	struct seen seen = create(MAPS, map_of("map-0"));
	char version[64];

	snprintf(version, sizeof(version), "%s",
		json_string_value(json_object_get(
			json_object_get(seen.body, "metadata"), "resourceVersion")));
	must(seen, 0);
	assert_int_equal(patch_value(MAPS "/map-0", "one", version), 0);
	assert_int_equal(patch_value(MAPS "/map-0", "two", version), KUBE_E_CONFLICT);
	assert_int_equal(patch_value(MAPS "/map-0", "three", NULL), 0);
	seen = get(MAPS "/map-0");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(seen.body, "data"), "value")),
		"three");
	must(seen, 0);
	must(create(MAPS, map_of("map-0")), KUBE_E_EXISTS);
	assert_int_equal(patch_value(MAPS "/away", "x", NULL), KUBE_E_NOT_FOUND);
	must(get(MAPS "/away"), KUBE_E_NOT_FOUND);
	must(create(MAPS, map_of("Not A Name")), KUBE_E_INVALID);
	must(get("/api/v1/pods?continue=nonsense"), KUBE_E_INVALID);
}

static void events_and_bindings_are_created(void **state)
{
	json_t *pod = json_pack("{s:{s:s},s:{s:s,s:[{s:s,s:s}]}}", "metadata", "name", "unbound",
		"spec", "schedulerName", "nobody", "containers", "name", "c", "image",
		"local.test/none");
	json_t *binding = json_pack("{s:{s:s},s:{s:s,s:s}}", "metadata", "name", "unbound",
		"target", "kind", "Node", "name", "nowhere");
	json_t *event =
		json_pack("{s:{s:s},s:{s:s,s:s,s:s},s:s,s:s,s:s}", "metadata", "generateName",
			"unbound.", "involvedObject", "kind", "Pod", "name", "unbound", "namespace",
			"default", "reason", "Tested", "message", "it was tried", "type", "Normal");
	struct seen seen;

	must(create(CORE "/pods", pod), 0);
	must(create(CORE "/events", event), 0);
	must(create(CORE "/pods/unbound/binding", json_incref(binding)), 0);
	must(create(CORE "/pods/unbound/binding", binding), KUBE_E_CONFLICT);
	seen = get(CORE "/pods/unbound");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(seen.body, "spec"), "nodeName")),
		"nowhere");
	must(seen, 0);
	shell("kubectl delete pod/unbound --force --grace-period=0 >/dev/null 2>&1");
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void connect_by_token(const char *file)
{
	struct kube_access access;

	read_access(&access);
	free(access.certificate_file);
	free(access.key_file);
	access.certificate_file = access.key_file = NULL;
	access.token_file = strdup(file);
	connect_as(&access);
	kube_access_deinit(&access);
}

static void a_token_is_replaced_under_a_running_client(void **state)
{
	static struct model model;
	struct scratch *s = *state;
	struct kube_follow *followed;
	char tokens[300];

	delete_ours();
	write_file(s->file, "first-token\n");
	connect_by_token(s->file);
	model = (struct model){.all = 0};
	followed = follow(&model, 0);
	scene_wait(&scene, &model.has_all, 30);
	/* the server forgets the first, and the file has the second */
	snprintf(tokens, sizeof(tokens), "%s/tokens.csv", folder);
	write_file(tokens, "second-token,rotating,1001,\"system:masters\"\n");
	write_file(s->file, "second-token\n");
	model.has_all = false;
	model.all = 1;
	restart_server();
	/* a get is tried again where the connection's end is seen only now; a create would be KUBE_E_UNCERTAIN */
	must(get(MAPS), 0);
	must(create(MAPS, map_of("map-1")), 0);
	scene_wait(&scene, &model.has_all, 30);
	kube_follow_stop(followed);
	/* one that it does not know */
	write_file(s->file, "third-token\n");
	scene_disconnect(&scene);
	connect_by_token(s->file);
	must(get(MAPS), KUBE_E_DENIED);
	scene_disconnect(&scene);
	write_file(tokens, "first-token,rotating,1001,\"system:masters\"\n"
			   "second-token,rotating,1001,\"system:masters\"\n");
}

static void a_pod_is_its_service_account(void **state)
{
	struct scratch *s = *state;
	struct kube_access access;
	struct err err = ERR_NULL;
	struct seen seen;

	shell("kubectl create token default > %s/token && cp %s/keys/ca.crt %s/", s->folder, folder,
		s->folder);
	/* the service's own address, by which pods have it */
	assert_int_equal(kube_access_in_pod(s->folder, "203.0.113.1", "443", &access, &err), 0);
	connect_as(&access);
	kube_access_deinit(&access);
	seen = get(MAPS);
	assert_non_null(strstr(seen.words, "system:serviceaccount:default:default"));
	must(seen, KUBE_E_DENIED);
	scene_disconnect(&scene);
}

static void a_server_that_cannot_prove_itself_is_told_nothing(void **state)
{
	struct kube_access access;
	struct seen seen;

	read_access(&access);
	free(access.authority_file);
	access.authority_file = NULL;
	scene = scene_fresh();
	scene.settings.deadline_ns = SECOND_NS;
	scene_connect(&scene, &access);
	kube_access_deinit(&access);
	seen = get("/version");
	assert_int_equal(seen.status, 0);
	must(seen, KUBE_E_UNREACHABLE);
	scene_disconnect(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			two_thousand_objects_come_in_pages_over_few_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_is_lost_while_the_server_restarts, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_patch_at_an_old_version_is_a_conflict, setup, teardown),
		cmocka_unit_test_setup_teardown(events_and_bindings_are_created, setup, teardown),
		SCRATCH_TEST(a_token_is_replaced_under_a_running_client),
		SCRATCH_TEST(a_pod_is_its_service_account),
		cmocka_unit_test(a_server_that_cannot_prove_itself_is_told_nothing),
	};

	folder = getenv("CLUSTER_FOLDER");
	script = getenv("CLUSTER");
	if (!folder || !script) {
		fprintf(stderr, "no cluster here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
