/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter [NODES [PODS_PER_GPU]]: what the scheduler's decision for one pod costs on a cluster of so many nodes (1,000) of
 * eight devices, each with so many pods (10): one line of median and 99th percentile, of time and of the processor's time, which
 * others on the machine lengthen less, and of memory; and two of eight joined devices of 16, on one node and on 100. No API server is
 * asked.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "scheduler/filter.h"

#define DEVICES	  8
#define QUESTIONS 2000
#define JOINED	  16

/* Of the question on many nodes with joined devices. */
#define JOINED_NODES	 100
#define JOINED_QUESTIONS 500

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void uuid_of(unsigned node, unsigned device, char *ret_uuid, size_t size)
{
	snprintf(ret_uuid, size, "GPU-%08x-0000-4000-8000-%012x", node, device);
}

static void add_node(struct books *books, unsigned node)
{
	char name[32], text[DEVICES * 256], uuid[64];
	struct registry_texts texts = {.devices = text};
	struct err err = ERR_NULL;
	size_t used = 0;

	snprintf(name, sizeof(name), "node-%u", node);
	for (unsigned i = 0; i < DEVICES; i++) {
		uuid_of(node, i, uuid, sizeof(uuid));
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s{\"id\":\"%s\",\"index\":%u,\"count\":20,\"devmem\":81559,\"devcore\":"
			"100,\"type\":"
			"\"NVIDIA H100 80GB "
			"HBM3\",\"numa\":%u,\"mode\":\"hami-core\",\"health\":true}%s",
			i ? "," : "[", uuid, i, i / 4, i == DEVICES - 1 ? "]" : "");
	}
	if (books_set_node(books, name, &texts, &err))
		abort();
}

static void add_pod(struct books *books, unsigned node, unsigned device, unsigned pod)
{
	char uid[64], name[32], uuid[64];
	struct books_charge charge = {uuid, {1, 1000 + rand() % 5000, rand() % 8}};
	struct books_pod one = {.uid = uid,
		.namespace = "default",
		.node = name,
		.charges = &charge,
		.charge_count = 1};

	uuid_of(node, device, uuid, sizeof(uuid));
	snprintf(name, sizeof(name), "node-%u", node);
	snprintf(uid, sizeof(uid), "%08x-%04x-%04x", node, device, pod);
	if (books_set_pod(books, &one))
		abort();
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static const struct demand_rules rules = {.count = "nvidia.com/gpu",
	.memory = "nvidia.com/gpumem",
	.percentage = "nvidia.com/gpumem-percentage",
	.cores = "nvidia.com/gpucores",
	.node_policy = "binpack",
	.device_policy = "spread"};

/* Eight of a node's 16 devices, as they are joined best; each time they are joined otherwise. */
static void measure_topology(void)
{
	static uint64_t used[QUESTIONS];
	static struct fit_result result;
	struct fit_device devices[JOINED];
	uint32_t joins[JOINED * JOINED] = {0};
	const struct fit_request request = {
		.kind = FIT_APP, .devices = JOINED / 2, .percentage = 100, .cores = 100};
	const struct fit_node node = {.devices = devices, .device_count = JOINED, .joins = joins};
	const struct fit_pod pod = {.requests = &request,
		.request_count = 1,
		.policy = rank_policy_of("topology-aware", false),
		.weights = rank_weights_default,
		.room = {INT64_MAX, INT64_MAX}};

	for (unsigned i = 0; i < JOINED; i++)
		devices[i] = (struct fit_device){.uuid = "GPU",
			.model = "NVIDIA H100 80GB HBM3",
			.mode = "hami-core",
			.is_healthy = true,
			.all = {1, 81559, 100}};
	for (unsigned i = 0; i < QUESTIONS; i++) {
		uint64_t before;

		for (unsigned a = 0; a < JOINED; a++)
			for (unsigned b = 0; b < a; b++)
				joins[a * JOINED + b] = joins[b * JOINED + a] =
					10u << (unsigned)rand() % 5;
		before = now_ns(CLOCK_THREAD_CPUTIME_ID);
		if (!fit(&node, &pod, &result))
			abort();
		used[i] = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	}
	qsort(used, QUESTIONS, sizeof(*used), compare);
	printf("8 of 16 joined devices: p50 %.3f ms, p99 %.3f ms of a processor\n",
		(double)used[QUESTIONS / 2] / 1e6, (double)used[QUESTIONS * 99 / 100] / 1e6);
}

/* A node of 16 devices without pods, which are joined at random. */
static void add_joined_node(struct books *books, const char *name, unsigned node)
{
	json_t *devices = json_array(), *scores = json_array();
	char uuid[64], *texts[2];
	struct err err = ERR_NULL;

	for (unsigned a = 0; a < JOINED; a++) {
		json_t *to = json_object();

		for (unsigned b = 0; b < JOINED; b++) {
			uuid_of(node, b, uuid, sizeof(uuid));
			if (a != b)
				json_object_set_new(to, uuid, json_integer(10 << rand() % 5));
		}
		uuid_of(node, a, uuid, sizeof(uuid));
		json_array_append_new(scores, json_pack("{s:s, s:o}", "uuid", uuid, "score", to));
		json_array_append_new(devices,
			json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:b}", "id", uuid, "index",
				(int)a, "count", 20, "devmem", 81559, "devcore", 100, "type",
				"NVIDIA H100 80GB HBM3", "mode", "hami-core", "health", 1));
	}
	texts[0] = json_dumps(devices, JSON_COMPACT);
	texts[1] = json_dumps(scores, JSON_COMPACT);
	if (books_set_node(books, name,
		    &(struct registry_texts){.devices = texts[0], .scores = texts[1]}, &err))
		abort();
	free(texts[0]);
	free(texts[1]);
	json_decref(devices);
	json_decref(scores);
}

/* The same asked of 100 such nodes, of which one changes before each question. */
static void measure_joined_nodes(void)
{
	static uint64_t used[JOINED_QUESTIONS];
	static char names[JOINED_NODES][16];
	const char *list[JOINED_NODES];
	struct demand_rules joined = rules;
	struct filter_answer answer;
	struct demand demand;
	struct books *books;
	struct err err = ERR_NULL;
	json_t *pod = json_pack("{s:{s:s, s:s, s:s}, s:{s:[{s:s, s:{s:{s:s}}}]}}", "metadata",
		"name", "p", "namespace", "default", "uid", "p", "spec", "containers", "name", "c",
		"resources", "limits", rules.count, "8");

	joined.device_policy = "topology-aware";
	if (books_new(&books) || demand_read(&joined, pod, &demand, &err))
		abort();
	for (unsigned n = 0; n < JOINED_NODES; n++) {
		snprintf(names[n], sizeof(names[n]), "node-%u", n);
		list[n] = names[n];
		add_joined_node(books, names[n], n);
	}
	for (unsigned i = 0; i < JOINED_QUESTIONS; i++) {
		unsigned n = (unsigned)rand() % JOINED_NODES;
		uint64_t before;

		add_joined_node(books, names[n], n);
		before = now_ns(CLOCK_THREAD_CPUTIME_ID);
		if (filter(books, &(struct filter_request){&demand, list, JOINED_NODES}, &answer) ||
			answer.chosen == FILTER_NONE)
			abort();
		used[i] = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		filter_deinit(&answer);
	}
	qsort(used, JOINED_QUESTIONS, sizeof(*used), compare);
	printf("8 of 16 joined devices, %u nodes: p50 %.3f ms, p99 %.3f ms of a processor\n",
		JOINED_NODES, (double)used[JOINED_QUESTIONS / 2] / 1e6,
		(double)used[JOINED_QUESTIONS * 99 / 100] / 1e6);
	demand_deinit(&demand);
	json_decref(pod);
	books_free(books);
}

int main(int argc, char **argv)
{
	unsigned nodes = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	unsigned pods = argc > 2 ? (unsigned)atoi(argv[2]) : 10;
	const char **names = calloc(nodes, sizeof(*names));
	static uint64_t took[QUESTIONS], used[QUESTIONS];
	struct filter_answer answer;
	struct demand demand;
	struct books *books;
	struct err err = ERR_NULL;
	struct rusage usage;
	uint64_t began = now_ns(CLOCK_MONOTONIC), ready;
	json_t *pod = json_pack("{s:{s:s, s:s, s:s}, s:{s:[{s:s, s:{s:{s:s, s:s, s:s}}}]}}",
		"metadata", "name", "p", "namespace", "default", "uid", "p", "spec", "containers",
		"name", "c", "resources", "limits", rules.count, "1", rules.memory, "2000",
		rules.cores, "10");

	if (!nodes || !names || books_new(&books) || demand_read(&rules, pod, &demand, &err))
		return 1;
	for (unsigned n = 0; n < nodes; n++) {
		char name[32];

		add_node(books, n);
		snprintf(name, sizeof(name), "node-%u", n);
		names[n] = strdup(name);
		for (unsigned i = 0; i < DEVICES * pods; i++)
			add_pod(books, n, i % DEVICES, i);
	}
	ready = now_ns(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < QUESTIONS; i++) {
		uint64_t before = now_ns(CLOCK_MONOTONIC);
		uint64_t used_before = now_ns(CLOCK_THREAD_CPUTIME_ID);

		if (filter(books, &(struct filter_request){&demand, names, nodes}, &answer) ||
			answer.chosen == FILTER_NONE)
			return 1;
		/* as in a cluster, one node has changed since */
		add_pod(books, (unsigned)rand() % nodes, 0, 1000000 + i % 100);
		filter_deinit(&answer);
		used[i] = now_ns(CLOCK_THREAD_CPUTIME_ID) - used_before;
		took[i] = now_ns(CLOCK_MONOTONIC) - before;
	}
	qsort(took, QUESTIONS, sizeof(*took), compare);
	qsort(used, QUESTIONS, sizeof(*used), compare);
	getrusage(RUSAGE_SELF, &usage);
	printf("%u nodes, %u pods: filter p50 %.3f ms, p99 %.3f ms; of a processor %.3f and %.3f "
	       "ms; built in %.0f ms; %ld MiB\n",
		nodes, nodes * DEVICES * pods, (double)took[QUESTIONS / 2] / 1e6,
		(double)took[QUESTIONS * 99 / 100] / 1e6, (double)used[QUESTIONS / 2] / 1e6,
		(double)used[QUESTIONS * 99 / 100] / 1e6, (double)(ready - began) / 1e6,
		usage.ru_maxrss / 1024);
	measure_topology();
	measure_joined_nodes();
	demand_deinit(&demand);
	json_decref(pod);
	books_free(books);
	return 0;
}
