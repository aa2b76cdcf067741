/* SPDX-License-Identifier: Apache-2.0 */
/* What a piece of code writes to stderr. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct capture {
	int saved_fd, memory_fd;
	char text[32768];
};

static inline void capture_begin(struct capture *c)
{
	fflush(stderr);
	c->saved_fd = dup(STDERR_FILENO);
	c->memory_fd = memfd_create("stderr", MFD_CLOEXEC);
	/* several threads may write at once */
	fcntl(c->memory_fd, F_SETFL, O_APPEND);
	dup2(c->memory_fd, STDERR_FILENO);
}

/* Afterwards text holds it, with an ending zero byte. */
static inline void capture_end(struct capture *c)
{
	ssize_t length = pread(c->memory_fd, c->text, sizeof(c->text) - 1, 0);

	dup2(c->saved_fd, STDERR_FILENO);
	close(c->saved_fd);
	close(c->memory_fd);
	c->text[length < 0 ? 0 : length] = '\0';
}
