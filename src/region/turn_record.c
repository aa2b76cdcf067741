/* SPDX-License-Identifier: Apache-2.0 */
/* The turn records: how they lie in their folder, and how they are read. */
#include "region/turn_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "region/turn_owner.h"
#include "region/turn_place.h"

#define DEAD_NS	     5000000u	       /* between two polls of records of those who do not live */
#define SLOW_NS	     UINT64_C(2000000) /* a look takes some us */
#define READ_AT_ONCE 16u	       /* records, by one call of the kernel's */

uint64_t turn_record_hash(const char *name)
{
	uint64_t hash = hash_u64(TURN_MAGIC);

	for (; *name; name++)
		hash = hash_u64(hash ^ (uint8_t)*name);
	return hash;
}

bool turn_record_is_name(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < TURN_NAME_BYTES;
}

void turn_record_join(char *ret_path, const char *folder, const char *name)
{
	size_t length = strlen(folder);

	memcpy(ret_path, folder, length);
	ret_path[length] = '/';
	memcpy(ret_path + length + 1, name, strlen(name) + 1);
}

int turn_record_map(int fd, bool is_own, void **ret_at)
{
	size_t size = is_own ? sizeof(struct turn_record) : sizeof(struct turn_face);
	struct file_identity identity;
	void *at;
	int r = file_identify(fd, &identity);

	if (r < 0)
		return r;
	if (!identity.is_regular)
		return -EBADMSG;
	if (is_own && identity.size_bytes < size) {
		r = file_may_grow_to(size);
		if (r < 0)
			return r;
	}
	if (is_own && fallocate(fd, 0, 0, (off_t)size) < 0) {
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return -errno;
		if (identity.size_bytes < size && ftruncate(fd, (off_t)size) < 0)
			return -errno;
	} else if (!is_own && identity.size_bytes < size) {
		return -EBADMSG;
	}
	at = mmap(NULL, size, is_own ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	if (madvise(at, size, MADV_DONTFORK) < 0) {
		r = -errno;
		munmap(at, size);
		return r;
	}
	*ret_at = at;
	return 0;
}

void turn_record_show(struct turn *turn)
{
	/* relaxed: of several first ones any will do; what is no record the others do not see */
	if (atomic_load_explicit(&turn->own->face.magic, memory_order_relaxed) != TURN_MAGIC) {
		atomic_store_explicit(&turn->own->born_ns, 0, memory_order_relaxed);
		/* release: after that; pairs with the check in turn_record_decode(). All else in a new record is right as zero. */
		atomic_store_explicit(&turn->own->face.magic, TURN_MAGIC, memory_order_release);
	}
	(void)turn_record_born_ns(turn);
}

uint64_t turn_record_born_ns(struct turn *turn)
{
	/* relaxed, both: a time, of which any that is later is as good */
	uint64_t born_ns = atomic_load_explicit(&turn->own->born_ns, memory_order_relaxed), now_ns;

	if (LIKELY(born_ns))
		return born_ns;
	now_ns = turn->clock_ns();
	return atomic_compare_exchange_strong_explicit(&turn->own->born_ns, &born_ns, now_ns,
		       memory_order_relaxed, memory_order_relaxed)
		       ? now_ns
		       : born_ns;
}

int turn_record_open_own(struct turn *turn)
{
	struct file_identity identity;
	_cleanup_fd_ int folder_fd = -1, fd = -1;
	void *at;
	int r = turn_place_open(turn->folder, &folder_fd);

	if (r == 0)
		r = turn_place_open_record(folder_fd, turn->slice, &fd);
	if (r == 0)
		r = turn_record_map(fd, true, &at);
	if (r == 0)
		r = file_identify(fd, &identity);
	if (r < 0)
		return r;
	if (!turn->books || (turn->own && turn->books == &turn->own->books))
		turn->books = &((struct turn_record *)at)->books;
	turn->own = at;
	turn->own_inode = identity.inode;
	turn_record_show(turn);
	return 0;
}

int turn_record_decode(const struct turn_face *face, struct turn_claim *ret_claim)
{
	/* relaxed, all: the copy that the kernel made is nobody else's */
	uint64_t word = atomic_load_explicit(&face->word, memory_order_relaxed);

	if (atomic_load_explicit(&face->magic, memory_order_relaxed) != TURN_MAGIC)
		return -EBADMSG;
	*ret_claim = (struct turn_claim){.state = TURN_WORD_STATE(word),
		.until_ns = TURN_WORD_UNTIL_NS(word),
		.ticket_ns = atomic_load_explicit(&face->ticket_ns, memory_order_relaxed),
		.since_ns = atomic_load_explicit(&face->since_ns, memory_order_relaxed),
		.seen_ns = atomic_load_explicit(&face->seen_ns, memory_order_relaxed),
		.next_ns = atomic_load_explicit(&face->next_ns, memory_order_relaxed),
		.rank = atomic_load_explicit(&face->rank, memory_order_relaxed)};
	return 0;
}

/* Its slice may make it whole again, which the folder does not show. */
void turn_record_forget(struct turn *turn, unsigned i)
{
	unsigned last = --turn->peer_count;

	turn->folder_changed_ns = 0;
	turn_owner_leave(turn, i);
	munmap((void *)(uintptr_t)turn->peer_records[i].at, sizeof(struct turn_face));
	turn->peer_records[i] = turn->peer_records[last];
	turn->peers[i] = turn->peers[last];
	turn->awaited = -1;
}

/* Whether that part of a peer's record could be read, by its path. */
static bool read_file(const struct turn *turn, unsigned i, size_t at, void *to, size_t size)
{
	char path[TURN_PATH_BYTES];
	_cleanup_fd_ int fd = -1;

	turn_record_join(path, turn->folder, turn->peer_records[i].name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* The same, in whichever way records are read here. */
static bool read_part(const struct turn *turn, unsigned i, size_t at, void *to, size_t size)
{
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {
		.iov_base = (char *)(uintptr_t)turn->peer_records[i].at + at, .iov_len = size};

	if (turn->is_by_file || turn->peers[i].doubt.is_slow)
		return read_file(turn, i, at, to, size);
	return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == (long)size;
}

bool turn_record_read_news(const struct turn *turn, unsigned i, uint32_t *ret_news)
{
	return read_part(turn, i, offsetof(struct turn_face, news), ret_news, sizeof(*ret_news));
}

bool turn_record_is_as_read(const struct turn *turn, unsigned i, uint32_t *ret_news)
{
	uint64_t word;

	*ret_news = 0;
	if (!turn_record_read_news(turn, i, ret_news))
		return true;
	/* acquire: pairs with the release in turn_word_wake(). Whoever has its news sees the word that they are of. */
	atomic_thread_fence(memory_order_acquire);
	if (!read_part(turn, i, offsetof(struct turn_face, word), &word, sizeof(word)))
		return true;
	return word == turn->peer_records[i].word;
}

/*
 * What is no record any more says nothing, until its slice mends it. Nor is believed what is said without a sign of life: it
 * is not read as often as who waits for it would need.
 */
static void take_in(struct turn *turn, unsigned i, const struct turn_face *face)
{
	struct turn_claim *claim = &turn->peers[i].claim;

	/* relaxed: as in turn_record_decode() */
	turn->peer_records[i].word = atomic_load_explicit(&face->word, memory_order_relaxed);
	if (turn_record_decode(face, claim) < 0)
		*claim = (struct turn_claim){.state = TURN_FREE};
	if (!turn_order_is_alive(claim, turn->polled_ns))
		claim->state = TURN_FREE;
}

/*
 * A record's owner can make it large and punch holes over it, and who touches a page of that file waits for the end, for a
 * third of a second and more; a read by its descriptor does not. One that is large from the beginning is read so, too (turn_list.c).
 * Of those read at once nobody knows which one it was, and an honest one is read as well.
 */
static void note_slow(struct turn *turn, const uint8_t *wanted, unsigned count, uint64_t took_ns)
{
	if (LIKELY(took_ns < SLOW_NS))
		return;
	for (unsigned k = 0; k < count; k++)
		turn->peers[wanted[k]].doubt.is_slow = true;
}

/* How many of the first of them can be read at once. */
static unsigned quick(const struct turn *turn, const uint8_t *wanted, unsigned count)
{
	unsigned k = 0;

	while (k < count && k < READ_AT_ONCE && !turn->peers[wanted[k]].doubt.is_slow)
		k++;
	return k;
}

/*
 * Reads the next of the wanted records, as many as the kernel gives in one go. Returns how many of them are done;
 * *ret_broken says whether the one behind these cannot be read.
 */
static unsigned read_some(
	struct turn *turn, const uint8_t *wanted, unsigned count, bool *ret_broken)
{
	struct turn_face faces[READ_AT_ONCE];
	struct iovec to = {.iov_base = faces}, from[READ_AT_ONCE];
	uint64_t begun_ns = clock_now_ns();
	unsigned done;
	ssize_t got;

	if (count == 0)
		return 0;
	to.iov_len = count * sizeof(faces[0]);
	for (unsigned k = 0; k < count; k++)
		from[k] = (struct iovec){
			.iov_base = (void *)(uintptr_t)turn->peer_records[wanted[k]].at,
			.iov_len = sizeof(faces[k])};
	got = syscall(SYS_process_vm_readv, getpid(), &to, 1, from, count, 0);
	turn->is_by_file = got < 0 && errno != EFAULT;
	if (turn->is_by_file)
		return 0;
	note_slow(turn, wanted, count, clock_now_ns() - begun_ns);
	done = got < 0 ? 0 : (unsigned)((size_t)got / sizeof(faces[0]));
	*ret_broken = done < count;
	for (unsigned k = 0; k < done; k++)
		take_in(turn, wanted[k], &faces[k]);
	return done;
}

static void read_by_file(struct turn *turn, unsigned i, bool *ret_broken)
{
	struct turn_face face;

	*ret_broken = !read_file(turn, i, 0, &face, sizeof(face));
	if (!*ret_broken)
		take_in(turn, i, &face);
}

void turn_record_read_peers(struct turn *turn, bool is_all, uint64_t now_ns)
{
	uint8_t wanted[TURN_PEERS];
	unsigned count = 0, at = 0;

	if (turn->polled_all_ns + DEAD_NS <= now_ns)
		is_all = true;
	if (is_all)
		turn->polled_all_ns = now_ns;
	/* From the last to the first, so that forgetting one leaves those to come in their places. */
	for (unsigned i = turn->peer_count; i-- > 0;)
		if (is_all || turn->peers[i].is_alive)
			wanted[count++] = (uint8_t)i;
	/* Whatever we said of ourselves before is visible before we poll (turn.c: both sides do so). */
	atomic_thread_fence(memory_order_seq_cst);
	while (at < count) {
		bool is_broken = false;

		if (!turn->is_by_file)
			at += read_some(turn, wanted + at, quick(turn, wanted + at, count - at),
				&is_broken);
		if (!is_broken && at < count &&
			(turn->is_by_file || turn->peers[wanted[at]].doubt.is_slow)) {
			read_by_file(turn, wanted[at], &is_broken);
			at += !is_broken;
		}
		if (is_broken)
			turn_record_forget(turn, wanted[at++]);
	}
}

/* relaxed: only for those who watch */
static uint64_t get(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static void set(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

/* The place for a name: the one that it has, or the oldest. */
void turn_record_say_distrust(struct turn *turn, unsigned i)
{
	uint64_t hash = turn_record_hash(turn->peer_records[i].name);
	struct turn_distrust *to = &turn->own->distrusts[0];

	for (unsigned k = 0; k < TURN_DISTRUSTS; k++) {
		struct turn_distrust *d = &turn->own->distrusts[k];

		if (get(&d->name_hash) == hash) {
			to = d;
			break;
		}
		if (get(&d->until_ns) < get(&to->until_ns))
			to = d;
	}
	set(&to->name_hash, hash);
	set(&to->until_ns, turn->peers[i].doubt.ignored_until_ns);
}

void turn_record_close(struct turn *turn)
{
	while (turn->peer_count > 0)
		turn_record_forget(turn, turn->peer_count - 1);
	if (turn->own)
		munmap(turn->own, sizeof(*turn->own));
	turn->own = NULL;
}
