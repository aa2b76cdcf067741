/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process may have.
 *
 * Share files are replaced or rewritten by their owner while we run. We look at their identity
 * (inode, size, time of change) every 50 ms at most, and always before we refuse memory; that costs
 * one system call a file and no thread. A reader in the same process never waits for a file: the
 * parsed shares are swapped under a lock that is held for the copy alone. A process that only looks
 * (NVML) never tells a fork from its parent, so the locks are such that a child may take over.
 */
#define LOG_TOPIC LOG_SHARE
#include "tenant/slice/quota.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/log.h"
#include "policy/grant.h"
#include "policy/share.h"
#include "region/region.h"
#include "tenant/slice/bound.h"
#include "tenant/slice/environment.h"
#include "tenant/slice/nvml.h"

struct source {
	const char *path; /* NULL: not used */
	bool is_in_force;
	struct file_identity seen, told; /* as last read; and as last complained of */
	_Atomic uint64_t changed_ns;	 /* the file's time, as last read whole */
	struct share shares[2];		 /* one is read while the other is made */
	unsigned current;
	char text[SHARE_FILE_BYTES]; /* what was read last: too much for a stack */
};

static struct {
	struct lock start_lock, refresh_lock, share_lock;
	_Atomic bool is_started;
	enum quota_mode mode;
	struct options options;
	struct source system, own;
	_Atomic uint64_t next_check_ns;
	/* As it was when this process began to look: what the driver was told of MPS, and where things are. */
	char mps_pipe[SHARE_PATH_BYTES];
	uint16_t mps_permille;
	char slice_name[SHARE_NAME_BYTES];
	char share_turns[SHARE_PATH_BYTES], share_region[SHARE_PATH_BYTES];
	const char *turns_path;
	const char *_Atomic region_path;
	char own_region[REGION_DEFAULT_BYTES];
	bool is_default_region;
} quota;

static const struct share *share_of(const struct source *source)
{
	return &source->shares[source->current];
}

static bool same_file(const struct file_identity *a, const struct file_identity *b)
{
	return a->inode == b->inode && a->device == b->device && a->size_bytes == b->size_bytes &&
	       a->changed_ns == b->changed_ns;
}

/* Says what is wrong with a share file, and what comes of it. */
static int complain(const struct source *source, unsigned line, const char *why)
{
	if (source->is_in_force)
		log_error("a share file is broken, so its last meaning stays",
			STR("path", source->path), U64("line", line), STR("why", why));
	else
		log_error("a share file is broken, so all device memory is refused",
			STR("path", source->path), U64("line", line), STR("why", why));
	return -EINVAL;
}

/* Reads the file into source; on failure what is in force stays. One thread at a time. */
static int load(struct source *source)
{
	struct share_fault fault;
	struct file_identity id;
	size_t length;
	int r = file_identify_path(source->path, &id);

	if (r == 0)
		r = file_read(source->path, source->text, sizeof(source->text), &length);
	/* That says nothing of the file: all descriptors may be in use for a moment. */
	if (r < 0) {
		if (!same_file(&id, &source->told))
			(void)complain(source, 0, strerror(-r));
		source->told = id;
		return r;
	}
	if (share_parse(source->text, length, &source->shares[!source->current], &fault) < 0)
		return complain(source, fault.line, fault.why);
	LOCK_SCOPE_OWN(&quota.share_lock);
	FAULT("quota: read");
	source->current = !source->current;
	source->seen = id;
	/* relaxed: for people to read */
	atomic_store_explicit(&source->changed_ns, id.changed_ns, memory_order_relaxed);
	source->is_in_force = true;
	return 0;
}

static void read_mps(void)
{
	const char *pipe = grant_mps_pipe(environment_value("CUDA_MPS_PIPE_DIRECTORY"));
	const char *percent = environment_value("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");

	/* One that is too long is no share's. */
	if (strlen(pipe) < sizeof(quota.mps_pipe))
		strcpy(quota.mps_pipe, pipe);
	if (!percent || !share_read_percent(percent, &quota.mps_permille))
		quota.mps_permille = SHARE_WHOLE_PERMILLE;
}

/* Where things are does not change under a process, whatever becomes of its share; and who asks needs no lock. */
static void find_names(void)
{
	const struct share *system = share_of(&quota.system), *own = share_of(&quota.own);
	const char *region = system->region[0] ? system->region : own->region;
	const char *turns = grant_turns_path(
		(const struct share *[]){system, own}, quota.mps_pipe, &quota.options);

	strcpy(quota.slice_name, system->slice[0] ? system->slice : own->slice);
	quota.turns_path = turns;
	if (turns == system->turns || turns == own->turns)
		quota.turns_path = strcpy(quota.share_turns, turns);
	region_own_path(quota.own_region);
	if (region[0])
		strcpy(quota.share_region, region);
	else if (environment_is_anothers())
		strcpy(quota.share_region, quota.own_region);
	else if (!quota.options.region_path)
		region_default_path(quota.share_region);
	/* relaxed: told to others with is_started */
	atomic_store_explicit(&quota.region_path,
		!region[0] && quota.options.region_path ? quota.options.region_path
							: quota.share_region,
		memory_order_relaxed);
	quota.is_default_region = !region[0] && !quota.options.region_path;
}

/* False where it cannot be known what the machine grants. */
static bool load_system(void)
{
	const char *meant;

	switch (bound_find(&meant)) {
	case BOUND_BY_NOTHING:
		return true;
	case BOUND_TO_MISSING:
		log_error("the share of this container is missing, so all device memory is refused",
			STR("path", SHARE_SYSTEM_PATH), STR("meant", meant),
			STR("right", "a share there, which is replaced by a rename alone"));
		return false;
	default:
		quota.system.path = SHARE_SYSTEM_PATH;
		return load(&quota.system) == 0;
	}
}

static enum quota_mode read_all(void)
{
	bool is_broken;

	environment_read_own(&quota.options);
	read_mps();
	is_broken = quota.options.is_broken;
	is_broken |= !load_system();
	if (quota.options.share_path) {
		quota.own.path = quota.options.share_path;
		is_broken |= load(&quota.own) != 0;
	}
	find_names();
	if (is_broken)
		return QUOTA_BROKEN;
	if (quota.system.path || quota.own.path || quota.options.region_path ||
		quota.options.memory_limit_bytes || quota.options.has_indexed_limit ||
		quota.options.cores_percent || quota.options.has_indexed_cores)
		return QUOTA_SET;
	return QUOTA_NONE;
}

enum quota_mode quota_start(void)
{
	/* pairs with the release below */
	if (LIKELY(atomic_load_explicit(&quota.is_started, memory_order_acquire)))
		return quota.mode;
	LOCK_SCOPE_OWN(&quota.start_lock);
	if (!quota.is_started) {
		quota.mode = read_all();
		/* pairs with the acquire above */
		atomic_store_explicit(&quota.is_started, true, memory_order_release);
	}
	return quota.mode;
}

void quota_reset_after_fork(void)
{
	quota.start_lock = quota.refresh_lock = quota.share_lock = (struct lock)LOCK_INIT;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* NVML's index of the device, where an option of one device asks for it; -1 where none does. */
static int index_for(bool is_asked, const char *uuid, int *ret_index)
{
	unsigned index;
	int r = is_asked ? nvml_index_of(uuid, &index) : 0;

	if (r == 0)
		*ret_index = is_asked && index < OPTIONS_DEVICES ? (int)index : -1;
	return r;
}

int quota_memory_bytes(const char *uuid, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int index, r = index_for(quota.options.has_indexed_limit, uuid, &index);

	if (r < 0)
		return r;
	bytes = grant_environment_bytes(&quota.options, index);
	LOCK_SCOPE_OWN(&quota.share_lock);
	if (quota.system.is_in_force)
		bytes = smaller(bytes, share_memory_bytes(share_of(&quota.system), uuid));
	if (quota.own.is_in_force)
		bytes = smaller(bytes, share_memory_bytes(share_of(&quota.own), uuid));
	*ret_bytes = bytes;
	return 0;
}

bool quota_may_change(void)
{
	return quota.system.path || quota.own.path;
}

/* Parts of a MIG device stand in a share by their own names, so nothing is known of the board then. */
static bool has_exact_devices(const struct share *share)
{
	for (unsigned i = 0; i < share->device_count; i++)
		if (strcmp(share->devices[i].uuid, SHARE_ANY_DEVICE) == 0 ||
			strncmp(share->devices[i].uuid, "MIG-", 4) == 0)
			return false;
	return true;
}

static const struct share *in_force(const struct source *source)
{
	return source->is_in_force ? share_of(source) : NULL;
}

static bool says_of_any(bool (*says)(const struct share *share))
{
	const struct share *system, *own;
	LOCK_SCOPE_OWN(&quota.share_lock);

	system = in_force(&quota.system);
	own = in_force(&quota.own);
	return (system && says(system)) || (own && says(own));
}

bool quota_hides(void)
{
	return says_of_any(has_exact_devices);
}

bool quota_is_granted(const char *uuid)
{
	LOCK_SCOPE_OWN(&quota.share_lock);
	return (!quota.system.is_in_force || share_device(share_of(&quota.system), uuid)) &&
	       (!quota.own.is_in_force || share_device(share_of(&quota.own), uuid));
}

static bool has_no_exports(const struct share *share)
{
	return share->has_no_exports;
}

bool quota_may_export(void)
{
	return !says_of_any(has_no_exports);
}

static bool is_suspended(const struct share *share)
{
	return share->is_suspended;
}

bool quota_is_suspended(void)
{
	return says_of_any(is_suspended);
}

static bool has_memory_quota(const struct share *share)
{
	for (unsigned i = 0; i < share->device_count; i++)
		if (share->devices[i].memory_bytes != SHARE_UNLIMITED)
			return true;
	return false;
}

static bool environment_has_memory_quota(void)
{
	for (int i = -1; i < OPTIONS_DEVICES; i++)
		if (grant_environment_bytes(&quota.options, i) != SHARE_UNLIMITED)
			return true;
	return false;
}

bool quota_may_import(void)
{
	const struct share *system, *own;
	LOCK_SCOPE_OWN(&quota.share_lock);

	system = in_force(&quota.system);
	own = in_force(&quota.own);
	if (!(system && has_memory_quota(system)) && !(own && has_memory_quota(own)) &&
		!environment_has_memory_quota())
		return true;
	return (system || own) && (!system || system->imports_any) && (!own || own->imports_any);
}

/* A whole percent, as the driver takes it. One that was told more is limited by time. */
static bool is_divided(const struct share *share, const struct share_compute *c)
{
	return grant_is_client(share, quota.mps_pipe) &&
	       quota.mps_permille <= grant_mps_percent(c) * 10;
}

/* What it says of the device's time; all zero where that is nothing. */
static struct share_compute compute_of(const struct source *source, const char *uuid)
{
	const struct share *share = share_of(source);
	const struct share_device *device = source->is_in_force ? share_device(share, uuid) : NULL;

	return device && !is_divided(share, &device->compute)
		       ? device->compute
		       : (struct share_compute){.cores_permille = 0};
}

static void restrict_by(struct quota_limits *t, const struct source *source)
{
	const struct share *share = share_of(source);

	if (!source->is_in_force)
		return;
	if (share->priority > t->priority)
		t->priority = share->priority;
	t->is_suspended |= share->is_suspended;
}

/* With the policy "default" a limit holds only where the region's utilization_switch is on. */
static int environment_compute(
	const char *uuid, bool is_contended, struct share_compute *ret_compute)
{
	const struct options *o = &quota.options;
	bool is_off = o->policy == OPTIONS_POLICY_DISABLE ||
		      (o->policy == OPTIONS_POLICY_DEFAULT && !is_contended);
	int index, r = index_for(!is_off && o->has_indexed_cores, uuid, &index);

	if (r == 0)
		*ret_compute = is_off ? (struct share_compute){.cores_permille = 0}
				      : grant_environment_compute(o, index, quota_turns_path());
	return r;
}

int quota_compute(const char *uuid, bool is_contended, struct quota_limits *ret_limits)
{
	struct quota_limits t = {.priority = 0};
	struct share_compute environment, system, own,
		c = {.cap_permille = SHARE_WHOLE_PERMILLE, .weight = SHARE_DEFAULT_WEIGHT};
	/* One that is there and cannot be read promises nothing, too. */
	const struct share_compute *binding = quota.system.path ? &system : NULL;
	int r = environment_compute(uuid, is_contended, &environment);

	if (r < 0)
		return r;
	LOCK_SCOPE_OWN(&quota.share_lock);
	if (quota.options.has_priority || (!quota.system.is_in_force && !quota.own.is_in_force))
		t.priority = (uint8_t)quota.options.priority;
	restrict_by(&t, &quota.own);
	restrict_by(&t, &quota.system);
	system = compute_of(&quota.system, uuid);
	own = compute_of(&quota.own, uuid);
	grant_bind(&own, binding);
	grant_bind(&environment, binding);
	grant_lower(&c, &system);
	grant_lower(&c, &own);
	grant_lower(&c, &environment);
	grant_force(&c, &quota.options, &environment);
	t.cores_permille = c.cores_permille;
	t.cap_permille = c.cap_permille;
	t.weight = c.weight;
	t.burst_ns =
		UINT64_C(1000000) * grant_burst_ms((const struct share *[]){in_force(&quota.system),
							   in_force(&quota.own)},
					    &quota.options);
	*ret_limits = t;
	return 0;
}

const char *quota_turns_path(void)
{
	return quota.turns_path;
}

const char *quota_slice_name(void)
{
	return quota.slice_name;
}

const struct options *quota_options(void)
{
	return &quota.options;
}

bool quota_has_default_region(void)
{
	return quota.is_default_region;
}

const char *quota_region_path(void)
{
	/* acquire: pairs with the release in quota_take_own_region(); what it says does not change any more */
	return atomic_load_explicit(&quota.region_path, memory_order_acquire);
}

void quota_take_own_region(void)
{
	/* release: as above */
	atomic_store_explicit(&quota.region_path, quota.own_region, memory_order_release);
}

const char *quota_system_share(void)
{
	return quota.system.path;
}

static bool reload_if_changed(struct source *source)
{
	struct file_identity id;
	int r;

	if (!source->path || file_identify_path(source->path, &id) != 0)
		return false;
	if (same_file(&id, &source->seen))
		return false;
	r = load(source);
	/* What is broken is said once for this state of the file, and not looked at again until it changes. */
	if (r == -EINVAL)
		source->seen = id;
	return r == 0;
}

uint64_t quota_share_ns(void)
{
	/* relaxed: as above */
	return atomic_load_explicit(&quota.own.changed_ns, memory_order_relaxed);
}

bool quota_refresh(bool is_urgent)
{
	bool has_changed;

	if (!is_urgent && !clock_is_due(&quota.next_check_ns, QUOTA_CHECK_NS))
		return false;
	if (!lock_try_own(&quota.refresh_lock))
		return false;
	FAULT("quota: looking");
	has_changed = reload_if_changed(&quota.system);
	has_changed |= reload_if_changed(&quota.own);
	lock_leave(&quota.refresh_lock);
	return has_changed;
}
