/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control daemons of NVIDIA's Multi-Process Service, one for each device that is divided by it.
 *
 * One is started for the first container of its device and started again when it has died. It ends when no
 * container that is its client is left. It outlives the plugin: its clients go on, and the next plugin takes it over. All that is kept
 * of it is its folder, FOLDER/UUID; who its clients are, the shares of containers say.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "mps/daemon.h"

struct mps;

struct mps_request {
	const char *folder;  /* "/run/cantaloupe-mps"; the same on the host and here */
	const char *program; /* nvidia-cuda-mps-control; "": the one in PATH */
	/* Calls mps_mark() for the device of each container that is a client. -errno: nobody knows. */
	int (*mark_clients)(void *context, struct mps *mps);
	void *context;
};

/* Takes over what runs. The request's texts must live as long. -ENOMEM, or what the folder says; err is set. */
int mps_new(struct loop *loop, const struct mps_request *request, struct mps **ret_mps,
	struct err *err) MUST_CHECK;

/* Accepts NULL. Daemons without a client end. */
void mps_free(struct mps *mps);

/*
 * For a container that is about to be a client: the device's daemon is started where it does not listen. -EAGAIN: it is on
 * its way, to be asked for again in a moment. err is set with that and with other errors.
 */
int mps_join(
	struct mps *mps, const char *uuid, struct mps_place *ret_place, struct err *err) MUST_CHECK;

void mps_mark(struct mps *mps, const char *uuid);
