/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the slice, for the hooks of NVML. */
#include "tenant/slice/members.h"

#include <string.h>

#include "gpu/uuid.h"
#include "region/process.h"
#include "region/snapshot.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/quota.h"

struct reading {
	struct members *members;
	uint64_t pid_namespace;
	bool has_host_pids; /* some member was found in the driver's list by another PID than its own */
};

bool members_matter(void)
{
	return quota_start() != QUOTA_NONE;
}

static void add(const struct snapshot_member *m, void *argument)
{
	struct reading *reading = argument;
	struct members *members = reading->members;

	reading->has_host_pids |= m->host_pid != 0 && m->host_pid != m->pid;
	if (members->count == REGION_SLOTS || m->pid_namespace == 0 ||
		m->pid_namespace != reading->pid_namespace)
		return;
	members->at[members->count++] = (struct member){.pid = m->pid,
		.listed_pid = m->host_pid,
		.held_bytes = m->held_bytes,
		.gpu_instance = NVML_INSTANCE_NOT_AVAILABLE,
		.compute_instance = NVML_INSTANCE_NOT_AVAILABLE};
}

void members_read(nvmlDevice_t device, struct members *ret_members)
{
	struct reading reading = {.members = ret_members, .pid_namespace = process_own_namespace()};
	char uuid[UUID_TEXT_BYTES];

	ret_members->count = 0;
	if (!nvml.nvmlDeviceGetUUID ||
		nvml.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) != NVML_SUCCESS)
		return;
	if (snapshot_visit(quota_region_path(), uuid, add, &reading) != 0)
		ret_members->count = 0;
	if (reading.has_host_pids)
		return;
	for (unsigned i = 0; i < ret_members->count; i++)
		ret_members->at[i].listed_pid = ret_members->at[i].pid;
}

struct member *members_find_listed(struct members *members, unsigned listed_pid)
{
	for (unsigned i = 0; listed_pid && i < members->count; i++)
		if (members->at[i].listed_pid == listed_pid)
			return &members->at[i];
	return NULL;
}

struct member *members_find(struct members *members, unsigned pid)
{
	for (unsigned i = 0; pid && i < members->count; i++)
		if (members->at[i].pid == pid)
			return &members->at[i];
	return NULL;
}

struct naming {
	unsigned pid;
	uint64_t pid_namespace;
	char *name;
	bool is_found;
};

static void compare(const struct snapshot_member *m, void *argument)
{
	struct naming *naming = argument;

	if (m->pid != naming->pid || m->pid_namespace == 0 ||
		m->pid_namespace != naming->pid_namespace)
		return;
	memcpy(naming->name, m->command, sizeof(m->command));
	naming->is_found = true;
}

bool members_name(unsigned pid, char ret_name[17])
{
	struct naming naming = {
		.pid = pid, .pid_namespace = process_own_namespace(), .name = ret_name};

	return snapshot_visit(quota_region_path(), NULL, compare, &naming) == 0 && naming.is_found;
}
