/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's record against the slices on this node. */
#include "monitor/books.h"

#include <string.h>
#include <unistd.h>

#include "base/exposition.h"

#define SENTENCE_BYTES 384
#define NUMBER_DIGITS  6 /* of an ID's last part; a UUID's has 12 */

/* "<UUID>-<i>", as device plugins make it that give slices. */
static bool is_slice(const char *id)
{
	const char *number = strrchr(id, '-');
	size_t digits = number ? strspn(number + 1, "0123456789") : 0;

	return digits && digits <= NUMBER_DIGITS && !number[1 + digits];
}

static unsigned count_slices(const struct books *books, const V1__ContainerResources *row)
{
	unsigned count = 0;

	for (size_t i = 0; i < row->n_devices; i++)
		for (size_t k = 0; k < row->devices[i]->n_device_ids; k++)
			count += !strcmp(row->devices[i]->resource_name, books->resource) &&
				 is_slice(row->devices[i]->device_ids[k]);
	return count;
}

/* HAMi's plugin makes the folder, and the tenant's library the region. */
static bool has_folder(
	const struct scan_place *place, const struct pod_name *pod, const char *container)
{
	char path[SCAN_PATH_BYTES];

	return (size_t)snprintf(path, sizeof(path), "%s/containers/%s_%s", place->hook, pod->uid,
		       container) < sizeof(path) &&
	       !access(path, F_OK);
}

/* Of a device that is cut the hardware holds the limits, and HAMi's plugin makes no folder. */
static bool has_instance(const struct pod_name *pod, const struct pod_container *container)
{
	for (size_t i = 0; i < pod->instances.count; i++)
		if (pod->instances.at[i].container == (unsigned)(container - pod->containers))
			return true;
	return false;
}

/* The device of the share that the annotation does not assign; NULL: there is none. Instances have UUIDs of their own. */
static const char *find_foreign(const struct share *share, const struct assignment_slot *slot)
{
	for (unsigned i = 0; i < share->device_count; i++) {
		const char *uuid = share->devices[i].uuid;
		size_t k = 0;

		while (k < slot->count && strcmp(slot->devices[k].uuid, uuid) != 0)
			k++;
		if (k == slot->count && !strncmp(uuid, "GPU-", 4))
			return uuid;
	}
	return NULL;
}

struct container_facts {
	const struct pod_name *pod;
	const struct pod_container *container;
	const struct share *share; /* NULL: there is none */
	bool has_slice;
	unsigned given;
};

/* Whether something is wrong, and what. */
static bool find_wrong(const struct container_facts *f, char *text, size_t size)
{
	const struct assignment_slot *slot = f->container->slot;
	const char *name = f->container->name, *foreign;

	if (f->given && !f->has_slice)
		snprintf(text, size,
			"the kubelet gave container %.63s %u slices, and it has none on this node: "
			"no "
			"limits hold it",
			name, f->given);
	else if (f->share && f->share->device_count > f->given)
		snprintf(text, size,
			"container %.63s has a slice of %u devices, and the kubelet gave it %u",
			name, f->share->device_count, f->given);
	else if (f->given && f->pod->is_misassigned)
		snprintf(text, size,
			"the kubelet gave container %.63s %u slices, and what " ASSIGNMENT_ALLOCATED
			" assigns fits its pod's containers in no way",
			name, f->given);
	else if (slot && slot->count != f->given)
		snprintf(text, size,
			ASSIGNMENT_ALLOCATED " assigns %zu devices to container %.63s, and the "
					     "kubelet gave it %u",
			slot->count, name, f->given);
	else if (slot && f->share && (foreign = find_foreign(f->share, slot)))
		snprintf(text, size,
			"container %.63s has a slice of %.80s, which " ASSIGNMENT_ALLOCATED
			" does not assign to it",
			name, foreign);
	else
		return false;
	return true;
}

static const struct pod_container *find_container(const struct pod_name *pod, const char *name)
{
	for (size_t i = 0; i < pod->container_count; i++)
		if (!strcmp(pod->containers[i].name, name))
			return &pod->containers[i];
	return NULL;
}

static void compare(const struct books *books, const struct scan_place *place,
	const struct scan *scan, const struct pod_name *pod, const V1__ContainerResources *row,
	struct audit *audit)
{
	struct container_facts f = {.pod = pod,
		.container = find_container(pod, row->name),
		.given = count_slices(books, row)};
	const struct scan_container *c = scan_find(scan, pod->uid, row->name);
	char sentence[SENTENCE_BYTES];

	f.share = c ? c->share : NULL;
	/* what begins or ends is not settled */
	if (!f.container || !f.container->is_running || (!f.given && !f.share))
		return;
	f.has_slice = c || has_folder(place, pod, row->name) || has_instance(pod, f.container);
	audit_books(audit, pod, row->name,
		find_wrong(&f, sentence, sizeof(sentence)) ? sentence : NULL);
}

/* The kubelet may still have the one before of that name. */
static bool is_twice(const V1__ListPodResourcesResponse *answer, const V1__PodResources *row)
{
	unsigned count = 0;

	for (size_t i = 0; i < answer->n_pod_resources; i++)
		count += !strcmp(answer->pod_resources[i]->name, row->name) &&
			 !strcmp(answer->pod_resources[i]->namespace_, row->namespace_);
	return count > 1;
}

typedef void row_fn(void *context, const struct pod_name *pod, const V1__ContainerResources *row);

static void each_row(const struct books *books, row_fn *take, void *context)
{
	for (size_t i = 0; books->answer && i < books->answer->n_pod_resources; i++) {
		const V1__PodResources *row = books->answer->pod_resources[i];
		const struct pod_name *pod =
			is_twice(books->answer, row)
				? NULL
				: pod_names_find_named(books->pods, row->namespace_, row->name);

		for (size_t k = 0; pod && k < row->n_containers; k++)
			take(context, pod, row->containers[k]);
	}
}

struct comparing {
	const struct books *books;
	const struct scan_place *place;
	const struct scan *scan;
	struct audit *audit;
};

static void compare_row(
	void *context, const struct pod_name *pod, const V1__ContainerResources *row)
{
	const struct comparing *c = context;

	compare(c->books, c->place, c->scan, pod, row, c->audit);
}

void books_compare(const struct books *books, const struct scan_place *place,
	const struct scan *scan, struct audit *audit)
{
	struct comparing comparing = {books, place, scan, audit};

	audit_books_begin(audit);
	each_row(books, compare_row, &comparing);
	audit_books_end(audit);
}

#define METRIC EXPOSITION_FAMILY
#define LABELS EXPOSITION_LABELS
#include "monitor/books.def"

struct writing {
	const struct books *books;
	FILE *out;
};

static void write_row(void *context, const struct pod_name *pod, const V1__ContainerResources *row)
{
	const struct writing *w = context;
	unsigned given = count_slices(w->books, row);

	if (given)
		EXPOSITION_WRITE(w->out, given_family.name, given, {"namespace", pod->namespace},
			{"pod", pod->name}, {"container", row->name});
}

void books_write(const struct books *books, FILE *out)
{
	struct writing writing = {books, out};

	exposition_write_head(out, &given_family);
	each_row(books, write_row, &writing);
	exposition_write_head(out, &is_read_family);
	if (books->pods)
		exposition_write(out, is_read_family.name, NULL, 0, books->answer != NULL);
}
