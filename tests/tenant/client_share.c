/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for memory that processes share, and for handing each other descriptors. */
#include "tests/tenant/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HANDLE_BYTES 64

static void say_bytes(struct client *c, const char *key, const void *bytes)
{
	client_say(c, " %s=", key);
	for (unsigned i = 0; i < HANDLE_BYTES; i++)
		client_say(c, "%02x", ((const unsigned char *)bytes)[i]);
}

static void read_bytes(const char *text, void *ret_bytes)
{
	unsigned byte = 0;

	for (unsigned i = 0; i < HANDLE_BYTES; i++) {
		sscanf(text + 2 * i, "%2x", &byte);
		((unsigned char *)ret_bytes)[i] = (unsigned char)byte;
	}
}

static int run_ipcget(struct client *c, char **word, unsigned count)
{
	CUipcMemHandle handle;
	CUresult r = c->cu.cuIpcGetMemHandle(&handle, client_get(c, word[1]));

	if (r == CUDA_SUCCESS)
		say_bytes(c, "handle", &handle);
	return (int)r;
}

static int run_ipcopen(struct client *c, char **word, unsigned count)
{
	CUipcMemHandle handle;
	CUdeviceptr p = 0;
	CUresult r;

	read_bytes(word[2], &handle);
	r = c->cu.cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

/* ipcopens POINTER BYTES TIMES: the same, again and again */
static int run_ipcopens(struct client *c, char **word, unsigned count)
{
	int r = CUDA_SUCCESS;

	for (uint64_t i = client_size(word[3]); i > 0 && r == CUDA_SUCCESS; i--)
		r = run_ipcopen(c, word, count);
	return r;
}

static int run_ipcclose(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuIpcCloseMemHandle(client_get(c, word[1]));
}

/* createx HANDLE SIZE: memory that can be exported */
static int run_createx(struct client *c, char **word, unsigned count)
{
	CUmemGenericAllocationHandle handle = 0;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes =
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}};
	CUresult r = c->cu.cuMemCreate(&handle, client_size(word[2]), &prop, 0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], handle);
	return (int)r;
}

static int run_export(struct client *c, char **word, unsigned count)
{
	int fd = -1;
	CUresult r = c->cu.cuMemExportToShareableHandle(
		&fd, client_get(c, word[2]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uint64_t)fd);
	return (int)r;
}

static int run_import(struct client *c, char **word, unsigned count)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult r = c->cu.cuMemImportFromShareableHandle(&handle,
		(void *)(uintptr_t)client_get(c, word[2]),
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], handle);
	return (int)r;
}

static int run_exportfabric(struct client *c, char **word, unsigned count)
{
	CUmemFabricHandle fabric;
	CUresult r = c->cu.cuMemExportToShareableHandle(
		&fabric, client_get(c, word[1]), CU_MEM_HANDLE_TYPE_FABRIC, 0);

	if (r == CUDA_SUCCESS)
		say_bytes(c, "handle", &fabric);
	return (int)r;
}

static int run_importfabric(struct client *c, char **word, unsigned count)
{
	CUmemGenericAllocationHandle handle = 0;
	CUmemFabricHandle fabric;
	CUresult r;

	read_bytes(word[2], &fabric);
	r = c->cu.cuMemImportFromShareableHandle(&handle, &fabric, CU_MEM_HANDLE_TYPE_FABRIC);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], handle);
	return (int)r;
}

/* churn SIZE TIMES: creates, exports and releases, and keeps the descriptor, until it is refused */
static int run_churn(struct client *c, char **word, unsigned count)
{
	char name[] = "churned", fd[] = "fd";
	char *create[] = {word[0], name, word[1]}, *export[] = {word[0], fd, name};
	uint64_t most = client_size(word[2]), done = 0;
	int r = CUDA_SUCCESS;

	while (done < most && r == CUDA_SUCCESS) {
		r = run_createx(c, create, 3);
		if (r == CUDA_SUCCESS)
			r = run_export(c, export, 3);
		if (r == CUDA_SUCCESS)
			r = (int)c->cu.cuMemRelease(client_get(c, name));
		done += r == CUDA_SUCCESS;
	}
	client_say(c, " count=%llu", (unsigned long long)done);
	return r;
}

#define EXPORTS_MOST 4096

static struct {
	unsigned count;
	CUmemGenericAllocationHandle handle[EXPORTS_MOST];
	int fd[EXPORTS_MOST];
} exported;

/* exportmany SIZE TIMES: creates and exports until there are so many of both; and an end of them all */
static int run_exportmany(struct client *c, char **word, unsigned count)
{
	char name[] = "one", fd[] = "fd";
	char *create[] = {word[0], name, word[1]}, *export[] = {word[0], fd, name};
	uint64_t most = client_size(word[2]);
	struct rlimit files;
	int r = CUDA_SUCCESS;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return CLIENT_FAILED;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || most > EXPORTS_MOST)
		return CLIENT_FAILED;
	while (exported.count < most) {
		r = run_createx(c, create, 3);
		if (r == CUDA_SUCCESS)
			r = run_export(c, export, 3);
		if (r != CUDA_SUCCESS)
			break;
		exported.handle[exported.count] = client_get(c, name);
		exported.fd[exported.count++] = (int)client_get(c, fd);
	}
	return r;
}

static int run_endmany(struct client *c, char **word, unsigned count)
{
	int r = CUDA_SUCCESS;

	while (exported.count > 0 && r == CUDA_SUCCESS) {
		close(exported.fd[--exported.count]);
		r = (int)c->cu.cuMemRelease(exported.handle[exported.count]);
	}
	return r;
}

/* sharing SIZE TIMES: shares memory in both ways with itself and lets go of it, again and again */
static int run_sharing(struct client *c, char **word, unsigned count)
{
	char handle[] = "sh", own[] = "si", fd[] = "sf";
	char *create[] = {word[0], handle, word[1]}, *export[] = {word[0], fd, handle},
	     *import[] = {word[0], own, fd};
	int r = CUDA_SUCCESS;

	for (uint64_t i = client_size(word[2]); i > 0 && r == CUDA_SUCCESS; i--) {
		CUipcMemHandle ipc;
		CUdeviceptr p = 0;

		r = run_createx(c, create, 3);
		if (r == CUDA_SUCCESS)
			r = run_export(c, export, 3);
		if (r == CUDA_SUCCESS)
			r = run_import(c, import, 3);
		if (r == CUDA_SUCCESS)
			r = (int)c->cu.cuMemRelease(client_get(c, handle));
		if (r == CUDA_SUCCESS)
			r = (int)c->cu.cuMemRelease(client_get(c, own));
		if (r == CUDA_SUCCESS)
			close((int)client_get(c, fd));
		if (r == CUDA_SUCCESS)
			r = (int)c->cu.cuMemAlloc_v2(&p, client_size(word[1]));
		if (r == CUDA_SUCCESS)
			r = (int)c->cu.cuIpcGetMemHandle(&ipc, p);
		if (r == CUDA_SUCCESS)
			r = (int)c->cu.cuMemFree_v2(p);
	}
	return r;
}

static int run_closefd(struct client *c, char **word, unsigned count)
{
	return close((int)client_get(c, word[1]));
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = address_of(path);
	struct timespec pause = {.tv_nsec = 5000000};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < 1000 && s >= 0; i++) {
		if (connect(s, (struct sockaddr *)&address, sizeof(address)) == 0)
			return s;
		nanosleep(&pause, NULL);
	}
	return -1;
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* sendfd PATH FD: hands a descriptor to who waits there */
static int run_sendfd(struct client *c, char **word, unsigned count)
{
	int s = connect_to(word[1]), fd = (int)client_get(c, word[2]);
	union control control = {.room = {0}};
	struct iovec iov = {.iov_base = (char[1]){0}, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t sent;

	if (s < 0)
		return CLIENT_FAILED;
	control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	sent = sendmsg(s, &message, 0);
	close(s);
	return sent == 1 ? 0 : CLIENT_FAILED;
}

/* recvfd FD PATH: waits there for a descriptor */
static int run_recvfd(struct client *c, char **word, unsigned count)
{
	struct sockaddr_un address = address_of(word[2]);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer, fd = -1;
	union control control = {.room = {0}};
	struct iovec iov = {.iov_base = (char[1]){0}, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};

	unlink(word[2]);
	if (s < 0 || bind(s, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(s, 1) != 0)
		return CLIENT_FAILED;
	peer = accept(s, NULL, NULL);
	if (peer >= 0 && recvmsg(peer, &message, MSG_CMSG_CLOEXEC) == 1)
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	close(peer);
	close(s);
	client_put(c, word[1], (uint64_t)fd);
	return fd >= 0 ? 0 : CLIENT_FAILED;
}

/* newpoolx POOL: a pool that can be exported */
static int run_newpoolx(struct client *c, char **word, unsigned count)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}};
	CUmemoryPool pool = NULL;
	CUresult r = c->cu.cuMemPoolCreate(&pool, &props);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)pool);
	return (int)r;
}

static CUmemoryPool pool_named(struct client *c, const char *name)
{
	return (CUmemoryPool)(uintptr_t)client_get(c, name);
}

static int run_exportpool(struct client *c, char **word, unsigned count)
{
	int fd = -1;
	CUresult r = c->cu.cuMemPoolExportToShareableHandle(
		&fd, pool_named(c, word[2]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uint64_t)fd);
	return (int)r;
}

static int run_importpool(struct client *c, char **word, unsigned count)
{
	CUmemoryPool pool = NULL;
	CUresult r = c->cu.cuMemPoolImportFromShareableHandle(&pool,
		(void *)(uintptr_t)client_get(c, word[2]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)pool);
	return (int)r;
}

static int run_exportpoolfabric(struct client *c, char **word, unsigned count)
{
	CUmemFabricHandle fabric;
	CUresult r = c->cu.cuMemPoolExportToShareableHandle(
		&fabric, pool_named(c, word[1]), CU_MEM_HANDLE_TYPE_FABRIC, 0);

	if (r == CUDA_SUCCESS)
		say_bytes(c, "handle", &fabric);
	return (int)r;
}

static int run_importpoolfabric(struct client *c, char **word, unsigned count)
{
	CUmemoryPool pool = NULL;
	CUmemFabricHandle fabric;
	CUresult r;

	read_bytes(word[2], &fabric);
	r = c->cu.cuMemPoolImportFromShareableHandle(&pool, &fabric, CU_MEM_HANDLE_TYPE_FABRIC, 0);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)pool);
	return (int)r;
}

static int run_exportptr(struct client *c, char **word, unsigned count)
{
	CUmemPoolPtrExportData data;
	CUresult r = c->cu.cuMemPoolExportPointer(&data, client_get(c, word[1]));

	if (r == CUDA_SUCCESS)
		say_bytes(c, "data", &data);
	return (int)r;
}

static int run_importptr(struct client *c, char **word, unsigned count)
{
	CUmemPoolPtrExportData data;
	CUdeviceptr p = 0;
	CUresult r;

	read_bytes(word[3], &data);
	r = c->cu.cuMemPoolImportPointer(&p, pool_named(c, word[2]), &data);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

/* external NAME SIZE: imports memory of another interface */
static int run_external(struct client *c, char **word, unsigned count)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = client_size(word[2])};
	CUexternalMemory memory = NULL;
	CUresult r;

	description.handle.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	r = c->cu.cuImportExternalMemory(&memory, &description);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)memory);
	return (int)r;
}

static int run_endexternal(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuDestroyExternalMemory(
		(CUexternalMemory)(uintptr_t)client_get(c, word[1]));
}

/* range FD POINTER SIZE: a descriptor of a range, for others to register */
static int run_range(struct client *c, char **word, unsigned count)
{
	int fd = -1;
	CUresult r = c->cu.cuMemGetHandleForAddressRange(&fd, client_get(c, word[2]),
		client_size(word[3]), CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uint64_t)fd);
	return (int)r;
}

const struct client_command client_share_commands[] = {
	{"ipcget", 1, run_ipcget, "POINTER"},
	{"ipcopen", 2, run_ipcopen, "POINTER BYTES"},
	{"ipcopens", 3, run_ipcopens, "POINTER BYTES TIMES"},
	{"ipcclose", 1, run_ipcclose, "POINTER"},
	{"createx", 2, run_createx, "HANDLE SIZE"},
	{"export", 2, run_export, "FD HANDLE"},
	{"import", 2, run_import, "HANDLE FD"},
	{"exportmany", 2, run_exportmany, "SIZE TIMES"},
	{"endmany", 0, run_endmany, ""},
	{"exportfabric", 1, run_exportfabric, "HANDLE"},
	{"importfabric", 2, run_importfabric, "HANDLE BYTES"},
	{"churn", 2, run_churn, "SIZE TIMES"},
	{"sharing", 2, run_sharing, "SIZE TIMES"},
	{"closefd", 1, run_closefd, "FD"},
	{"sendfd", 2, run_sendfd, "PATH FD"},
	{"recvfd", 2, run_recvfd, "FD PATH"},
	{"newpoolx", 1, run_newpoolx, "POOL"},
	{"exportpool", 2, run_exportpool, "FD POOL"},
	{"importpool", 2, run_importpool, "POOL FD"},
	{"exportpoolfabric", 1, run_exportpoolfabric, "POOL"},
	{"importpoolfabric", 2, run_importpoolfabric, "POOL BYTES"},
	{"exportptr", 1, run_exportptr, "POINTER"},
	{"importptr", 3, run_importptr, "POINTER POOL BYTES"},
	{"external", 2, run_external, "NAME SIZE"},
	{"endexternal", 1, run_endexternal, "NAME"},
	{"range", 3, run_range, "FD POINTER SIZE"},
	{0},
};
