/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of an exported descriptor is taken off and, in its place, another one says that the memory is small. Another
 * process imports it, and the one that made it ends.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	  5
#define MARK_SIGN (0x56ll << 55) /* base/mark.c */

static int pair[2];

static void send_descriptor(int fd)
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
	MUST(sendmsg(pair[0], &message, 0) < 0);
}

/* -1: none */
static int receive_descriptor(void)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	MUST(recvmsg(pair[1], &message, 0) <= 0);
	return CMSG_FIRSTHDR(&message) ? *(int *)CMSG_DATA(CMSG_FIRSTHDR(&message)) : -1;
}

static void make(int round)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct flock off = {.l_type = F_UNLCK, .l_start = MARK_SIGN, .l_len = 1ll << 55};
	struct flock on = {.l_type = F_RDLCK,
		.l_start = MARK_SIGN | (long long)(round + 77) << 21,
		.l_len = 2};
	CUmemGenericAllocationHandle handle;
	char byte;
	int fd;

	hostile_begin();
	if (cuMemCreate(&handle, GIB, &properties, 0) != CUDA_SUCCESS)
		_exit(0);
	MUST(cuMemExportToShareableHandle(
		&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(fcntl(fd, F_OFD_SETLK, &off));
	MUST(fcntl(fd, F_OFD_SETLK, &on));
	send_descriptor(fd);
	MUST(read(pair[0], &byte, 1) != 1);
	_exit(0);
}

static void keep(void)
{
	CUmemGenericAllocationHandle handle;

	hostile_begin();
	for (;;) {
		int fd = receive_descriptor();

		if (fd < 0)
			break;
		cuMemImportFromShareableHandle(
			&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		close(fd);
		MUST(write(pair[1], "x", 1) != 1);
	}
	hostile_look();
	_exit(0);
}

static void attack(void)
{
	pid_t keeper, maker;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	keeper = fork();
	if (keeper == 0)
		keep();
	for (int i = 0; i < ROUNDS; i++) {
		maker = fork();
		if (maker == 0)
			make(i);
		MUST(waitpid(maker, NULL, 0) != maker);
	}
	MUST(write(pair[0], "x", 1) != 1);
	MUST(waitpid(keeper, NULL, 0) != keeper);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 2 * GIB + 512 * MIB, .is_brief = true, .attack = attack});
}
