/* SPDX-License-Identifier: Apache-2.0 */
/* Making and attaching the shared file of the machine. */
#include "sim/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine/attach.h"

/*
 * A machine is made in a file of another name and linked to its own when complete: nobody ever sees
 * half of one, and of two makers the second one's link fails and it attaches to the first one's.
 * The descriptor is closed after mapping, because tenants close descriptors they do not know.
 */

const char *machine_kind_name(enum machine_kind kind)
{
	static const char *const names[MACHINE_KINDS_USED] = {
		[MACHINE_INIT] = "init",
		[MACHINE_CONTEXT] = "context",
		[MACHINE_CONTEXT_EXTRA] = "context_extra",
		[MACHINE_STREAM] = "stream",
		[MACHINE_SMALL] = "small",
		[MACHINE_PLAIN] = "plain",
		[MACHINE_MANAGED] = "managed",
		[MACHINE_VMM] = "vmm",
		[MACHINE_POOL] = "pool",
		[MACHINE_MODULE] = "module",
		[MACHINE_ARRAY] = "array",
		[MACHINE_GRAPH] = "graph",
		[MACHINE_LOCAL] = "local",
	};

	return kind < MACHINE_KINDS_USED ? names[kind] : "unknown";
}

void machine_uuid_text(const uint8_t uuid[16], char ret_text[MACHINE_UUID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	char *p = ret_text;

	memcpy(p, "GPU-", 4);
	p += 4;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = digits[uuid[i] >> 4];
		*p++ = digits[uuid[i] & 15];
	}
	*p = '\0';
}

int machine_state_path(char *ret_path, size_t size)
{
	const char *named = getenv("VGPU_SIM_STATE");
	const char *tmp = getenv("TMPDIR");
	int n;

	if (named != NULL && *named != '\0')
		n = snprintf(ret_path, size, "%s", named);
	else if (access("/dev/shm", W_OK | X_OK) == 0)
		n = snprintf(
			ret_path, size, "/dev/shm/vgpu-sim-%u/machine", (unsigned int)getuid());
	else
		n = snprintf(ret_path, size, "%s/vgpu-sim-%u/machine",
			tmp != NULL && *tmp != '\0' ? tmp : "/tmp", (unsigned int)getuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* FNV-1a over the names of the counted functions. */
static uint64_t calls_hash(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const char *name;

	for (unsigned int i = 0; (name = inject_call_name(i)) != NULL; i++) {
		do {
			hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
		} while (*name++ != '\0');
	}
	return hash;
}

static int map_file(int fd, struct layout **ret_layout)
{
	void *map = mmap(NULL, sizeof(struct layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	*ret_layout = (struct layout *)map;
	return 0;
}

static int fill(struct layout *layout, const struct board *board)
{
	pthread_mutexattr_t attr;
	int r;

	layout->magic = LAYOUT_MAGIC;
	layout->version = LAYOUT_VERSION;
	layout->size = sizeof(struct layout);
	layout->calls_hash = calls_hash();
	layout->kernel_epoch = 1;
	layout->board.board = *board;
	r = pthread_mutexattr_init(&attr);
	if (r == 0)
		r = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (r == 0)
		r = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (r == 0)
		r = pthread_mutex_init(&layout->lock.mutex, &attr);
	for (int i = 0; r == 0 && i < MACHINE_DEVICES_MAX; i++)
		r = pthread_mutex_init(&layout->device[i].lock.mutex, &attr);
	return -r;
}

/* Makes the file at `path`. 0 also when somebody else was faster. */
static int create(const char *path, const char *board_name, char *ret_why, size_t why_size)
{
	struct board board;
	struct layout *layout = NULL;
	char temporary[4160];
	char *slash;
	int fd, r;

	if (board_name == NULL)
		board_name = getenv("VGPU_SIM_BOARD");
	if (board_name == NULL || *board_name == '\0')
		board_name = BOARD_DEFAULT;
	r = board_load(board_name, &board, ret_why, why_size);
	if (r != 0)
		return r;
	if (board.device_count < 1 || board.device_count > MACHINE_DEVICES_MAX) {
		snprintf(ret_why, why_size, "board '%s' has %d devices, at most %d are possible",
			board_name, board.device_count, MACHINE_DEVICES_MAX);
		return -EINVAL;
	}
	snprintf(temporary, sizeof(temporary), "%s", path);
	slash = strrchr(temporary, '/');
	if (slash != NULL && slash != temporary) {
		*slash = '\0';
		/* Only the last directory: a longer missing path is a mistake to be told. */
		if (mkdir(temporary, 0777) != 0 && errno != EEXIST) {
			r = -errno;
			snprintf(ret_why, why_size, "make directory '%s': %s", temporary,
				strerror(-r));
			return r;
		}
	}
	snprintf(temporary, sizeof(temporary), "%s.%ld.%llx", path, (long)getpid(),
		(unsigned long long)machine_now_ns());
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		r = -errno;
		snprintf(ret_why, why_size, "create '%s': %s", temporary, strerror(-r));
		return r;
	}
	r = ftruncate(fd, sizeof(struct layout)) == 0 ? 0 : -errno;
	if (r == 0)
		r = map_file(fd, &layout);
	if (r == 0) {
		r = fill(layout, &board);
		munmap(layout, sizeof(*layout));
	}
	if (r == 0 && link(temporary, path) != 0 && errno != EEXIST)
		r = -errno;
	if (r != 0)
		snprintf(ret_why, why_size, "create '%s': %s", path, strerror(-r));
	unlink(temporary);
	close(fd);
	return r;
}

/* The header of a file that is ours. Returns 0 or MACHINE_E_FOREIGN. */
static int check(const struct layout *layout, const char *path, char *ret_why, size_t why_size)
{
	const struct board *board = &layout->board.board;

	if (layout->magic != LAYOUT_MAGIC) {
		snprintf(ret_why, why_size, "'%s' is not the state of a simulated machine", path);
		return MACHINE_E_FOREIGN;
	}
	if (layout->version != LAYOUT_VERSION || layout->size != sizeof(struct layout) ||
		layout->calls_hash != calls_hash()) {
		snprintf(ret_why, why_size,
			"'%s' is the state of a simulated machine of another version; remove it",
			path);
		return MACHINE_E_FOREIGN;
	}
	if (board->device_count < 1 || board->device_count > MACHINE_DEVICES_MAX ||
		board->chunk_bytes == 0 || layout->tag_count > MACHINE_TAGS_MAX ||
		layout->slots_used > MACHINE_SLOTS_MAX) {
		snprintf(ret_why, why_size, "'%s' is broken; remove it", path);
		return MACHINE_E_FOREIGN;
	}
	return 0;
}

static int attach(struct machine *machine, const char *path, char *ret_why, size_t why_size)
{
	struct stat st;
	int r;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) == 0 ? 0 : -errno;
	if (r == 0 && (!S_ISREG(st.st_mode) || st.st_size != sizeof(struct layout))) {
		snprintf(ret_why, why_size,
			"'%s' is not the state of a simulated machine of this version; remove it",
			path);
		r = MACHINE_E_FOREIGN;
	}
	if (r == 0)
		r = map_file(fd, &machine->layout);
	close(fd);
	if (r != 0)
		return r;
	machine->file_dev = st.st_dev;
	machine->file_ino = st.st_ino;
	r = check(machine->layout, path, ret_why, why_size);
	if (r != 0) {
		munmap(machine->layout, sizeof(*machine->layout));
		machine->layout = NULL;
	}
	return r;
}

int machine_open(const char *path, const char *board_name, struct machine **ret_machine,
	char *ret_why, size_t why_size)
{
	struct machine *machine = calloc(1, sizeof(*machine));
	int r = 0;

	if (why_size > 0)
		ret_why[0] = '\0';
	if (machine == NULL)
		return -ENOMEM;
	machine->slot = -1;
	if (path == NULL)
		r = machine_state_path(machine->path, sizeof(machine->path));
	else if (snprintf(machine->path, sizeof(machine->path), "%s", path) >=
		 (int)sizeof(machine->path))
		r = -ENAMETOOLONG;
	if (r == 0) {
		r = attach(machine, machine->path, ret_why, why_size);
		/* Three rounds: somebody may remove the file between our making and opening it. */
		for (int round = 0; r == -ENOENT && round < 3; round++) {
			r = create(machine->path, board_name, ret_why, why_size);
			if (r == 0)
				r = attach(machine, machine->path, ret_why, why_size);
			else
				break;
		}
	}
	if (r != 0) {
		if (why_size > 0 && ret_why[0] == '\0')
			snprintf(ret_why, why_size, "attach '%s': %s", machine->path,
				r < 0 ? strerror(-r) : "foreign");
		free(machine);
		return r;
	}
	*ret_machine = machine;
	return 0;
}

void machine_close(struct machine *machine)
{
	if (machine == NULL)
		return;
	machine_leave(machine);
	munmap(machine->layout, sizeof(*machine->layout));
	free(machine);
}

const struct board *machine_board(const struct machine *machine)
{
	return &machine->layout->board.board;
}
