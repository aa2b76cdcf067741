/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sign of life that needs no file system.
 *
 * The calls are the kernel's own: programs that watch their address space put functions of theirs before shmat().
 */
#include "region/token.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "region/process.h"

#define SIZES	   4096 /* bytes, of which none is ever touched: less than a page everywhere */
#define SIZE_LIMIT 65536
#define INDEX_MASK 0x7fff /* of a segment's number (IPCMNI_SHIFT, ipc/util.h) */
#define STAT_ANY   15	  /* SHM_STAT_ANY, since Linux 4.17: by index, whoever made it */

/* The calling thread's: each thread can leave its process's. */
static uint64_t own_namespace(void)
{
	return process_read_namespace("/proc/thread-self/ns/ipc");
}

static long control(int id, int command, struct shmid_ds *segment)
{
	return syscall(SYS_shmctl, id, command, segment);
}

/*
 * The time is for people: whoever is the segment's user may change it (IPC_SET). Its number comes again after tens of thousands of others, with
 * its size once in SIZES: then one that has gone passes for alive.
 */
static uint64_t birth_of(const struct shmid_ds *segment)
{
	return (uint64_t)segment->shm_ctime * SIZE_LIMIT + segment->shm_segsz % SIZE_LIMIT;
}

static enum token_state state_of(const struct shmid_ds *segment, const struct token *token)
{
	return birth_of(segment) % SIZE_LIMIT == token->birth % SIZE_LIMIT ? TOKEN_LIVES
									   : TOKEN_GONE;
}

static int attach(int id, const void **ret_page)
{
	long page = syscall(SYS_shmat, id, NULL, SHM_RDONLY);

	if (page == -1)
		return -errno;
	/* A child that kept it would keep its parent's slot alive, too. */
	if (madvise((void *)page, SIZES, MADV_DONTFORK) < 0) {
		int r = -errno;

		token_drop((const void *)page);
		return r;
	}
	*ret_page = (const void *)page;
	return 0;
}

int token_leave_to_children(const void *page)
{
	return madvise((void *)page, SIZES, MADV_DOFORK) < 0 ? -errno : 0;
}

int token_make(struct token *ret_token, const void **ret_page)
{
	uint64_t namespace = own_namespace();
	struct shmid_ds segment;
	long id;
	int r;

	if (namespace == 0)
		return -ENOENT;
	/* To be read by its maker alone: who can attach it can keep the slot. */
	id = syscall(SYS_shmget, IPC_PRIVATE, 1 + clock_now_ns() % SIZES, IPC_CREAT | 0400);
	if (id < 0)
		return -errno;
	r = attach((int)id, ret_page);
	if (r == 0 && control((int)id, IPC_STAT, &segment) < 0) {
		r = -errno;
		token_drop(*ret_page);
	}
	/* From now on it lives as long as it is attached. */
	control((int)id, IPC_RMID, NULL);
	if (r < 0)
		return r;
	*ret_token = (struct token){namespace << 32 | (uint32_t)id, birth_of(&segment)};
	return 0;
}

void token_drop(const void *page)
{
	syscall(SYS_shmdt, page);
}

/* The segment is another user's; that it is there is known. */
static enum token_state look_at_anybodys(int id, const struct token *token)
{
	struct shmid_ds segment;

	/* A kernel that divides its numbers in another way shows another one. */
	if (control(id & INDEX_MASK, STAT_ANY, &segment) != id)
		return TOKEN_LIVES;
	return state_of(&segment, token);
}

enum token_state token_look(const struct token *token)
{
	uint64_t namespace = own_namespace();
	int id = (int)(uint32_t)token->place;
	struct shmid_ds segment;

	/* No token is of such a size: the words were tampered with. */
	if (token->birth % SIZE_LIMIT == 0 || token->birth % SIZE_LIMIT > SIZES)
		return TOKEN_GONE;
	if (namespace == 0 || namespace != token->place >> 32)
		return TOKEN_UNKNOWN;
	if (control(id, IPC_STAT, &segment) == 0)
		return state_of(&segment, token);
	if (errno == EACCES)
		return look_at_anybodys(id, token);
	return errno == EINVAL || errno == EIDRM ? TOKEN_GONE : TOKEN_UNKNOWN;
}
