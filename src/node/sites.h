/* SPDX-License-Identifier: Apache-2.0 */
/* Where on this machine there are slices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "node/account.h"

/* A place where a slice is, or a region that may be one's. */
struct site {
	char *name;   /* for people */
	char *folder; /* the slice's folder, or NULL where there is only a region */
	char *region; /* path of the region; it need not exist where there is a folder */
	char *mapped; /* how it is opened (node/mapped.h) where it was found as a mapping; the path is for people then */
	char *own_path; /* where that may not be opened: as one's own process means it (node/far.h); NULL */
	pid_t pid;	/* that process */
	bool is_guess;	/* found as a process's mapping: it may be something else entirely */
	bool is_likely; /* such a one has a region's size, or the place that it has in a container: where it is none, it was broken */
	uid_t owner;	/* of the folder, or of the process that has it mapped */
	bool is_owners; /* of a mapping: the region is that user's, too */
	bool is_sim;	/* on the simulated node; of others' slices this is not believed */
	dev_t device;	/* of the region; 0 where it does not exist yet */
	ino_t inode;
	dev_t folder_device; /* 0 where there is only a region */
	ino_t folder_inode;
};

/* Folders of slices that were not looked at, as others than their owners may write to them. */
struct sites_distrusted {
	unsigned count;
	char path[256]; /* of the first, and what it is */
	unsigned mode;
	uid_t owner;
};

/* What is told of together: how many, and the first. */
struct sites_some {
	unsigned count;
	char path[256];
};

struct sites {
	struct site *list;
	size_t count, capacity;
	unsigned most_of_user; /* so many folders of each user but root are looked at; 0: all */
	bool knows_users; /* users whose number this machine does not know have one account together: for who has the machine's list of them */
	struct accounts accounts;
	unsigned strange_count; /* mappings on file systems that might never answer */
	struct sites_distrusted distrusted;
	struct sites_some
		strangers; /* regions that stand where the user's own are, and are others' */
	/* Where folders stand by names that no slice can have: of two such nobody could tell which is meant. */
	struct sites_some misnamed;
};

/* For who is not to be kept busy by any user: it is many more than a machine can run. */
#define SITES_OF_USER 256

#define SITES_NULL     \
	(struct sites) \
	{              \
		0      \
	}
#define SITES_FEW                                                  \
	(struct sites)                                             \
	{                                                          \
		.most_of_user = SITES_OF_USER, .knows_users = true \
	}

/*
 * Looks where slices are: the folders of `vgpu run` (of every user, as far as they may be read),
 * the caches of containers, and whatever region a process has mapped. With VGPU_STATE set only
 * there. Each region is found once. 0 or -ENOMEM.
 */
int sites_find(struct sites *sites, struct err *err) MUST_CHECK;

/*
 * Looks for the folders of `vgpu run` alone, of every user, as far as they may be read; not at more than SITES_OF_USER of each but root. 0 or
 * -ENOMEM.
 */
int sites_find_folders(struct sites *sites, struct err *err) MUST_CHECK;

/* The same, and as many as there are. */
int sites_find_all_folders(struct sites *sites, struct err *err) MUST_CHECK;

/* How many were left out, of all users. */
size_t sites_left_out(const struct sites *sites);

/* Adds the region at the path. 0, -ENOMEM, or another -errno where there is nothing at the path. */
int sites_add(struct sites *sites, const char *path, struct err *err) MUST_CHECK;

/* Whether a person who says NAME, or USER/NAME, may mean this one. */
bool sites_is_called(const struct site *site, const char *text);

/* Frees what it holds, and makes it SITES_NULL; fit for that. */
void sites_clear(struct sites *sites);
