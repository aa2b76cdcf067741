/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod fits on a node. */
#include "policy/fit.h"

#include <string.h>

#include "policy/names.h"
#include "policy/topology.h"

/* The scheduler's and the device plugin's alone: no thread of a tenant comes here. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

#define WHOLE_CORES 100

/* What a pod takes of a device. */
struct load {
	struct rank_amount amount;
	uint32_t mig_taken;
};

/*
 * A pod's way through its containers. `running` is what sidecars and others take that have come so far, `peak` the most
 * of any init container that ended, `now` what runs beside the container at hand, and with it.
 */
struct attempt {
	const struct fit_node *node;
	const struct fit_pod *pod;
	const struct fit_request *request;
	struct fit_result *result;
	struct fit_sight *sights; /* NULL: nobody asks */
	struct load running[FIT_DEVICES], peak[FIT_DEVICES], now[FIT_DEVICES];
	enum fit_reason described
		[FIT_DEVICES]; /* the same for all containers: lists of names may be long */
	bool is_of_type[FIT_DEVICES];
	int64_t memory_mib,
		cores; /* all devices' sums of what the pod is charged, with the container at hand */
};

/* What stands first in the walk over a container's devices. */
struct candidate {
	double keys[RANK_KEYS];
	uint32_t device;
	bool has_no_room; /* else it would do */
};

const char *fit_reason_word(enum fit_reason reason)
{
	static const char *const words[FIT_REASONS] = {
		[FIT_ALLOCATED_TOO_FEW] = "AllocatedCardsInsufficientRequest",
		[FIT_COMPUTE_EXHAUSTED] = "CardComputeUnitsExhausted",
		[FIT_CORDONED] = "CardCordoned",
		[FIT_LACKS_CORES] = "CardInsufficientCore",
		[FIT_LACKS_MEMORY] = "CardInsufficientMemory",
		[FIT_MIG_INFEASIBLE] = "CardMigTopologyInfeasible",
		[FIT_NOT_HEALTHY] = "CardNotHealth",
		[FIT_SLICES_EXHAUSTED] = "CardTimeSlicingExhausted",
		[FIT_TYPE_DIFFERS] = "CardTypeMismatch",
		[FIT_UUID_DIFFERS] = "CardUuidMismatch",
		[FIT_EXCLUSIVE] = "ExclusiveDeviceAllocateConflict",
		[FIT_LACKS_DEVICES] = "NodeInsufficientDevice",
		[FIT_NUMA_DIFFERS] = "NumaNotFit",
		[FIT_QUOTA] = "ResourceQuotaNotFit",
	};

	return words[reason];
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct rank_amount most(struct rank_amount a, struct rank_amount b)
{
	return (struct rank_amount){larger(a.slots, b.slots), larger(a.memory_mib, b.memory_mib),
		larger(a.cores, b.cores)};
}

static struct rank_amount sum(struct rank_amount a, struct rank_amount b)
{
	return (struct rank_amount){
		a.slots + b.slots, a.memory_mib + b.memory_mib, a.cores + b.cores};
}

/* What the pod is charged of a device if it takes so much now. */
static struct rank_amount charge_of(
	const struct attempt *attempt, uint32_t device, struct rank_amount now)
{
	return most(most(now, attempt->peak[device].amount), attempt->running[device].amount);
}

static bool is_constrained(const char *list)
{
	return !names_are_blank(list);
}

/* Devices beside each other are mostly of one model. */
static bool is_of_type(const struct attempt *attempt, uint32_t at)
{
	const struct fit_pod *pod = attempt->pod;
	const struct fit_device *device = &attempt->node->devices[at];

	if (at && !strcmp(device[-1].model, device->model))
		return attempt->is_of_type[at - 1];
	if (is_constrained(pod->not_types) && names_occur_in(pod->not_types, device->model))
		return false;
	return !is_constrained(pod->types) || names_occur_in(pod->types, device->model);
}

static bool is_wanted(const struct fit_pod *pod, const struct fit_device *device)
{
	if (is_constrained(pod->not_uuids) && names_have(pod->not_uuids, device->uuid))
		return false;
	return !is_constrained(pod->uuids) || names_have(pod->uuids, device->uuid);
}

/* The tests that depend neither on what is in use nor on the container. From the first device on. */
static void describe(struct attempt *attempt, uint32_t at)
{
	const struct fit_pod *pod = attempt->pod;
	const struct fit_device *device = &attempt->node->devices[at];
	enum fit_reason reason = FIT_REASONS;

	attempt->is_of_type[at] = is_of_type(attempt, at);
	if (!device->is_healthy)
		reason = FIT_NOT_HEALTHY;
	else if (device->is_cordoned)
		reason = FIT_CORDONED;
	else if (!attempt->is_of_type[at] || (pod->modes && !strstr(pod->modes, device->mode)))
		reason = FIT_TYPE_DIFFERS;
	else if (!is_wanted(pod, device))
		reason = FIT_UUID_DIFFERS;
	attempt->described[at] = reason;
}

/* A process has one daemon of MPS: the device plugin refuses such a device to a container that has another, too. */
static bool is_one_of_several_mps(const struct attempt *attempt, const struct fit_device *device)
{
	return attempt->request->devices > 1 && device->mode && !strcmp(device->mode, "mps");
}

/* What the request takes of this device, before MIG rounds it up. */
static int64_t memory_of(const struct fit_request *request, const struct fit_device *device)
{
	int64_t whole = device->all.memory_mib;

	if (request->memory_mib)
		return request->memory_mib;
	if (request->percentage < 0)
		return 0;
	if (device->is_mig)
		whole = mig_most_mib(device->profiles, device->profile_count);
	return whole / 100 * request->percentage + whole % 100 * request->percentage / 100;
}

static bool is_over_quota(const struct attempt *attempt, uint32_t device, struct rank_amount before,
	struct rank_amount after)
{
	const struct fit_room *room = &attempt->pod->room;
	struct rank_amount was = charge_of(attempt, device, before),
			   is = charge_of(attempt, device, after);

	return attempt->memory_mib - was.memory_mib + is.memory_mib > room->memory_mib ||
	       attempt->cores - was.cores + is.cores > room->cores;
}

/*
 * The instances of all containers are made before the first of them starts, so that not even those of init containers may
 * overlap. A later container may have the very instance of an init container that has ended by then; it gets the smallest
 * that is large enough, and of two that are alike the one that is there.
 */
static bool choose_instance(const struct attempt *attempt, uint32_t at, struct fit_choice *choice)
{
	const struct fit_device *device = &attempt->node->devices[at];
	uint32_t now = attempt->now[at].mig_taken;
	struct mig_choice there = {0};
	bool is_free = mig_choose(device->profiles, device->profile_count,
		device->mig_taken | now | attempt->peak[at].mig_taken, choice->memory_mib,
		&choice->mig);

	for (size_t i = 0; i < attempt->result->choice_count; i++) {
		const struct fit_choice *earlier = &attempt->result->choices[i];

		if (earlier->device == at && earlier->mig.profile &&
			earlier->mig.profile->memory_mib >= choice->memory_mib &&
			!(mig_slices(earlier->mig.place) & now) &&
			(!there.profile || mig_is_smaller(earlier->mig.profile, there.profile)))
			there = earlier->mig;
	}
	if (!there.profile || (is_free && mig_is_smaller(choice->mig.profile, there.profile)))
		return is_free;
	choice->mig = there;
	return true;
}

/* The tests of what is free. */
static enum fit_reason has_room(
	const struct attempt *attempt, uint32_t at, struct fit_choice *choice)
{
	const struct fit_device *device = &attempt->node->devices[at];
	const struct load *now = &attempt->now[at];
	struct rank_amount used = sum(device->used, now->amount), more;
	int64_t cores = choice->cores;

	if (device->all.slots <= used.slots)
		return FIT_SLICES_EXHAUSTED;
	if (attempt->pod->policy.is_mutex && used.slots)
		return FIT_EXCLUSIVE;
	/* What would be taken decides its place among others, too, also where there is no room. */
	if (device->is_mig && choose_instance(attempt, at, choice)) {
		choice->memory_mib = choice->mig.profile->memory_mib;
		choice->cores = choice->mig.profile->cores;
	}
	more = (struct rank_amount){1, choice->memory_mib, choice->cores};
	if (is_over_quota(attempt, at, now->amount, sum(now->amount, more)))
		return FIT_QUOTA;
	if (device->all.memory_mib - used.memory_mib < choice->memory_mib)
		return FIT_LACKS_MEMORY;
	if (device->all.cores - used.cores < cores)
		return FIT_LACKS_CORES;
	if (device->all.cores == WHOLE_CORES && cores == WHOLE_CORES && used.slots)
		return FIT_EXCLUSIVE;
	if (device->all.cores && used.cores == device->all.cores && !cores)
		return FIT_COMPUTE_EXHAUSTED;
	if (device->is_mig && !choice->mig.profile)
		return FIT_MIG_INFEASIBLE;
	return FIT_REASONS;
}

/* FIT_REASONS: the device would do. *ret_choice says what is, or would be, taken of it. */
static enum fit_reason judge(
	const struct attempt *attempt, uint32_t at, struct fit_choice *ret_choice)
{
	const struct fit_device *device = &attempt->node->devices[at];
	enum fit_reason reason = attempt->described[at];
	int64_t cores = attempt->request->cores;

	*ret_choice = (struct fit_choice){
		.request = (uint32_t)(attempt->request - attempt->pod->requests),
		.device = at,
		.memory_mib = memory_of(attempt->request, device),
		.cores = cores > WHOLE_CORES ? WHOLE_CORES : cores,
	};
	if ((reason == FIT_REASONS || reason == FIT_UUID_DIFFERS) &&
		is_one_of_several_mps(attempt, device))
		return FIT_TYPE_DIFFERS;
	return reason == FIT_REASONS ? has_room(attempt, at, ret_choice) : reason;
}

static void take(struct attempt *attempt, const struct fit_choice *choice)
{
	struct load *now = &attempt->now[choice->device];
	struct rank_amount before = charge_of(attempt, choice->device, now->amount), after;

	now->amount = sum(now->amount, (struct rank_amount){1, choice->memory_mib, choice->cores});
	if (choice->mig.profile)
		now->mig_taken |= mig_slices(choice->mig.place);
	after = charge_of(attempt, choice->device, now->amount);
	attempt->memory_mib += after.memory_mib - before.memory_mib;
	attempt->cores += after.cores - before.cores;
	attempt->result->choices[attempt->result->choice_count++] = *choice;
}

static double score_of(const struct attempt *attempt, const struct fit_choice *choice)
{
	const struct fit_device *device = &attempt->node->devices[choice->device];
	struct rank_amount used = sum(device->used, attempt->now[choice->device].amount);

	used = sum(used, (struct rank_amount){1, choice->memory_mib, choice->cores});
	return rank_score(&used, &device->all, &attempt->pod->weights);
}

static double key_of(
	const struct attempt *attempt, enum rank_key key, const struct fit_choice *choice)
{
	const struct fit_device *device = &attempt->node->devices[choice->device];

	switch (key) {
	case RANK_UNUSED:
		return -(double)(device->used.slots + attempt->now[choice->device].amount.slots);
	case RANK_NUMA:
		return device->numa;
	case RANK_NUMA_LOWER:
		return -(double)device->numa;
	case RANK_SPREAD:
	case RANK_BINPACK:
		break;
	}
	return key == RANK_BINPACK ? score_of(attempt, choice) : -score_of(attempt, choice);
}

static void note_sight(
	const struct attempt *attempt, const struct fit_choice *choice, enum fit_reason reason)
{
	size_t row = choice->request * attempt->node->device_count;

	attempt->sights[row + choice->device] = (struct fit_sight){
		true, reason, choice->memory_mib, choice->cores, score_of(attempt, choice)};
}

static bool comes_before(const struct candidate *a, const struct candidate *b, size_t keys)
{
	for (size_t i = 0; i < keys; i++) {
		if (a->keys[i] > b->keys[i])
			return true;
		if (a->keys[i] < b->keys[i])
			return false;
	}
	return a->device > b->device;
}

/* Puts it in its place among those that are in order; a node has few. */
static void insert(struct candidate *list, size_t count, const struct candidate *one, size_t keys)
{
	size_t at = count;

	while (at && comes_before(one, &list[at - 1], keys)) {
		list[at] = list[at - 1];
		at--;
	}
	list[at] = *one;
}

/* With a quota it depends on what is collected before why a device has no room. */
static bool is_judged_in_turn(const struct attempt *attempt)
{
	const struct fit_room *room = &attempt->pod->room;

	return !attempt->pod->policy.is_topology &&
	       (room->memory_mib != INT64_MAX || room->cores != INT64_MAX);
}

/*
 * Those that would do, in the order in which they are taken; of the others the reasons are counted. Those that are only too
 * full are in the list, too, where all must be of one NUMA node, because they part the others, and where they are judged
 * in turn: then collect() counts them.
 */
static size_t find_candidates(struct attempt *attempt, struct candidate *ret_list)
{
	const struct rank_policy *policy = &attempt->pod->policy;
	bool is_in_turn = is_judged_in_turn(attempt);
	size_t count = 0;

	for (uint32_t i = 0; i < attempt->node->device_count; i++) {
		struct fit_choice choice;
		enum fit_reason reason = judge(attempt, i, &choice);
		struct candidate one = {.device = i, .has_no_room = reason != FIT_REASONS};
		bool is_out = reason == FIT_NOT_HEALTHY || reason == FIT_CORDONED ||
			      reason == FIT_TYPE_DIFFERS;

		if (attempt->sights)
			note_sight(attempt, &choice, reason);
		if (one.has_no_room && (is_out || !is_in_turn))
			attempt->result->reasons[reason]++;
		if (one.has_no_room && (is_out || (!is_in_turn && !attempt->pod->is_numa_bound)))
			continue;
		for (size_t k = 0; k < policy->key_count; k++)
			one.keys[k] = key_of(attempt, policy->keys[k], &choice);
		insert(ret_list, count++, &one, policy->key_count);
	}
	return count;
}

/* Takes of the candidates until the request has what it wants, or they are at their end. */
static bool collect(struct attempt *attempt, const struct candidate *list, size_t count)
{
	int64_t missing = attempt->request->devices;
	bool is_in_turn = is_judged_in_turn(attempt);

	for (size_t i = 0; i < count && missing; i++) {
		bool is_mig = attempt->node->devices[list[i].device].is_mig;
		struct fit_choice choice;
		enum fit_reason reason;

		if (list[i].has_no_room && !is_in_turn)
			continue;
		do {
			reason = attempt->result->choice_count == FIT_CHOICES
					 ? FIT_LACKS_DEVICES
					 : judge(attempt, list[i].device, &choice);
			if (reason == FIT_REASONS) {
				take(attempt, &choice);
				missing--;
			} else {
				attempt->result->reasons[reason]++;
			}
		} while (is_mig && reason == FIT_REASONS && missing);
	}
	return !missing;
}

/*
 * Leaves of the candidates those that are joined best, where there are more than are wanted; of a device in MIG mode there
 * may be several instances, which nothing joins.
 */
static size_t narrow(const struct attempt *attempt, struct candidate *list, size_t count)
{
	unsigned would_do[FIT_DEVICES], chosen[FIT_DEVICES];
	struct topology_wish wish = {.free = would_do};
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		if (!list[i].has_no_room)
			would_do[wish.count++] = list[i].device;
	if (!attempt->pod->policy.is_topology || wish.count <= attempt->request->devices)
		return count;
	wish.wanted = (unsigned)attempt->request->devices;
	if (topology_choose_scored(
		    attempt->node->joins, (unsigned)attempt->node->device_count, &wish, chosen))
		return count;
	for (size_t i = 0; i < count && left < wish.wanted; i++)
		if (list[i].device == chosen[left])
			list[left++] = list[i];
	return left;
}

static bool can_split(const struct fit_node *node)
{
	for (size_t i = 0; i < node->device_count; i++)
		if (node->devices[i].is_mig)
			return true;
	return false;
}

static void begin_container(struct attempt *attempt, const struct fit_request *request)
{
	attempt->request = request;
	memcpy(attempt->now, attempt->running, attempt->node->device_count * sizeof(*attempt->now));
	memset(attempt->result->reasons, 0, sizeof(attempt->result->reasons));
}

static void end_container(struct attempt *attempt)
{
	size_t count = attempt->node->device_count;

	if (attempt->request->kind != FIT_INIT) {
		memcpy(attempt->running, attempt->now, count * sizeof(*attempt->now));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		attempt->peak[i].amount = most(attempt->peak[i].amount, attempt->now[i].amount);
		attempt->peak[i].mig_taken |= attempt->now[i].mig_taken;
	}
}

/*
 * Devices of one NUMA node only: of the nodes in their order the first that has enough. Those that were collected before
 * on another are told as what they are, and those of the last as too few.
 */
static bool collect_of_one_numa(struct attempt *attempt, struct candidate *list, size_t count)
{
	struct attempt before = *attempt;
	size_t choices = attempt->result->choice_count, begin = 0, end = 0;

	while (begin < count) {
		unsigned numa = attempt->node->devices[list[begin].device].numa;

		if (!attempt->pod->policy.is_topology)
			attempt->result->reasons[FIT_NUMA_DIFFERS] +=
				(uint32_t)(attempt->result->choice_count - choices);
		*attempt = before;
		attempt->result->choice_count = choices;
		while (end < count && attempt->node->devices[list[end].device].numa == numa)
			end++;
		if (collect(attempt, list + begin, narrow(attempt, list + begin, end - begin)))
			return true;
		begin = end;
	}
	return false;
}

static bool fit_container(struct attempt *attempt, const struct fit_request *request)
{
	struct candidate list[FIT_DEVICES];
	size_t had = attempt->result->choice_count, count;
	bool is_enough;

	begin_container(attempt, request);
	if (request->devices > (int64_t)attempt->node->device_count && !can_split(attempt->node)) {
		attempt->result->reasons[FIT_LACKS_DEVICES] = (uint32_t)attempt->node->device_count;
		return false;
	}
	count = find_candidates(attempt, list);
	is_enough = attempt->pod->is_numa_bound
			    ? collect_of_one_numa(attempt, list, count)
			    : collect(attempt, list, narrow(attempt, list, count));
	if (!is_enough)
		attempt->result->reasons[FIT_ALLOCATED_TOO_FEW] =
			(uint32_t)(attempt->result->choice_count - had);
	else
		end_container(attempt);
	return is_enough;
}

bool fit_explain(const struct fit_node *node, const struct fit_pod *pod,
	struct fit_result *ret_result, struct fit_sight *ret_sights)
{
	size_t loads_bytes = node->device_count * sizeof(struct load);
	struct attempt attempt;

	attempt.node = node;
	attempt.pod = pod;
	attempt.result = ret_result;
	attempt.sights = ret_sights;
	attempt.memory_mib = attempt.cores = 0;
	memset(attempt.running, 0, loads_bytes);
	memset(attempt.peak, 0, loads_bytes);
	ret_result->choice_count = 0;
	for (uint32_t i = 0; i < node->device_count; i++)
		describe(&attempt, i);
	for (size_t i = 0; i < pod->request_count; i++)
		if (pod->requests[i].devices > 0 && !fit_container(&attempt, &pod->requests[i]))
			return false;
	return true;
}

bool fit(const struct fit_node *node, const struct fit_pod *pod, struct fit_result *ret_result)
{
	return fit_explain(node, pod, ret_result, NULL);
}

/* The only one that asks for devices; NULL: there are several, or none. */
static const struct fit_request *only_request(const struct fit_pod *pod)
{
	const struct fit_request *only = NULL;

	for (size_t i = 0; i < pod->request_count; i++) {
		if (pod->requests[i].devices <= 0)
			continue;
		if (only)
			return NULL;
		only = &pod->requests[i];
	}
	return only;
}

/* Without a limit of the namespace no device depends on another, so that it is enough to count those that would do. */
bool fit_surely(
	const struct fit_node *node, const struct fit_pod *pod, struct fit_result *ret_scratch)
{
	struct attempt attempt;
	int64_t missing;

	attempt.request = only_request(pod);
	if (!attempt.request || pod->is_numa_bound || pod->room.memory_mib != INT64_MAX ||
		pod->room.cores != INT64_MAX)
		return false;
	attempt.node = node;
	attempt.pod = pod;
	attempt.result = ret_scratch;
	attempt.memory_mib = attempt.cores = 0;
	ret_scratch->choice_count = 0;
	missing = attempt.request->devices;
	for (uint32_t i = 0; i < node->device_count && missing; i++) {
		struct fit_choice choice;

		attempt.running[i] = attempt.peak[i] = attempt.now[i] = (struct load){{0}, 0};
		describe(&attempt, i);
		missing -= judge(&attempt, i, &choice) == FIT_REASONS;
	}
	return !missing;
}

double fit_node_score(const struct fit_node *node)
{
	struct rank_amount used = {0}, all = {0};

	for (size_t i = 0; i < node->device_count; i++) {
		used = sum(used, node->devices[i].used);
		all = sum(all, node->devices[i].all);
	}
	return rank_score(&used, &all, &rank_weights_default);
}

void fit_sum(const struct fit_pod *pod, const struct fit_choice *choices, size_t choice_count,
	size_t device_count, struct rank_amount *ret_amounts)
{
	struct rank_amount running[FIT_DEVICES] = {0}, now[FIT_DEVICES];

	memset(ret_amounts, 0, device_count * sizeof(*ret_amounts));
	for (size_t i = 0, at = 0; i < pod->request_count; i++) {
		memcpy(now, running, sizeof(now));
		for (; at < choice_count && choices[at].request == i; at++) {
			const struct fit_choice *choice = &choices[at];

			now[choice->device] = sum(now[choice->device],
				(struct rank_amount){1, choice->memory_mib, choice->cores});
		}
		for (size_t d = 0; d < device_count; d++)
			ret_amounts[d] = most(ret_amounts[d], now[d]);
		if (pod->requests[i].kind != FIT_INIT)
			memcpy(running, now, sizeof(now));
	}
}
