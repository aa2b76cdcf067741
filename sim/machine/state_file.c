/* SPDX-License-Identifier: Apache-2.0 */
/* Making and attaching the shared file of the machine. */
#include "sim/machine/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/machine/call.h"

/*
 * A machine is made in a file of another name and linked to its own when complete. So nobody ever sees
 * half of one, and of two makers the second one's link fails and it attaches to the first one's.
 * The descriptor is closed after mapping, because tenants close descriptors they do not know.
 */

/* Somebody may remove the file between making and opening it: then it is made again. */
#define ROUNDS_MAX 3

/* Says what failed and why. Returns `error`. */
static int fail(const struct state_file_why *why, int error, const char *what, const char *path)
{
	snprintf(why->text, why->size, "%s '%s': %s", what, path, strerror(-error));
	return error;
}

/* Says what the file is. */
static int refuse(const struct state_file_why *why, const char *path, const char *what)
{
	snprintf(why->text, why->size, "'%s' is %s", path, what);
	return MACHINE_E_FOREIGN;
}

int machine_state_path(char *ret_path, size_t size)
{
	const char *named = secure_getenv("VGPU_SIM_STATE");
	const char *folder = "/dev/shm";
	int n;

	if (access(folder, W_OK | X_OK) != 0) {
		folder = secure_getenv("TMPDIR");
		if (!folder || !*folder)
			folder = "/tmp";
	}
	if (named && *named)
		n = snprintf(ret_path, size, "%s", named);
	else
		n = snprintf(
			ret_path, size, "%s/vgpu-sim-%u/machine", folder, (unsigned int)getuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

const struct board *machine_board(const struct machine *machine)
{
	return &machine->layout->board.board;
}

static int map(int fd, struct layout **ret_layout)
{
	void *mapped = mmap(NULL, sizeof(struct layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	*ret_layout = (struct layout *)mapped;
	return 0;
}

static int fill(struct layout *layout, const struct board *board)
{
	pthread_mutexattr_t attr;
	int r;

	layout->magic = LAYOUT_MAGIC;
	layout->version = LAYOUT_VERSION;
	layout->size = sizeof(struct layout);
	layout->calls_hash = call_hash();
	layout->kernel_epoch = 1;
	layout->board.board = *board;
	r = pthread_mutexattr_init(&attr);
	if (!r)
		r = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!r)
		r = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!r)
		r = pthread_mutex_init(&layout->lock.mutex, &attr);
	for (int i = 0; !r && i < LAYOUT_UNITS; i++)
		r = pthread_mutex_init(&layout->device[i].lock.mutex, &attr);
	return -r;
}

static int write_new(int fd, const struct board *board)
{
	struct layout *layout = NULL;
	int r;

	if (ftruncate(fd, sizeof(*layout)) != 0)
		return -errno;
	r = map(fd, &layout);
	if (r)
		return r;
	r = fill(layout, board);
	munmap(layout, sizeof(*layout));
	return r;
}

#define OVERLAY_MAGIC 0x794c7630 /* overlayfs, which headers of the kernel alone name */

/* On an overlay, a container's own root, a mapping does not keep the lock by which a process is known to live. */
static int check_place(int fd, const char *path, const struct state_file_why *why)
{
	struct statfs place;

	if (fstatfs(fd, &place) != 0 || place.f_type != OVERLAY_MAGIC)
		return 0;
	return refuse(why, path,
		"on an overlay, where a machine does not see which processes live; set "
		"VGPU_SIM_STATE to a path on another file system, such as /dev/shm");
}

/*
 * Only the last directory: a longer missing path is a mistake to be told. The umask says what others may; whoever made the machine may
 * use it again, whatever it says.
 */
static int make_folder(const char *path, const struct state_file_why *why)
{
	char folder[4096];
	struct stat made;
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = '\0';
	if (mkdir(folder, 0777) != 0)
		return errno == EEXIST ? 0 : fail(why, -errno, "make directory", folder);
	if (stat(folder, &made) != 0 ||
		((made.st_mode & 0700) != 0700 && chmod(folder, made.st_mode | 0700) != 0))
		return fail(why, -errno, "open directory", folder);
	return 0;
}

/* Makes the file at `path`. 0 also where somebody else was faster. */
static int create(const char *path, const struct board *board, const struct state_file_why *why)
{
	char temporary[4160];
	_cleanup_fd_ int fd = -1;
	int r = make_folder(path, why);
	struct stat made;

	if (r)
		return r;
	snprintf(temporary, sizeof(temporary), "%s.%ld.%llx", path, (long)getpid(),
		(unsigned long long)machine_now_ns());
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(why, -errno, "create", temporary);
	r = fstat(fd, &made) != 0 || fchmod(fd, made.st_mode | 0600) != 0
		    ? fail(why, -errno, "open", temporary)
		    : check_place(fd, path, why);
	if (r) {
		unlink(temporary);
		return r;
	}
	r = write_new(fd, board);
	if (!r && link(temporary, path) != 0 && errno != EEXIST)
		r = -errno;
	unlink(temporary);
	return r ? fail(why, r, "create", path) : 0;
}

static int load_board(const char *name, struct board *ret_board, const struct state_file_why *why)
{
	int r;

	if (!name)
		name = secure_getenv("VGPU_SIM_BOARD");
	if (!name || !*name)
		name = BOARD_DEFAULT;
	r = board_load(name, ret_board, why->text, why->size);
	if (r)
		return r;
	if (ret_board->device_count >= 1 && ret_board->device_count <= MACHINE_DEVICES_MAX)
		return 0;
	snprintf(why->text, why->size, "board '%s' has %d devices, at most %d are possible", name,
		ret_board->device_count, MACHINE_DEVICES_MAX);
	return -EINVAL;
}

/* The header of a file that is ours. Returns 0 or MACHINE_E_FOREIGN. */
static int check(const struct layout *layout, const char *path, const struct state_file_why *why)
{
	const struct board *board = &layout->board.board;

	if (layout->magic != LAYOUT_MAGIC)
		return refuse(why, path, "not the state of a simulated machine");
	if (layout->version != LAYOUT_VERSION || layout->size != sizeof(struct layout) ||
		layout->calls_hash != call_hash())
		return refuse(why, path,
			"the state of a simulated machine of another version; remove it");
	if (board->device_count < 1 || board->device_count > MACHINE_DEVICES_MAX ||
		board->chunk_bytes == 0 || layout->tag_count > MACHINE_TAGS_MAX ||
		layout->slots_used > MACHINE_PROCESSES_MAX)
		return refuse(why, path, "broken; remove it");
	return 0;
}

static int attach(struct machine *machine, const struct state_file_why *why)
{
	_cleanup_fd_ int fd = open(machine->path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	r = check_place(fd, machine->path, why);
	if (r)
		return r;
	if (!S_ISREG(st.st_mode) || st.st_size != sizeof(struct layout))
		return refuse(why, machine->path,
			"not the state of a simulated machine of this version; remove it");
	r = map(fd, &machine->layout);
	if (r)
		return r;
	machine->file_dev = st.st_dev;
	machine->file_ino = st.st_ino;
	r = check(machine->layout, machine->path, why);
	if (r)
		munmap(machine->layout, sizeof(*machine->layout));
	return r;
}

int state_file_attach(
	struct machine *machine, const char *board_name, const struct state_file_why *why)
{
	struct board board;
	int r = attach(machine, why);

	for (int round = 0; r == -ENOENT && round < ROUNDS_MAX; round++) {
		r = load_board(board_name, &board, why);
		if (!r)
			r = create(machine->path, &board, why);
		if (r)
			return r;
		r = attach(machine, why);
	}
	return r < 0 ? fail(why, r, "attach", machine->path) : r;
}

int state_file_reopen(const struct machine *machine)
{
	_cleanup_fd_ int fd = open(machine->path, O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return state_file_is_own(machine, fd) ? take_fd(&fd) : -ESTALE;
}

bool state_file_is_own(const struct machine *machine, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == machine->file_dev &&
	       st.st_ino == machine->file_ino;
}

int state_file_lock_byte(int fd, short type, int64_t offset)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

bool state_file_is_byte_locked(int fd, int64_t offset)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}
