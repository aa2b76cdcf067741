/* SPDX-License-Identifier: Apache-2.0 */
/* What a container is granted, and the answer that the kubelet gets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/grant.h"
#include "tests/unit/cmocka_ready.h"

#define UUID0  "GPU-c694b1ba-0000-4000-8000-000000000000"
#define UUID1  "GPU-1f0ead19-0000-4000-8000-000000000001"
#define UID    "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c11"
#define UNIQUE "6ead0f30-affc-4ab6-937a-e6cb37978d76"

static struct inventory inventory = {.count = 2,
	.device = {{.index = 0, .uuid = UUID0, .name = "NVIDIA H200", .total_bytes = 150754820096},
		{.index = 1,
			.minor = 5,
			.uuid = UUID1,
			.name = "NVIDIA H200",
			.total_bytes = 150754820096}}};

static const struct grant_paths paths = {.library = "/usr/local/vgpu/libvgpu.so.1",
	.preload = "/usr/local/vgpu/ld.so.preload",
	.region_folder = "/usr/local/vgpu/containers/" UID "_a",
	.share_folder = "/usr/local/vgpu/shares/" UID "_a"};

static char *no_environment(const char *name)
{
	return NULL;
}

static struct config *config_of(const char *text, const char *arguments[])
{
	char *argv[16] = {(char *)"vgpu-device-plugin"};
	struct config_files files = {text, NULL, text ? strlen(text) : 0, 0};
	struct config *config = NULL;
	struct err err = ERR_NULL;
	struct flags flags;
	int argc = 1;

	while (arguments && arguments[argc - 1]) {
		argv[argc] = (char *)arguments[argc - 1];
		argc++;
	}
	if (flags_read(argc, argv, no_environment, &flags, &err))
		fail_msg("%s", err.text);
	flags.text[FLAG_hook_path] = "/usr/local";
	if (config_read(&flags, &files, &config, &err))
		fail_msg("%s", err.text);
	return config;
}

/* What a test has of the node and the container; the rest is as it mostly is. */
struct scene {
	const char *config; /* device-config.yaml; NULL: the defaults */
	const char *arguments[8];
	const char *assigned, *disable_control, *pod_uid, *container, *unique, *hook;
	size_t ids; /* that the kubelet chose; 0: as many as are assigned */
	int64_t priority;
	uint64_t unhealthy;
	bool has_priority, is_mig, has_no_turns;
	const struct grant_asked *asked;
};

struct made {
	struct config *config;
	struct grant_node node;
	struct grant grant;
};

static int plan(const struct scene *s, struct made *m, struct err *err)
{
	static char *const chosen[32] = {(char *)"x-0"};
	const struct grant_container container = {.pod_uid = s->pod_uid ? s->pod_uid : UID,
		.name = s->container ? s->container : "a",
		.priority = s->has_priority ? s->priority : GRANT_NOT_GIVEN,
		.disable_control = s->disable_control,
		.asked = s->asked};
	struct assignment a = ASSIGNMENT_NULL;
	int result;

	m->config = config_of(s->config, (const char **)s->arguments);
	if (s->hook)
		m->config->hook_path = s->hook;
	inventory.device[1].is_mig = s->is_mig;
	m->node = (struct grant_node){.config = m->config,
		.inventory = &inventory,
		.unhealthy = s->unhealthy,
		.has_turns = !s->has_no_turns};
	assert_int_equal(assignment_decode(s->assigned, &a, err), 0);
	result = grant_plan(&m->node, &container, &a.slots[0], chosen,
		s->ids ? s->ids : a.slots[0].count, s->unique ? s->unique : UNIQUE, &m->grant, err);
	assignment_deinit(&a);
	return result;
}

static V1beta1__ContainerAllocateResponse *answer_of(
	const struct scene *s, const struct grant_paths *prepared, struct made *m)
{
	V1beta1__ContainerAllocateResponse *answer = NULL;
	struct err err = ERR_NULL;

	if (plan(s, m, &err) || grant_answer(&m->node, &m->grant, prepared, &answer, &err))
		fail_msg("%s", err.text);
	return answer;
}

static void free_all(V1beta1__ContainerAllocateResponse *answer, struct made *m)
{
	if (answer)
		v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	config_free(m->config);
}

static const char *env_of(const V1beta1__ContainerAllocateResponse *answer, const char *name)
{
	for (size_t i = 0; i < answer->n_envs; i++)
		if (!strcmp(answer->envs[i]->key, name))
			return answer->envs[i]->value;
	return NULL;
}

static const V1beta1__Mount *mount_at(
	const V1beta1__ContainerAllocateResponse *answer, const char *at)
{
	for (size_t i = 0; i < answer->n_mounts; i++)
		if (!strcmp(answer->mounts[i]->container_path, at))
			return answer->mounts[i];
	return NULL;
}

static void mounts(const V1beta1__ContainerAllocateResponse *answer, const char *at,
	const char *from, bool is_read_only)
{
	const V1beta1__Mount *mount = mount_at(answer, at);

	if (!mount)
		fail_msg("nothing is mounted at %s", at);
	assert_string_equal(mount->host_path, from);
	assert_int_equal(mount->read_only, is_read_only);
}

#define SCENE(...) (&(const struct scene){__VA_ARGS__})
#define ONE	   UUID0 ",NVIDIA,3000,30:;"
#define TWO	   UUID0 ",NVIDIA,3000,30:" UUID1 ",NVIDIA,5000,50:;"

static void one_device_is_granted_as_it_was_assigned(void **state)
{
	struct made m;
	V1beta1__ContainerAllocateResponse *answer = answer_of(SCENE(.assigned = ONE), &paths, &m);

	assert_int_equal(answer->n_envs, 5);
	assert_string_equal(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "3000m");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT"), "30");
	assert_string_equal(env_of(answer, "NVIDIA_VISIBLE_DEVICES"), UUID0);
	assert_string_equal(env_of(answer, "LIBCUDA_LOG_LEVEL"), "1");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_MEMORY_SHARED_CACHE"),
		"/usr/local/vgpu/" UNIQUE ".cache");
	assert_int_equal(answer->n_mounts, 5);
	mounts(answer, "/usr/local/vgpu/libvgpu.so", "/usr/local/vgpu/libvgpu.so.1", true);
	mounts(answer, "/etc/ld.so.preload", "/usr/local/vgpu/ld.so.preload", true);
	mounts(answer, "/usr/local/vgpu", "/usr/local/vgpu/containers/" UID "_a", false);
	mounts(answer, "/tmp/vgpulock", "/tmp/vgpulock", false);
	mounts(answer, "/etc/vgpu", "/usr/local/vgpu/shares/" UID "_a", true);
	assert_string_equal(m.grant.folder, UID "_a");
	free_all(answer, &m);
}

/* The text of the share; its slice's name is what a record is called. */
static void shares(const struct scene *s, const char *expected)
{
	char text[SHARE_FILE_BYTES], whole[SHARE_FILE_BYTES];
	struct err err = ERR_NULL;
	struct made m;
	size_t length;

	if (plan(s, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(share_format(&m.grant.share, text, sizeof(text), &length), 0);
	snprintf(whole, sizeof(whole),
		"vgpu-share 1\nslice %s\nregion /usr/local/vgpu/" UNIQUE ".cache\n%send\n",
		m.grant.slice, expected);
	assert_string_equal(text, whole);
	assert_memory_equal(m.grant.slice, UID ".", sizeof(UID));
	free_all(NULL, &m);
}

#define TURNS	"turns /run/vgpu-turns\n"
#define MEMORY0 "device " UUID0 " memory 3145728000"

static void the_share_is_what_was_assigned(void **state)
{
	shares(SCENE(.assigned = ONE), TURNS MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = TWO), TURNS MEMORY0 " cores 30 cap 100\ndevice " UUID1
						     " memory 5242880000 cores 50 cap 100\n");
	shares(SCENE(.assigned = UUID0 ",NVIDIA,3000,0:;"), TURNS MEMORY0 "\n");
	shares(SCENE(.assigned = UUID0 ",NVIDIA,3000,100:;"), TURNS MEMORY0 " cores 100\n");
	/* nothing is lent where nobody can say what is free */
	shares(SCENE(.assigned = ONE, .has_no_turns = true), MEMORY0 " cores 30\n");
	shares(SCENE(.assigned = ONE, .config = "nvidia:\n  gpuCorePolicy: force\n"),
		TURNS MEMORY0 " cores 30\n");
	shares(SCENE(.assigned = ONE, .config = "nvidia:\n  gpuCorePolicy: disable\n"),
		TURNS MEMORY0 "\n");
	shares(SCENE(.assigned = ONE, .config = "nvidia:\n  disableCoreLimit: true\n"),
		TURNS MEMORY0 "\n");
	shares(SCENE(.assigned = ONE, .has_priority = true, .priority = 0),
		"turns /run/vgpu-turns\npriority 0\n" MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = ONE, .has_priority = true, .priority = 99),
		"turns /run/vgpu-turns\npriority 9\n" MEMORY0 " cores 30 cap 100\n");
	shares(SCENE(.assigned = ONE, .has_priority = true, .priority = -7),
		TURNS MEMORY0 " cores 30 cap 100\n");
}

static void limits_follow_devices_and_not_their_places(void **state)
{
	struct made m;
	V1beta1__ContainerAllocateResponse *answer = answer_of(
		SCENE(.assigned = UUID1 ",NVIDIA,5000,50:" UUID0 ",NVIDIA,3000,0:;"), &paths, &m);

	assert_string_equal(env_of(answer, "NVIDIA_VISIBLE_DEVICES"), UUID0 "," UUID1);
	assert_string_equal(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "3000m");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_1"), "5000m");
	/* a common limit would be one for the device that has none */
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT"), "0");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT_0"), "0");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT_1"), "50");
	free_all(answer, &m);
	answer = answer_of(
		SCENE(.assigned = UUID0 ",NVIDIA,3000,60:" UUID0 ",NVIDIA,3000,60:;"), &paths, &m);
	assert_string_equal(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"), "6000m");
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT"), "100");
	assert_null(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_1"));
	free_all(answer, &m);
	answer = answer_of(
		SCENE(.assigned = UUID0 ",NVIDIA,3000,60:" UUID0 ",NVIDIA,3000,0:;"), &paths, &m);
	assert_string_equal(env_of(answer, "CUDA_DEVICE_SM_LIMIT"), "0");
	free_all(answer, &m);
}

static void refused(const struct scene *s, const char *why)
{
	struct err err = ERR_NULL;
	struct made m;

	if (plan(s, &m, &err) != -EINVAL || !strstr(err.text, why))
		fail_msg("'%s' has no '%s'", err.text, why);
	free_all(NULL, &m);
}

static void what_cannot_have_been_meant_is_refused(void **state)
{
	char many[4096] = "";

	refused(SCENE(.assigned = ONE, .ids = 2), "device number not matched");
	refused(SCENE(.assigned = TWO, .ids = 1), "device number not matched");
	refused(SCENE(.assigned = ";"), "device number not matched");
	refused(SCENE(.assigned = UUID0 ",AMD,3000,30:;"), "of 'AMD', not of NVIDIA");
	refused(SCENE(.assigned = UUID0 ",nvidia,3000,30:;"), "of 'nvidia', not of NVIDIA");
	refused(SCENE(.assigned = "GPU-none,NVIDIA,3000,30:;"), "has no device GPU-none");
	refused(SCENE(.assigned = UUID0 "[1g.10gb-0],NVIDIA,3000,30:;"), "MIG parts only");
	refused(SCENE(.assigned = TWO, .is_mig = true), "MIG parts only");
	refused(SCENE(.assigned = TWO, .unhealthy = 2), UUID1 " is not healthy");
	refused(SCENE(.assigned = UUID0 ",NVIDIA,0,30:;"), "no limit");
	refused(SCENE(.assigned = UUID0 ",NVIDIA,3000,101:;"), "more than all of it");
	refused(SCENE(.assigned = ONE, .pod_uid = "../../etc"), "no UID");
	refused(SCENE(.assigned = ONE, .pod_uid = ""), "no UID");
	refused(SCENE(.assigned = ONE,
			.pod_uid = UID "-which-is-longer-than-any-uid-of-a-pod-can-be"),
		"no UID");
	refused(SCENE(.assigned = ONE, .container = "a/../b"), "no name of a container");
	refused(SCENE(.assigned = ONE, .container = ""), "no name of a container");
	refused(SCENE(.assigned = ONE, .unique = "../a"), "region's name");
	refused(SCENE(.assigned = ONE, .hook = "/usr/my folder"), "HOOK_PATH");
	memset(many, 'a', 300);
	refused(SCENE(.assigned = ONE, .hook = many), "HOOK_PATH");
}

static void never_more_is_granted_than_asked_for(void **state)
{
	static const struct grant_asked exact = {3000, -1, 30}, part = {-1, 50, -1},
					nothing = {-1, -1, -1}, no_cores = {3000, -1, 0};
	struct made m;
	struct err err = ERR_NULL;

	/* the card has 143,771 MiB */
	static const struct {
		const struct grant_asked *asked;
		const char *config, *assigned, *why;
	} cases[] = {
		{&exact, NULL, UUID0 ",NVIDIA,3000,30:;", NULL},
		{&exact, NULL, UUID0 ",NVIDIA,2000,20:;", NULL},
		{&exact, NULL, UUID0 ",NVIDIA,3001,30:;", "3001 MiB of device"},
		{&exact, NULL, UUID0 ",NVIDIA,3000,31:;", "31 percent of device"},
		{&exact, NULL, UUID0 ",NVIDIA,3000,0:;", "0: no limit"},
		{&exact, "nvidia:\n  memoryFactor: 2\n", UUID0 ",NVIDIA,6000,30:;", NULL},
		{&exact, "cantaloupe:\n  trustAssignments: true\n", UUID0 ",NVIDIA,9000,0:;", NULL},
		{&no_cores, NULL, UUID0 ",NVIDIA,3000,0:;", NULL},
		{&part, NULL, UUID0 ",NVIDIA,71885,0:;", NULL},
		{&part, NULL, UUID0 ",NVIDIA,71886,0:;", "asks for 71885"},
		{&part, "nvidia:\n  deviceMemoryScaling: 2\n", UUID0 ",NVIDIA,143771,0:;", NULL},
		{&nothing, NULL, UUID0 ",NVIDIA,143771,100:;", NULL},
		{&nothing, NULL, UUID0 ",NVIDIA,143772,100:;", "asks for 143771"},
		{&nothing, "nvidia:\n  defaultMemory: 500\n  defaultCores: 10\n",
			UUID0 ",NVIDIA,500,10:;", NULL},
		{&nothing, "nvidia:\n  defaultMemory: 500\n  defaultCores: 10\n",
			UUID0 ",NVIDIA,501,10:;", "asks for 500"},
		{&nothing, "nvidia:\n  defaultCores: 10\n", UUID0 ",NVIDIA,500,0:;", "asks for 10"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct scene *s = SCENE(.assigned = cases[i].assigned,
			.asked = cases[i].asked, .config = cases[i].config);

		if (cases[i].why) {
			refused(s, cases[i].why);
			continue;
		}
		if (plan(s, &m, &err))
			fail_msg("%zu: %s", i, err.text);
		config_free(m.config);
	}
}

static void the_filtered_are_refused(void **state)
{
	struct made m;
	struct err err = ERR_NULL;
	int64_t index = 1;

	assert_int_equal(plan(SCENE(.assigned = ONE), &m, &err), 0);
	m.config->filtered.indexes = malloc(sizeof(index));
	*m.config->filtered.indexes = 0;
	m.config->filtered.index_count = 1;
	{
		const struct grant_container container = {
			.pod_uid = UID, .name = "a", .priority = GRANT_NOT_GIVEN};
		struct assignment a = ASSIGNMENT_NULL;
		char *ids[] = {(char *)"x-0"};

		assert_int_equal(assignment_decode(ONE, &a, &err), 0);
		assert_int_equal(grant_plan(&m.node, &container, &a.slots[0], ids, 1, UNIQUE,
					 &m.grant, &err),
			-EINVAL);
		assert_non_null(strstr(err.text, "filterdevices"));
		assignment_deinit(&a);
	}
	free_all(NULL, &m);
}

static void slices_of_a_pod_have_names_of_their_own(void **state)
{
	struct made a, b;
	struct err err = ERR_NULL;

	assert_int_equal(plan(SCENE(.assigned = ONE), &a, &err), 0);
	assert_int_equal(plan(SCENE(.assigned = ONE, .container = "b"), &b, &err), 0);
	assert_string_not_equal(a.grant.slice, b.grant.slice);
	free_all(NULL, &a);
	free_all(NULL, &b);
}

static void the_library_is_left_out_only_where_that_may_be(void **state)
{
	static const struct {
		const char *value;
		bool is_honoured, has_library;
	} cases[] = {{NULL, true, true}, {"", true, true}, {"true", true, false},
		{"1", true, false}, {"T", true, false}, {"yes", true, true}, {"0", true, true},
		{"tRUE", true, true}, {"true", false, true}, {"1", false, true}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made m;
		V1beta1__ContainerAllocateResponse *answer = answer_of(
			SCENE(.assigned = ONE, .disable_control = cases[i].value,
				.config = cases[i].is_honoured
						  ? NULL
						  : "cantaloupe:\n  honourDisableControl: false\n"),
			&paths, &m);

		assert_int_equal(
			mount_at(answer, "/etc/ld.so.preload") != NULL, cases[i].has_library);
		assert_non_null(env_of(answer, "CUDA_DEVICE_MEMORY_LIMIT_0"));
		assert_non_null(mount_at(answer, "/etc/vgpu"));
		free_all(answer, &m);
	}
}

static void what_was_made_ready_is_mounted(void **state)
{
	struct grant_paths all = paths;
	char record[256];
	struct made m;
	V1beta1__ContainerAllocateResponse *answer;

	all.region_file = "/usr/local/vgpu/containers/" UID "_a/" UNIQUE ".cache";
	all.lock_folder = "/tmp/vgpulock";
	all.turns_folder = "/run/cantaloupe/turns";
	all.records[1] = "/run/cantaloupe/turns/r1";
	all.license = "/usr/local/vgpu/license";
	answer = answer_of(SCENE(.assigned = TWO), &all, &m);
	mounts(answer, "/usr/local/vgpu", all.region_folder, true);
	mounts(answer, "/usr/local/vgpu/" UNIQUE ".cache", all.region_file, false);
	mounts(answer, "/tmp/vgpulock", "/tmp/vgpulock", true);
	mounts(answer, "/run/vgpu-turns", all.turns_folder, true);
	snprintf(record, sizeof(record), "/run/vgpu-turns/" UUID1 "/%s", m.grant.slice);
	mounts(answer, record, all.records[1], false);
	mounts(answer, "/tmp/license", all.license, true);
	assert_null(mount_at(answer, "/usr/bin/vgpuvalidator"));
	assert_int_equal(answer->n_mounts, 9);
	free_all(answer, &m);
}

/* A runtime makes a folder in the place of a file that is not there, and there would be no limit. */
static void what_is_missing_refuses_the_answer(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct grant_paths some = paths;
		const char **each[] = {
			&some.library, &some.preload, &some.region_folder, &some.share_folder};
		V1beta1__ContainerAllocateResponse *answer = NULL;
		struct err err = ERR_NULL;
		struct made m;

		*each[i] = i & 1 ? "" : NULL;
		assert_int_equal(plan(SCENE(.assigned = ONE), &m, &err), 0);
		assert_int_equal(grant_answer(&m.node, &m.grant, &some, &answer, &err), -EINVAL);
		assert_non_null(strstr(err.text, "is not there"));
		free_all(NULL, &m);
	}
}

static void environment_says_what_the_configuration_says(void **state)
{
	struct made m;
	V1beta1__ContainerAllocateResponse *answer = answer_of(
		SCENE(.assigned = ONE,
			.config = "nvidia:\n  deviceMemoryScaling: 1.5\n  disableCoreLimit: true\n"
				  "  libCudaLogLevel: \"\"\n"),
		&paths, &m);

	assert_string_equal(env_of(answer, "CUDA_OVERSUBSCRIBE"), "true");
	assert_string_equal(env_of(answer, "GPU_CORE_UTILIZATION_POLICY"), "disable");
	assert_null(env_of(answer, "LIBCUDA_LOG_LEVEL"));
	free_all(answer, &m);
}

static void volume_mounts_name_devices_by_files(void **state)
{
	static const unsigned channels[] = {0, 7};
	struct grant_paths some = paths;
	struct made m;
	V1beta1__ContainerAllocateResponse *answer;

	some.imex_channels = channels;
	some.imex_channel_count = 2;
	answer = answer_of(SCENE(.assigned = TWO,
				   .arguments = {"--device-list-strategy=envvar,volume-mounts"}),
		&some, &m);
	assert_string_equal(
		env_of(answer, "NVIDIA_VISIBLE_DEVICES"), "/var/run/nvidia-container-devices");
	assert_string_equal(env_of(answer, "NVIDIA_IMEX_CHANNELS"), "0,7");
	mounts(answer, "/var/run/nvidia-container-devices/" UUID1, "/dev/null", false);
	mounts(answer, "/var/run/nvidia-container-devices/imex/7", "/dev/null", false);
	free_all(answer, &m);
}

#define CDI "k8s.device-plugin.nvidia.com/"

static void cdi_names_devices_and_nothing_else(void **state)
{
	static const unsigned channels[] = {3};
	struct grant_paths some = paths;
	struct made m;
	V1beta1__ContainerAllocateResponse *answer;

	some.imex_channels = channels;
	some.imex_channel_count = 1;
	answer = answer_of(
		SCENE(.assigned = TWO,
			.arguments = {"--device-list-strategy=cdi-annotations,cdi-cri",
				"--device-id-strategy=index", "--gds-enabled", "--mofed-enabled",
				"--pass-device-specs", "--gdrcopy-enabled"}),
		&some, &m);
	assert_null(env_of(answer, "NVIDIA_VISIBLE_DEVICES"));
	assert_null(env_of(answer, "NVIDIA_GDS"));
	assert_int_equal(answer->n_devices, 0);
	assert_int_equal(answer->n_annotations, 1);
	assert_string_equal(answer->annotations[0]->key, "cdi.k8s.io/nvidia-device-plugin_" UNIQUE);
	assert_string_equal(answer->annotations[0]->value,
		CDI "gpu=0," CDI "gpu=1," CDI "imex-channel=3," CDI "gdrcopy=all," CDI
		    "gds=all," CDI "mofed=all");
	assert_int_equal(answer->n_cdi_devices, 6);
	assert_string_equal(answer->cdi_devices[2]->name, CDI "imex-channel=3");
	free_all(answer, &m);
}

static void device_files_are_named_as_the_host_has_them(void **state)
{
	static const char *const control[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
	struct grant_paths some = paths;
	struct made m;
	V1beta1__ContainerAllocateResponse *answer;

	some.control_files = control;
	some.control_file_count = 2;
	answer = answer_of(
		SCENE(.assigned = UUID1 ",NVIDIA,1,1:;",
			.arguments = {"--pass-device-specs", "--nvidia-driver-root=/run/driver"}),
		&some, &m);
	assert_int_equal(answer->n_devices, 3);
	assert_string_equal(answer->devices[0]->container_path, "/dev/nvidiactl");
	assert_string_equal(answer->devices[0]->host_path, "/run/driver/dev/nvidiactl");
	assert_string_equal(answer->devices[2]->container_path, "/dev/nvidia5");
	assert_string_equal(answer->devices[2]->permissions, "rw");
	free_all(answer, &m);
}

/* Parts of one card have its file once, and each its own two. */
static void instances_are_named_and_nothing_else_is_said(void **state)
{
	const char *arguments[] = {"--device-list-strategy=envvar,cdi-cri",
		"--device-id-strategy=index", "--pass-device-specs", NULL};
	struct config *config = config_of(NULL, arguments);
	struct config_devices *cut = &config->of_mode[CONFIG_MIG];
	const struct grant_node node = {.config = config, .inventory = &inventory};
	const struct grant_paths none = {.library = NULL};
	struct assignment a = ASSIGNMENT_NULL;
	struct grant grant;
	struct err err = ERR_NULL;
	V1beta1__ContainerAllocateResponse *answer;

	cut->indexes = calloc(1, sizeof(*cut->indexes));
	*cut->indexes = 1;
	cut->index_count = 1;
	assert_int_equal(assignment_decode(UUID1 ",NVIDIA,1,1:" UUID1 ",NVIDIA,1,1:;" UUID1
						 ",NVIDIA,1,1:" UUID0 ",NVIDIA,1,1:;" UUID0
						 ",NVIDIA,1,1:" UUID1 ",NVIDIA,1,1:;",
				 &a, &err),
		0);
	assert_true(grant_is_of_parts(&node, &a.slots[0]));
	assert_int_equal(grant_plan_parts(&node, "a", &a.slots[0], 1, &grant, &err), -EINVAL);
	assert_non_null(strstr(err.text, "device number not matched"));
	assert_int_equal(grant_plan_parts(&node, "a", &a.slots[1], 2, &grant, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is whole, and others of container a are in parts"));
	assert_false(grant_is_of_parts(&node, &a.slots[2]));
	assert_int_equal(grant_plan_parts(&node, "a", &a.slots[0], 2, &grant, &err), 0);
	grant.devices[0].part = (struct grant_part){"MIG-a", {12, 13}};
	grant.devices[1].part = (struct grant_part){"MIG-b", {-1, -1}};
	assert_int_equal(grant_answer(&node, &grant, &none, &answer, &err), 0);
	assert_int_equal(answer->n_envs, 1);
	assert_string_equal(env_of(answer, "NVIDIA_VISIBLE_DEVICES"), "MIG-a,MIG-b");
	assert_int_equal(answer->n_mounts, 0);
	assert_int_equal(answer->n_cdi_devices, 2);
	assert_string_equal(answer->cdi_devices[1]->name, CDI "gpu=MIG-b");
	assert_int_equal(answer->n_devices, 3);
	assert_string_equal(answer->devices[0]->container_path, "/dev/nvidia5");
	assert_string_equal(answer->devices[2]->container_path, "/dev/nvidia-caps/nvidia-cap13");
	v1beta1__container_allocate_response__free_unpacked(answer, NULL);
	assignment_deinit(&a);
	config_free(config);
}

static void the_device_of_an_id_is_before_its_number(void **state)
{
	static const struct {
		const char *id;
		size_t length;
	} ids[] = {{UUID0 "-0", sizeof(UUID0) - 1}, {UUID0 "-12", sizeof(UUID0) - 1},
		{UUID0 "::3", sizeof(UUID0) - 1}, {UUID0, sizeof(UUID0) - 1},
		{UUID0 "-x", sizeof(UUID0) + 1}, {UUID0 "-", sizeof(UUID0)}, {"", 0}, {"a-0", 3}};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_int_equal(grant_id_device(ids[i].id), ids[i].length);
}

static void each_draw_is_another_uuid(void **state)
{
	char a[GRANT_UNIQUE_BYTES], b[GRANT_UNIQUE_BYTES];

	grant_draw_unique(a);
	grant_draw_unique(b);
	assert_int_equal(strlen(a), 36);
	assert_string_not_equal(a, b);
	assert_int_equal(a[14], '4');
	assert_true(strchr("89ab", a[19]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_device_is_granted_as_it_was_assigned),
		cmocka_unit_test(the_share_is_what_was_assigned),
		cmocka_unit_test(limits_follow_devices_and_not_their_places),
		cmocka_unit_test(what_cannot_have_been_meant_is_refused),
		cmocka_unit_test(never_more_is_granted_than_asked_for),
		cmocka_unit_test(the_filtered_are_refused),
		cmocka_unit_test(slices_of_a_pod_have_names_of_their_own),
		cmocka_unit_test(the_library_is_left_out_only_where_that_may_be),
		cmocka_unit_test(what_was_made_ready_is_mounted),
		cmocka_unit_test(what_is_missing_refuses_the_answer),
		cmocka_unit_test(environment_says_what_the_configuration_says),
		cmocka_unit_test(volume_mounts_name_devices_by_files),
		cmocka_unit_test(cdi_names_devices_and_nothing_else),
		cmocka_unit_test(device_files_are_named_as_the_host_has_them),
		cmocka_unit_test(instances_are_named_and_nothing_else_is_said),
		cmocka_unit_test(the_device_of_an_id_is_before_its_number),
		cmocka_unit_test(each_draw_is_another_uuid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
