/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes share: who keeps it, and for whom it counts. */
#include "sim/tests/cuda/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* A pair of sockets between a test and its child; made before the child. */
static int line[2];

static void send_bytes(int end, const void *bytes, size_t size)
{
	EQUAL(write(line[end], bytes, size), size);
}

static void receive_bytes(int end, void *bytes, size_t size)
{
	EQUAL(recv(line[end], bytes, size, MSG_WAITALL), size);
}

static void signal_other(int end)
{
	send_bytes(end, "", 1);
}

static void await_other(int end)
{
	char c;

	receive_bytes(end, &c, 1);
}

static void send_fd(int end, int fd)
{
	char place[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = place,
		.msg_controllen = sizeof(place)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	EQUAL(sendmsg(line[end], &message, 0), 1);
}

static int receive_fd(int end)
{
	char place[CMSG_SPACE(sizeof(int))] = {0}, byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = place,
		.msg_controllen = sizeof(place)};
	int fd;

	EQUAL(recvmsg(line[end], &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static CUmemGenericAllocationHandle create(size_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	OK(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

static int export_fd(CUmemGenericAllocationHandle handle)
{
	int fd = -1;

	OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return fd;
}

static CUmemGenericAllocationHandle import_fd(int fd)
{
	CUmemGenericAllocationHandle handle;

	OK(cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	return handle;
}

TEST(a_descriptor_keeps_memory_until_its_last_copy_is_closed)
{
	CUmemGenericAllocationHandle handle, again;
	struct machine_truth truth;
	uint64_t used;
	int fd, copy;

	child_context();
	used = child_used_mib();
	handle = create(64 * MiB);
	fd = export_fd(handle);
	EQUAL(child_used_mib(), used + 64);
	EQUAL(child_shown_mib(), 518 + 64);
	again = import_fd(fd);
	EQUAL(child_used_mib(), used + 64);
	OK(cuMemRelease(again));
	copy = dup(fd);
	OK(cuMemRelease(handle));
	EQUAL(child_used_mib(), used + 64);
	EQUAL(child_shown_mib(), 518);
	EQUAL(machine_read_truth(child_machine(), getenv("VGPU_SIM_TAG"), 0, &truth), 0);
	EQUAL(truth.held_bytes, (518 + 64) * MiB);
	close(fd);
	EQUAL(child_used_mib(), used + 64);
	close(copy);
	EQUAL(child_used_mib(), used);
	EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

TEST(what_is_no_exported_memory_is_refused)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;
	CUipcMemHandle garbage = {{0}};
	CUdeviceptr p;
	int fd;

	child_context();
	OK(cuMemCreate(&handle, 2 * MiB, &prop, 0));
	EQUAL(cuMemExportToShareableHandle(
		      &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemImportFromShareableHandle(
		      &handle, (void *)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuIpcOpenMemHandle_v2(&p, garbage, 1), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuIpcGetMemHandle(&garbage, 0x1000), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuIpcCloseMemHandle(0x1000), CUDA_ERROR_INVALID_VALUE);
}

static void import_and_hold(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	int fd;

	child_context();
	fd = receive_fd(1);
	handle = import_fd(fd);
	close(fd);
	OK(cuMemAddressReserve(&at, 64 * MiB, 0, 0, 0));
	OK(cuMemMap(at, 64 * MiB, 0, handle, 0));
	OK(cuMemRelease(handle));
	signal_other(1);
	await_other(1);
	EQUAL(child_shown_mib(), 518);
	OK(cuMemUnmap(at, 64 * MiB));
	signal_other(1);
	await_other(1);
}

TEST(an_importer_keeps_memory_that_its_maker_has_released)
{
	CUmemGenericAllocationHandle handle;
	uint64_t used;
	int fd, pid;

	EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	pid = child_start(import_and_hold);
	child_context();
	handle = create(64 * MiB);
	fd = export_fd(handle);
	send_fd(0, fd);
	close(fd);
	await_other(0);
	used = child_used_mib();
	OK(cuMemRelease(handle));
	EQUAL(child_used_mib(), used);
	EQUAL(child_shown_mib(), 518);
	signal_other(0);
	await_other(0);
	EQUAL(child_used_mib(), used - 64);
	signal_other(0);
	child_wait(pid, 0);
}

/* A handle that says that the memory were of another size: a smaller one is believed. */
static void open_forged(CUipcMemHandle handle)
{
	const uint64_t bytes = 512 * MiB, wrong[] = {0, 514 * MiB, UINT64_MAX},
		       less[] = {4096, 256 * MiB};
	CUdeviceptr p, base;
	size_t size;
	char *at = memmem(&handle, sizeof(handle), &bytes, sizeof(bytes));

	CHECK(at);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(at, &wrong[i], sizeof(wrong[i]));
		EQUAL(cuIpcOpenMemHandle_v2(&p, handle, 1), CUDA_ERROR_INVALID_VALUE);
	}
	for (size_t i = 0; i < sizeof(less) / sizeof(less[0]); i++) {
		memcpy(at, &less[i], sizeof(less[i]));
		OK(cuIpcOpenMemHandle_v2(&p, handle, 1));
		OK(cuMemGetAddressRange_v2(&base, &size, p));
		CHECK(base == p && size == less[i]);
		OK(cuIpcCloseMemHandle(p));
	}
}

static void open_ipc(void)
{
	CUdeviceptr p = 0, again = 0, base;
	CUipcMemHandle handle;
	size_t size;

	child_context();
	receive_bytes(1, &handle, sizeof(handle));
	open_forged(handle);
	OK(cuIpcOpenMemHandle_v2(&p, handle, 1));
	EQUAL(child_shown_mib(), 518);
	signal_other(1);
	await_other(1); /* the owner has freed it */
	EQUAL(child_shown_mib(), 518 + 512);
	OK(cuMemGetAddressRange_v2(&base, &size, p));
	CHECK(base == p && size == 512 * MiB);
	OK(cuIpcOpenMemHandle_v2(&again, handle, 1));
	OK(cuIpcCloseMemHandle(again));
	OK(cuIpcCloseMemHandle(p));
	EQUAL(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
	EQUAL(child_shown_mib(), 518);
	signal_other(1);
	await_other(1);
}

TEST(memory_that_another_opened_lives_until_that_closes_it)
{
	CUipcMemHandle handle, same;
	CUdeviceptr p;
	uint64_t used;
	int pid;

	EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	pid = child_start(open_ipc);
	child_context();
	OK(cuMemAlloc_v2(&p, 512 * MiB));
	OK(cuIpcGetMemHandle(&handle, p));
	OK(cuIpcGetMemHandle(&same, p));
	CHECK(memcmp(&handle, &same, sizeof(same)) == 0);
	EQUAL(cuIpcOpenMemHandle_v2(&p, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
	send_bytes(0, &handle, sizeof(handle));
	await_other(0);
	used = child_used_mib();
	EQUAL(child_shown_mib(), 518 + 512);
	OK(cuMemFree_v2(p));
	EQUAL(child_used_mib(), used);
	EQUAL(child_shown_mib(), 518);
	signal_other(0);
	await_other(0);
	EQUAL(child_used_mib(), used - 512);
	signal_other(0);
	child_wait(pid, 0);
}

static void make_and_die(void)
{
	child_context();
	send_fd(1, export_fd(create(64 * MiB)));
	raise(SIGKILL);
}

TEST(memory_outlives_its_maker_in_a_descriptor)
{
	CUmemGenericAllocationHandle handle;
	uint64_t used;
	int fd, pid;

	EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	pid = child_start(make_and_die);
	child_context();
	used = child_used_mib();
	fd = receive_fd(0);
	child_wait(pid, SIGKILL);
	handle = import_fd(fd);
	close(fd);
	EQUAL(child_kind_mib(MACHINE_VMM), 64);
	OK(cuMemRelease(handle));
	EQUAL(child_kind_mib(MACHINE_VMM), 0);
	CHECK(child_used_mib() <= used);
}

TEST(a_pool_that_is_shared_gives_nothing_back)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, imported;
	CUdeviceptr p, q;
	uint64_t used;
	int fd;

	child_context();
	used = child_used_mib();
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&p, 10 * MiB, pool, NULL));
	EQUAL(child_used_mib(), used + 32);
	OK(cuMemPoolExportToShareableHandle(
		&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&data, p));
	OK(cuMemPoolImportFromShareableHandle(
		&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolImportPointer(&q, imported, &data));
	EQUAL(cuMemAllocFromPoolAsync(&q, MiB, imported, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	EQUAL(child_used_mib(), used + 32);
	OK(cuMemFree_v2(q));
	OK(cuMemPoolDestroy(imported));
	OK(cuMemPoolDestroy(pool));
	EQUAL(child_used_mib(), used + 32);
	close(fd);
	EQUAL(child_used_mib(), used);
}

TEST(external_memory_counts_from_import_to_destruction)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = 64 * MiB};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = MiB};
	CUexternalMemory memory;
	CUdeviceptr p;
	uint64_t used;

	child_context();
	used = child_used_mib();
	description.handle.fd = -1;
	EQUAL(cuImportExternalMemory(&memory, &description), CUDA_ERROR_INVALID_VALUE);
	description.handle.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	OK(cuImportExternalMemory(&memory, &description));
	EQUAL(child_used_mib(), used + 64);
	OK(cuExternalMemoryGetMappedBuffer(&p, memory, &buffer));
	OK(cuMemFree_v2(p));
	OK(cuDestroyExternalMemory(memory));
	EQUAL(child_used_mib(), used);
}

/* Each release looked at every lock of every descriptor: 2,000 took 37 s. */
TEST(many_descriptors_do_not_slow_each_other_down)
{
	enum { COUNT = 1500 };
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	static CUmemGenericAllocationHandle handles[COUNT];
	struct rlimit limit = {COUNT + 200, COUNT + 200};
	uint64_t began;
	int fd;

	child_context();
	/* Who may have no more descriptors has nothing to wait for. */
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	for (int i = 0; i < COUNT; i++) {
		OK(cuMemCreate(&handles[i], 2 * MiB, &prop, 0));
		OK(cuMemExportToShareableHandle(
			&fd, handles[i], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	}
	began = machine_now_ns();
	for (int i = 0; i < COUNT; i++)
		OK(cuMemRelease(handles[i]));
	IN_TIME(machine_now_ns() - began < UINT64_C(4000000000));
	EQUAL(child_used_mib() >= 2 * COUNT, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_descriptors_do_not_slow_each_other_down),
		cmocka_unit_test(a_descriptor_keeps_memory_until_its_last_copy_is_closed),
		cmocka_unit_test(what_is_no_exported_memory_is_refused),
		cmocka_unit_test(an_importer_keeps_memory_that_its_maker_has_released),
		cmocka_unit_test(memory_that_another_opened_lives_until_that_closes_it),
		cmocka_unit_test(memory_outlives_its_maker_in_a_descriptor),
		cmocka_unit_test(a_pool_that_is_shared_gives_nothing_back),
		cmocka_unit_test(external_memory_counts_from_import_to_destruction),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
