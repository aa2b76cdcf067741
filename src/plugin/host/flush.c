/* SPDX-License-Identifier: Apache-2.0 */
/* Files on their way to the disk. */
#include "plugin/host/flush.h"

#include <errno.h>
#include <unistd.h>

struct file {
	pthread_t thread;
	int fd, result;
	bool has_thread;
};

static void *write_one(void *context)
{
	struct file *file = context;

	file->result = fsync(file->fd) < 0 ? -errno : 0;
	close(file->fd);
	return NULL;
}

/* All at once, because one commit of the file system's journal is for all that wait for it. */
static void *write_all(void *context)
{
	struct flush *flush = context;
	struct file files[ARRAY_SIZE(flush->begun.fds)];

	for (unsigned i = 0; i < flush->begun.count; i++) {
		files[i] = (struct file){.fd = flush->begun.fds[i]};
		files[i].has_thread =
			i && !pthread_create(&files[i].thread, NULL, write_one, &files[i]);
	}
	for (unsigned i = 0; i < flush->begun.count; i++) {
		if (files[i].has_thread)
			pthread_join(files[i].thread, NULL);
		else
			write_one(&files[i]);
		if (files[i].result)
			flush->result = files[i].result;
	}
	return NULL;
}

void flush_begin(struct flush *flush)
{
	flush->begun = flush->later;
	flush->later.count = 0;
	flush->result = 0;
	flush->has_thread =
		flush->begun.count && !pthread_create(&flush->thread, NULL, write_all, flush);
	if (!flush->has_thread)
		write_all(flush);
}

static void join(struct flush *flush)
{
	if (flush->has_thread)
		pthread_join(flush->thread, NULL);
	flush->has_thread = false;
}

int flush_wait(struct flush *flush)
{
	join(flush);
	return flush->result;
}

void flush_deinit(struct flush *flush)
{
	join(flush);
	flush_begin(flush);
	join(flush);
	flush->result = 0; /* nobody relies on it */
}
