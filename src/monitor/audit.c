/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's figures against what containers were granted.
 *
 * A finding needs two audits in a row, because figures of one moment come from several: a process that is just about to end, a quota
 * that is just being changed. Compute time is compared over WINDOW audits, since a single sample of the driver's says little.
 */
#include "monitor/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exposition.h"
#include "base/file.h"
#include "base/log.h"
#include "monitor/owner.h"
#include "policy/share.h"

#define LOG_TOPIC      LOG_NET
#define WINDOW	       4
#define IN_A_ROW       2
#define QUIET_NS       (300ull * 1000000000)
#define SLACK_BYTES    (UINT64_C(16) << 20) /* what the driver rounds up for a container's processes */
#define SLACK_PERMILLE 100		    /* its samples are as coarse */
#define MIB	       (UINT64_C(1) << 20)

struct suspect {
	struct process_identity process;
	struct owner owner;
	uint64_t amount;
};

/* A container on a device; without a device, a container in the kubelet's record. */
struct entry {
	struct entry *next;
	char uid[64], name[SCAN_NAME_BYTES], device[UUID_TEXT_BYTES];
	bool is_seen;			     /* in this audit */
	uint64_t bytes, quota_bytes;	     /* of the driver's; 0: there is none */
	uint64_t excused_bytes;		     /* held since before the quota became less */
	unsigned busy_percent, cap_permille; /* 0: there is none */
	uint64_t last_quota_bytes;
	bool was_judged;
	unsigned untracked;
	unsigned window[WINDOW], window_count;
	struct suspect suspects[AUDIT_KINDS]; /* who has the most of it */
	struct {
		unsigned in_a_row;
		uint64_t total, told_ns;
		bool is_told;
	} found[AUDIT_KINDS];
};

struct audit {
	const struct audit_settings *settings;
	struct entry *first;
	uint64_t ended[AUDIT_KINDS];
	uint64_t since_us[INVENTORY_MAX]; /* the driver's last time stamp, by the device's index */
};

/* A process on a device; it may be in several of the driver's lists. */
struct row {
	pid_t pid;
	uint64_t bytes;
	unsigned busy_percent;
};

struct rows {
	struct row at[3 * NVML_ROWS];
	unsigned count;
};

static const char *const kind_names[] = {"untracked", "memory", "compute", "books"};

int audit_new(const struct audit_settings *settings, struct audit **ret_audit)
{
	struct audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return -ENOMEM;
	audit->settings = settings;
	*ret_audit = audit;
	return 0;
}

void audit_free(struct audit *audit)
{
	for (struct entry *e = audit ? audit->first : NULL, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	free(audit);
}

bool audit_parse_kinds(const char *text, unsigned *ret_kinds)
{
	unsigned kinds = 0;

	while (*text) {
		size_t length = strcspn(text, ","), kind = 0;

		while (kind < AUDIT_BOOKS && (strlen(kind_names[kind]) != length ||
						     strncmp(kind_names[kind], text, length) != 0))
			kind++;
		if (kind == AUDIT_BOOKS)
			return false;
		kinds |= 1u << kind;
		text += length;
		text += *text == ',';
	}
	*ret_kinds = kinds;
	return true;
}

static struct row *take_row(struct rows *rows, pid_t pid)
{
	for (unsigned i = 0; i < rows->count; i++)
		if (rows->at[i].pid == pid)
			return &rows->at[i];
	rows->at[rows->count] = (struct row){.pid = pid};
	return &rows->at[rows->count++];
}

static void list_rows(const struct nvml_driver *nvml, nvmlDevice_t handle, struct rows *ret_rows)
{
	static const enum process_list lists[] = {LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS};
	struct process_rows its;

	ret_rows->count = 0;
	for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
		if (nvml_list_processes(nvml, handle, lists[k], &its))
			continue;
		for (unsigned i = 0; i < its.count; i++) {
			struct row *row = take_row(ret_rows, (pid_t)its.at[i].pid);
			uint64_t bytes = its.at[i].usedGpuMemory;

			/* all bits are set where the driver does not tell */
			if (bytes != UINT64_MAX && bytes > row->bytes)
				row->bytes = bytes;
		}
	}
}

static void add_busy(struct audit *audit, const struct nvml_driver *nvml, nvmlDevice_t handle,
	unsigned index, struct rows *rows)
{
	struct busy_rows its;

	if (nvml_read_busy(nvml, handle, audit->since_us[index], &its))
		return;
	for (unsigned i = 0; i < its.count; i++) {
		if (its.at[i].timeStamp > audit->since_us[index])
			audit->since_us[index] = its.at[i].timeStamp;
		for (unsigned k = 0; k < rows->count; k++)
			if (rows->at[k].pid == (pid_t)its.at[i].pid &&
				its.at[i].smUtil > rows->at[k].busy_percent)
				rows->at[k].busy_percent =
					its.at[i].smUtil > 100 ? 100 : its.at[i].smUtil;
	}
}

static struct scan_container *find_container(
	const struct scan *scan, const struct pod_names *pods, const struct owner *owner)
{
	const struct pod_name *pod = pod_names_find(pods, owner->uid);
	const struct pod_container *its = pod ? pod_find_container(pod, owner->mark) : NULL;

	return its ? scan_find(scan, owner->uid, its->name) : NULL;
}

static struct entry *take_entry(
	struct audit *audit, const char *uid, const char *name, const char *device)
{
	struct entry *e = audit->first;

	while (e && (strcmp(e->uid, uid) != 0 || strcmp(e->name, name) != 0 ||
			    strcmp(e->device, device) != 0))
		e = e->next;
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return NULL;
		snprintf(e->uid, sizeof(e->uid), "%s", uid);
		snprintf(e->name, sizeof(e->name), "%s", name);
		snprintf(e->device, sizeof(e->device), "%s", device);
		e->next = audit->first;
		audit->first = e;
	}
	return e;
}

/* Whether there is a share, which HAMi's containers have not: theirs is the limit in the region. */
static bool read_limits(const struct scan_container *c, struct entry *e)
{
	const struct share_device *device;

	e->quota_bytes = 0;
	e->cap_permille = 0;
	for (unsigned i = 0; i < c->figures.device_count; i++)
		if (!strcmp(c->figures.devices[i].uuid, e->device))
			e->quota_bytes = c->figures.devices[i].limit_bytes;
	if (!c->share)
		return false;
	e->quota_bytes = share_memory_bytes(c->share, e->device);
	/* a device that was not granted at all */
	if (e->quota_bytes == 0)
		e->quota_bytes = 1;
	else if (e->quota_bytes == SHARE_UNLIMITED)
		e->quota_bytes = 0;
	device = share_device(c->share, e->device);
	/* of clients of MPS the cap is a part of the multiprocessors, which samples of time do not show */
	if (device && !*c->share->mps && device->compute.cap_permille < SHARE_WHOLE_PERMILLE)
		e->cap_permille = device->compute.cap_permille;
	return true;
}

static bool is_member(const struct scan_container *c, pid_t pid)
{
	for (unsigned i = 0; c->view && i < c->view->process_count; i++)
		if (c->view->processes[i].pid == pid)
			return true;
	return false;
}

static void suspect(
	struct entry *e, enum audit_kind kind, const struct suspect *who, uint64_t amount)
{
	if (e->suspects[kind].process.pid && e->suspects[kind].amount >= amount)
		return;
	e->suspects[kind] = *who;
	e->suspects[kind].amount = amount;
}

static void add_process(struct audit *audit, struct scan_container *c, const struct row *row,
	const char *device, const struct inventory *devices, const struct suspect *who)
{
	struct entry *e = take_entry(audit, c->uid, c->name, device);
	struct process_identity again;
	struct owner owner;

	if (!e)
		return;
	if (!e->is_seen) {
		e->is_seen = true;
		e->bytes = e->busy_percent = e->untracked = 0;
		memset(e->suspects, 0, sizeof(e->suspects));
	}
	e->bytes += row->bytes;
	e->busy_percent += row->busy_percent;
	suspect(e, AUDIT_MEMORY, who, row->bytes);
	suspect(e, AUDIT_COMPUTE, who, row->busy_percent);
	if (!read_limits(c, e))
		return;
	if (!c->view && c->fd >= 0)
		scan_read_view(c, devices);
	/* one that ended meanwhile has left its slice */
	if (is_member(c, row->pid) || owner_read(row->pid, &again, &owner) ||
		again.start_time != who->process.start_time)
		return;
	e->untracked++;
	suspect(e, AUDIT_UNTRACKED, who, row->bytes);
}

static void look_at_device(struct audit *audit, struct scan *scan, const struct inventory *devices,
	unsigned at, const struct nvml_driver *nvml, const struct pod_names *pods)
{
	_cleanup_free_ struct rows *rows = malloc(sizeof(*rows));
	nvmlDevice_t handle;

	if (!rows || nvml_find_device(nvml, devices->device[at].uuid, &handle))
		return;
	list_rows(nvml, handle, rows);
	if (!rows->count)
		return; /* and nobody is busy */
	add_busy(audit, nvml, handle, at, rows);
	for (unsigned i = 0; i < rows->count; i++) {
		struct suspect who = {.amount = 0};
		struct scan_container *c = owner_read(rows->at[i].pid, &who.process, &who.owner)
						   ? NULL
						   : find_container(scan, pods, &who.owner);

		if (c)
			add_process(
				audit, c, &rows->at[i], devices->device[at].uuid, devices, &who);
	}
}

/* The average over the window; 0 while it is not full. */
static unsigned busy_permille(struct entry *e)
{
	unsigned sum = 0;

	memmove(&e->window[1], &e->window[0], sizeof(e->window) - sizeof(e->window[0]));
	e->window[0] = e->is_seen ? e->busy_percent * 10 : 0;
	if (!e->cap_permille)
		e->window_count = 0;
	else if (e->window_count < WINDOW)
		e->window_count++;
	for (unsigned i = 0; i < WINDOW; i++)
		sum += e->window[i];
	return e->window_count == WINDOW ? sum / WINDOW : 0;
}

/* books: what is wrong in them. */
static void describe(
	const struct entry *e, enum audit_kind kind, const char *books, char *text, size_t size)
{
	if (kind == AUDIT_BOOKS)
		snprintf(text, size, "%s", books);
	else if (kind == AUDIT_UNTRACKED)
		snprintf(text, size,
			"container %.63s has a process on %s that is not part of its slice: its "
			"limits do not hold it",
			e->name, e->device);
	else if (kind == AUDIT_MEMORY)
		snprintf(text, size,
			"container %.63s holds more memory of %s than its quota of %llu MiB, by "
			"the driver's figure",
			e->name, e->device, (unsigned long long)(e->quota_bytes / MIB));
	else
		snprintf(text, size,
			"container %.63s keeps %s busy beyond its cap of %u %%, by the driver's "
			"samples",
			e->name, e->device, e->cap_permille / 10);
}

static bool end(struct audit *audit, const struct entry *e, enum audit_kind kind)
{
	const struct suspect *who = &e->suspects[kind];
	int r;

	if (!(audit->settings->ended >> kind & 1) || !who->process.pid)
		return false;
	r = owner_end(&who->process, &who->owner);
	if (r == -ESRCH)
		return false; /* it has ended by itself, or is another one */
	if (r) {
		log_warn("a process cannot be ended", STR("container", e->name),
			STR("why", strerror(-r)));
		return false;
	}
	log_warn("a process was ended", STR("container", e->name), STR("pod", e->uid),
		U64("pid", (uint64_t)who->process.pid), STR("for", kind_names[kind]));
	audit->ended[kind]++;
	return true;
}

static void judge(struct audit *audit, struct entry *e, enum audit_kind kind, bool is_wrong,
	const struct pod_name *pod, const char *books)
{
	struct audit_finding finding = {
		.kind = kind, .pod = pod, .container = e->name, .device_uuid = e->device};
	uint64_t now_ns = clock_now_ns();
	char sentence[512];

	e->found[kind].in_a_row = is_wrong ? e->found[kind].in_a_row + 1 : 0;
	if (e->found[kind].in_a_row < IN_A_ROW)
		return;
	if (e->found[kind].in_a_row == IN_A_ROW)
		e->found[kind].total++;
	describe(e, kind, books, sentence, sizeof(sentence));
	finding.sentence = sentence;
	finding.is_ended = end(audit, e, kind);
	if (e->found[kind].is_told && now_ns - e->found[kind].told_ns < QUIET_NS)
		return;
	e->found[kind].is_told = true;
	e->found[kind].told_ns = now_ns;
	audit->settings->found(audit->settings->context, &finding);
}

/* What the pod's allocation says of it, which is what others are not given; UINT64_MAX: it does not say. */
static uint64_t allocated_bytes(const struct entry *e, const struct pod_name *pod)
{
	for (size_t i = 0; pod && i < pod->container_count; i++) {
		const struct assignment_slot *slot = pod->containers[i].slot;

		if (!slot || strcmp(pod->containers[i].name, e->name) != 0)
			continue;
		for (size_t k = 0; k < slot->count; k++)
			if (!strcmp(slot->devices[k].uuid, e->device))
				return (uint64_t)slot->devices[k].memory_mib * MIB;
	}
	return UINT64_MAX;
}

/* A slice that was made smaller may keep what it has, as long as nobody else is given it, and no more. */
static bool has_too_much(struct entry *e, const struct pod_name *pod)
{
	uint64_t most, allocated = allocated_bytes(e, pod);

	if (e->quota_bytes && (!e->last_quota_bytes || e->quota_bytes < e->last_quota_bytes) &&
		e->was_judged)
		e->excused_bytes = e->bytes;
	else if (e->bytes < e->excused_bytes)
		e->excused_bytes = e->bytes;
	if (allocated < e->excused_bytes)
		e->excused_bytes = allocated;
	e->was_judged = true;
	e->last_quota_bytes = e->quota_bytes;
	most = e->quota_bytes > e->excused_bytes ? e->quota_bytes : e->excused_bytes;
	return e->quota_bytes && e->bytes > most + SLACK_BYTES;
}

static void judge_all(struct audit *audit, struct entry *e, const struct pod_name *pod)
{
	unsigned busy = busy_permille(e);

	if (!e->is_seen)
		e->bytes = e->busy_percent = e->untracked = 0;
	judge(audit, e, AUDIT_UNTRACKED, e->untracked > 0, pod, NULL);
	judge(audit, e, AUDIT_MEMORY, has_too_much(e, pod), pod, NULL);
	judge(audit, e, AUDIT_COMPUTE, e->cap_permille && busy > e->cap_permille + SLACK_PERMILLE,
		pod, NULL);
}

/* Of those that are on a device, or in the kubelet's record. */
static void see_none(struct audit *audit, bool is_on_device)
{
	for (struct entry *e = audit->first; e; e = e->next)
		if ((*e->device != '\0') == is_on_device)
			e->is_seen = false;
}

void audit_look(struct audit *audit, struct scan *scan, const struct inventory *devices,
	const struct nvml_driver *nvml, const struct pod_names *pods)
{
	see_none(audit, true);
	for (unsigned i = 0; i < devices->count; i++)
		look_at_device(audit, scan, devices, i, nvml, pods);
	for (struct entry **at = &audit->first, *e; (e = *at);) {
		const struct pod_name *pod = pod_names_find(pods, e->uid);

		if (!*e->device) {
			at = &e->next;
		} else if (pod && scan_find(scan, e->uid, e->name)) {
			judge_all(audit, e, pod);
			at = &e->next;
		} else {
			*at = e->next;
			free(e);
		}
	}
}

void audit_books_begin(struct audit *audit)
{
	see_none(audit, false);
}

void audit_books(struct audit *audit, const struct pod_name *pod, const char *container,
	const char *sentence)
{
	struct entry *e = take_entry(audit, pod->uid, container, "");

	if (!e)
		return;
	e->is_seen = true;
	judge(audit, e, AUDIT_BOOKS, sentence, pod, sentence);
}

void audit_books_end(struct audit *audit)
{
	for (struct entry **at = &audit->first, *e; (e = *at);) {
		if (*e->device || e->is_seen) {
			at = &e->next;
		} else {
			*at = e->next;
			free(e);
		}
	}
}

typedef bool entry_fn(const struct entry *e, enum audit_kind kind, double *ret_value);

static bool driver_bytes(const struct entry *e, enum audit_kind kind, double *ret_value)
{
	*ret_value = (double)e->bytes;
	return true;
}

static bool driver_busy(const struct entry *e, enum audit_kind kind, double *ret_value)
{
	*ret_value = e->busy_percent / 100.0;
	return true;
}

static bool granted_bytes(const struct entry *e, enum audit_kind kind, double *ret_value)
{
	*ret_value = (double)e->quota_bytes;
	return e->quota_bytes != 0;
}

static bool is_violating(const struct entry *e, enum audit_kind kind, double *ret_value)
{
	*ret_value = e->found[kind].in_a_row >= IN_A_ROW;
	return true;
}

static bool violations(const struct entry *e, enum audit_kind kind, double *ret_value)
{
	*ret_value = (double)e->found[kind].total;
	return true;
}

#define METRIC EXPOSITION_FAMILY
#define LABELS EXPOSITION_LABELS
#include "monitor/audit.def"

static const struct {
	const struct exposition_family *family;
	entry_fn *value;
	unsigned kinds; /* 1: it has no kind */
} families[] = {
	{&driver_bytes_family, driver_bytes, 1},
	{&driver_busy_family, driver_busy, 1},
	{&granted_bytes_family, granted_bytes, 1},
	{&is_violating_family, is_violating, AUDIT_KINDS},
	{&violations_family, violations, AUDIT_KINDS},
};

static void write_entry(FILE *out, size_t family, const struct entry *e, const struct pod_name *pod)
{
	for (unsigned kind = 0; kind < families[family].kinds; kind++) {
		bool is_of_books = families[family].kinds > 1 && kind == AUDIT_BOOKS;
		double value;

		if (is_of_books == !*e->device &&
			families[family].value(e, (enum audit_kind)kind, &value))
			EXPOSITION_WRITE(out, families[family].family->name, value,
				{"namespace", pod->namespace}, {"pod", pod->name},
				{"container", e->name}, {"device_uuid", e->device},
				{"kind", families[family].kinds > 1 ? kind_names[kind] : ""});
	}
}

void audit_write(const struct audit *audit, const struct pod_names *pods, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		exposition_write_head(out, families[i].family);
		for (const struct entry *e = audit->first; e; e = e->next) {
			const struct pod_name *pod = pod_names_find(pods, e->uid);

			if (pod)
				write_entry(out, i, e, pod);
		}
	}
	exposition_write_head(out, &ended_family);
	for (unsigned kind = 0; kind < AUDIT_BOOKS; kind++)
		EXPOSITION_WRITE(out, ended_family.name, (double)audit->ended[kind],
			{"kind", kind_names[kind]});
}
