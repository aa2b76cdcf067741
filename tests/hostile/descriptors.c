/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that make memory and end, and one that keeps what it imports. */
#include "tests/hostile/descriptors.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MARK_SIGN (0x56ll << 55) /* base/mark.c */
#define MARK_ROOM (1ll << 55)
#define MARK_STEP (2 * MIB)

static int pair[2];

void descriptors_take_off_mark(int fd)
{
	struct flock off = {.l_type = F_UNLCK, .l_start = MARK_SIGN, .l_len = MARK_ROOM};

	MUST(fcntl(fd, F_OFD_SETLK, &off));
}

void descriptors_set_mark(int fd, uint64_t id, unsigned steps)
{
	struct flock on = {.l_type = F_RDLCK, .l_start = (off_t)id, .l_len = steps + 1};

	descriptors_take_off_mark(fd);
	MUST(fcntl(fd, F_OFD_SETLK, &on));
}

uint64_t descriptors_mark_of(int fd)
{
	char path[48], line[256];
	uint64_t id = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	MUST(!file);
	while (fgets(line, sizeof(line), file)) {
		char *end = strrchr(line, ' '), *start = end;

		if (strncmp(line, "lock:", 5) != 0)
			continue;
		while (start > line && start[-1] != ' ')
			start--;
		if (strtoull(start, NULL, 10) >= MARK_SIGN)
			id = strtoull(start, NULL, 10);
	}
	fclose(file);
	return id;
}

static bool create(uint64_t bytes, int *ret_fd, CUmemGenericAllocationHandle *ret_handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	if (cuMemCreate(ret_handle, bytes, &properties, 0) != CUDA_SUCCESS)
		return false;
	return cuMemExportToShareableHandle(ret_fd, *ret_handle,
		       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS;
}

bool descriptors_create(uint64_t bytes, int *ret_fd)
{
	CUmemGenericAllocationHandle handle;

	return create(bytes, ret_fd, &handle);
}

bool descriptors_create_kept(uint64_t bytes, int *ret_fd)
{
	CUmemGenericAllocationHandle handle;

	return create(bytes, ret_fd, &handle) && cuMemRelease(handle) == CUDA_SUCCESS;
}

void descriptors_send(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	*(int *)CMSG_DATA(head) = fd;
	MUST(sendmsg(socket, &message, 0) < 0);
}

int descriptors_receive(int socket)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	MUST(recvmsg(socket, &message, 0) <= 0);
	return CMSG_FIRSTHDR(&message) ? *(int *)CMSG_DATA(CMSG_FIRSTHDR(&message)) : -1;
}

static void make(const struct descriptors *way, int round)
{
	char byte;
	int fd;

	hostile_begin();
	if (!descriptors_create(way->bytes ? way->bytes : GIB, &fd))
		_exit(0);
	if (way->forge)
		way->forge(fd, round);
	descriptors_send(pair[0], fd);
	MUST(read(pair[0], &byte, 1) != 1);
	_exit(0);
}

CUmemGenericAllocationHandle descriptors_import(int fd)
{
	CUmemGenericAllocationHandle handle = 0;

	if (cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
		    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS)
		handle = 0;
	close(fd);
	return handle;
}

void descriptors_import_external(int fd)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
		.size = DESCRIPTORS_EXTERNAL_BYTES};
	CUexternalMemory memory;

	description.handle.fd = fd;
	if (cuImportExternalMemory(&memory, &description) != CUDA_SUCCESS)
		close(fd);
}

void descriptors_load_data(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x60000000];"};
	CUmodule module;

	cuModuleLoadData(&module, hostile_fat_binary(&code));
}

void descriptors_take_the_rest(void)
{
	CUdeviceptr at;

	for (int i = 0; i < 64 && cuMemAlloc_v2(&at, 64 * MIB) == CUDA_SUCCESS; i++)
		;
}

static int wake[2];

void descriptors_leave_child(void)
{
	char end;

	if (fork() != 0)
		_exit(0);
	MUST(close(wake[1]));
	MUST(read(wake[0], &end, 1) != 0);
	_exit(0);
}

void descriptors_in_turn(int count, void (*run)(int index))
{
	MUST(pipe(wake));
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			run(i);
			_exit(0);
		}
		MUST(waitpid(pid, NULL, 0) != pid);
		hostile_look();
	}
	MUST(close(wake[1]));
}

static void keep(const struct descriptors *way)
{
	hostile_begin();
	if (way->prepare)
		way->prepare();
	MUST(write(pair[1], "x", 1) != 1);
	for (;;) {
		int fd = descriptors_receive(pair[1]);

		if (fd < 0)
			break;
		if (way->import)
			way->import(fd);
		else
			(void)descriptors_import(fd);
		MUST(write(pair[1], "x", 1) != 1);
	}
	if (way->finish)
		way->finish();
	hostile_look();
	_exit(0);
}

void descriptors_attack(const struct descriptors *way)
{
	pid_t keeper, maker;
	char byte;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	keeper = fork();
	if (keeper == 0)
		keep(way);
	MUST(read(pair[0], &byte, 1) != 1);
	for (int i = 0; i < (way->rounds ? way->rounds : 5); i++) {
		maker = fork();
		if (maker == 0)
			make(way, i);
		MUST(waitpid(maker, NULL, 0) != maker);
	}
	MUST(write(pair[0], "x", 1) != 1);
	MUST(waitpid(keeper, NULL, 0) != keeper);
}

static struct {
	bool (*create)(uint64_t bytes, int *ret_fd);
	uint64_t bytes;
	_Atomic uint64_t *mark; /* shared by all processes */
} other;

static void make_other(void)
{
	int fd;

	MUST(!other.create(other.bytes, &fd));
	*other.mark = descriptors_mark_of(fd);
}

static void mark_as_other(int fd, int round)
{
	/* Without the library there are no marks, and none is needed. */
	if (*other.mark)
		descriptors_set_mark(fd, *other.mark, other.bytes / MARK_STEP);
}

void descriptors_attack_by_mark(
	bool (*create_other)(uint64_t bytes, int *ret_fd), uint64_t bytes, void (*finish)(void))
{
	other.create = create_other;
	other.bytes = bytes;
	other.mark = mmap(NULL, sizeof(*other.mark), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(other.mark == MAP_FAILED);
	descriptors_attack(&(struct descriptors){
		.prepare = make_other, .forge = mark_as_other, .finish = finish});
}
