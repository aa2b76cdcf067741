/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control daemons of NVIDIA's Multi-Process Service.
 *
 * The folder of pipes is mounted into containers, so it stays as long as the plugin has the device: a daemon that is started again
 * is found in it by containers that run.
 */
#include "plugin/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "gpu/inventory.h"
#include "node/folder.h"

#define LOG_TOPIC   LOG_KUBELET

#define FOLDER_MODE 0755
#define LOG_MODE    0700
#define MEMORY_MODE 01777
#define POLL_NS	    (5ull * 1000000)	/* while the control program runs */
#define LOOK_NS	    (1000ull * 1000000) /* whether a daemon has died */
#define AGAIN_NS    (5ull * 1000000000) /* after a start that failed */
#define CLIENTS_NS  (5ull * 1000000000) /* who its clients are */
#define JOINED_NS \
	(5ull * 1000000000) /* by then what was made ready for a container says that it is a client */

struct daemon {
	char uuid[UUID_TEXT_BYTES];
	struct mps_place place;
	struct mps_run run;
	bool is_running;	  /* the control program, to start or to end it */
	bool has_clients, is_due; /* it must listen */
	uint64_t joined_ns, failed_ns;
	struct err failure; /* of the last start */
};

struct mps {
	struct loop *loop;
	struct mps_request request;
	struct loop_timer timer;
	struct daemon daemons[INVENTORY_MAX];
	unsigned count;
	uint64_t asked_ns; /* for clients */
	char program[PLACE_BYTES];
};

/* A UUID comes from NVML or from our own files; as a folder's name it is looked at all the same. */
static bool is_name(const char *uuid)
{
	return *uuid && *uuid != '.' && !strchr(uuid, '/') && strlen(uuid) < UUID_TEXT_BYTES;
}

static struct daemon *find(struct mps *mps, const char *uuid)
{
	struct daemon *daemon;

	for (unsigned i = 0; i < mps->count; i++)
		if (!strcmp(mps->daemons[i].uuid, uuid))
			return &mps->daemons[i];
	if (mps->count == INVENTORY_MAX || !is_name(uuid))
		return NULL;
	daemon = &mps->daemons[mps->count++];
	*daemon = (struct daemon){.has_clients = false};
	strcpy(daemon->uuid, uuid);
	snprintf(daemon->place.pipe, SHARE_PATH_BYTES, "%.100s/%.95s/pipe", mps->request.folder,
		uuid);
	snprintf(
		daemon->place.log, SHARE_PATH_BYTES, "%.100s/%.95s/log", mps->request.folder, uuid);
	snprintf(daemon->place.memory, SHARE_PATH_BYTES, "%.100s/%.95s/memory", mps->request.folder,
		uuid);
	return daemon;
}

/* What a daemon that is dead has left goes; the folders stay. */
static int make_folder(const char *path, unsigned mode, bool is_cleared, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	int r = folder_make(path, mode, &fd, err);
	DIR *folder = r == 0 && is_cleared ? opendir(path) : NULL;

	for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(fd, e->d_name, 0);
	if (folder)
		closedir(folder);
	return r;
}

static int make_place(const struct mps_place *place, struct err *err)
{
	int r = make_folder(place->pipe, FOLDER_MODE, true, err);

	if (r == 0)
		r = make_folder(place->log, LOG_MODE, true, err);
	/* Its clients of before may still have files there. */
	return r == 0 ? make_folder(place->memory, MEMORY_MODE, false, err) : r;
}

static int find_program(struct mps *mps, struct err *err)
{
	if (!*mps->request.program)
		return mps_daemon_find(mps->program, err);
	snprintf(mps->program, sizeof(mps->program), "%s", mps->request.program);
	return access(mps->program, X_OK) == 0
		       ? 0
		       : err_set(err, errno, "%.200s: %s", mps->program, strerror(errno));
}

static void look_soon(struct mps *mps, uint64_t pause_ns)
{
	loop_timer_set(mps->loop, &mps->timer, clock_now_ns() + pause_ns);
}

static void has_failed(struct daemon *daemon, const struct err *err)
{
	/* once, until it listens */
	if (!daemon->failed_ns)
		log_error("an MPS control daemon cannot be started", STR("device", daemon->uuid),
			STR("why", err->text));
	daemon->failed_ns = clock_now_ns();
	daemon->failure = *err;
	daemon->is_due = false;
}

static int is_on_its_way(const struct daemon *daemon, struct err *err)
{
	return err_set(err, EAGAIN, "the MPS control daemon of device %.100s does not listen yet",
		daemon->uuid);
}

/* -EAGAIN: it is on its way. */
static int begin_start(struct mps *mps, struct daemon *daemon, struct err *err)
{
	int r = find_program(mps, err);

	if (r == 0)
		r = make_place(&daemon->place, err);
	if (r == 0) {
		r = mps_daemon_begin_start(
			&daemon->place, mps->program, daemon->uuid, &daemon->run);
		if (r < 0)
			err_set(err, -r, "start the MPS control daemon: %s", strerror(-r));
	}
	if (r < 0) {
		has_failed(daemon, err);
		return r;
	}
	daemon->is_running = true;
	look_soon(mps, POLL_NS);
	return is_on_its_way(daemon, err);
}

static void begin_stop(struct mps *mps, struct daemon *daemon)
{
	struct err err = ERR_NULL;

	if (find_program(mps, &err) == 0 &&
		mps_daemon_begin_stop(&daemon->place, mps->program, &daemon->run) == 0)
		daemon->is_running = true;
}

static void poll_run(struct daemon *daemon)
{
	struct err err = ERR_NULL;
	bool is_start = daemon->run.is_start;
	int r = mps_daemon_poll(&daemon->place, &daemon->run, &err);

	if (r == -EAGAIN)
		return;
	daemon->is_running = false;
	if (r == 0) {
		daemon->failed_ns = 0;
		log_info(is_start ? "an MPS control daemon listens"
				  : "an MPS control daemon without clients has ended",
			STR("device", daemon->uuid));
	} else if (is_start) {
		has_failed(daemon, &err);
	} else {
		log_warn("an MPS control daemon does not end", STR("device", daemon->uuid));
	}
}

/* A daemon of a container that runs must not stay away, one that nobody uses must not stay. */
static void care_for(struct mps *mps, struct daemon *daemon)
{
	bool is_wanted = daemon->has_clients || daemon->is_due;
	bool is_alive = mps_daemon_is_alive(daemon->place.pipe);
	uint64_t now_ns = clock_now_ns();
	struct err ignored = ERR_NULL;

	if (is_alive && !is_wanted) {
		begin_stop(mps, daemon);
	} else if (!is_alive && is_wanted &&
		   (!daemon->failed_ns || now_ns - daemon->failed_ns >= AGAIN_NS)) {
		if (!daemon->failed_ns)
			log_warn("an MPS control daemon is not there and is started again",
				STR("device", daemon->uuid));
		(void)!begin_start(mps, daemon, &ignored);
	}
}

void mps_mark(struct mps *mps, const char *uuid)
{
	struct daemon *daemon = find(mps, uuid);

	if (daemon)
		daemon->has_clients = true;
}

static void ask_for_clients(struct mps *mps)
{
	bool had[INVENTORY_MAX];

	for (unsigned i = 0; i < mps->count; i++) {
		had[i] = mps->daemons[i].has_clients;
		mps->daemons[i].has_clients = false;
	}
	mps->asked_ns = clock_now_ns();
	if (mps->request.mark_clients(mps->request.context, mps))
		for (unsigned i = 0; i < mps->count; i++)
			mps->daemons[i].has_clients |= had[i];
	for (unsigned i = 0; i < mps->count; i++)
		mps->daemons[i].is_due &= mps->asked_ns - mps->daemons[i].joined_ns < JOINED_NS;
}

static void look(void *context)
{
	struct mps *mps = context;
	uint64_t pause_ns = LOOK_NS;

	if (clock_now_ns() - mps->asked_ns >= CLIENTS_NS)
		ask_for_clients(mps);
	for (unsigned i = 0; i < mps->count; i++) {
		struct daemon *daemon = &mps->daemons[i];

		if (daemon->is_running)
			poll_run(daemon);
		else
			care_for(mps, daemon);
		if (daemon->is_running)
			pause_ns = POLL_NS;
	}
	look_soon(mps, pause_ns);
}

int mps_join(struct mps *mps, const char *uuid, struct mps_place *ret_place, struct err *err)
{
	struct daemon *daemon = find(mps, uuid);

	if (!daemon)
		return err_set(err, EINVAL, "no MPS daemon can be had for device %.100s", uuid);
	if (daemon->is_running) {
		daemon->is_due |= daemon->run.is_start;
		return is_on_its_way(daemon, err);
	}
	if (mps_daemon_is_alive(daemon->place.pipe)) {
		daemon->joined_ns = clock_now_ns();
		daemon->is_due = true;
		*ret_place = daemon->place;
		if (!mps->timer.is_in)
			look_soon(mps, LOOK_NS);
		return 0;
	}
	if (daemon->failed_ns && clock_now_ns() - daemon->failed_ns < AGAIN_NS) {
		*err = daemon->failure;
		return -EIO;
	}
	daemon->joined_ns = clock_now_ns();
	daemon->is_due = true;
	return begin_start(mps, daemon, err);
}

/* What an earlier plugin has left. */
static int take_over(void *context, int folder_fd, const char *name)
{
	if (*name != '.')
		(void)find(context, name);
	return 0;
}

int mps_new(
	struct loop *loop, const struct mps_request *request, struct mps **ret_mps, struct err *err)
{
	_cleanup_fd_ int fd = open(request->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mps *mps = calloc(1, sizeof(*mps));

	if (!mps)
		return err_set(err, ENOMEM, "no memory");
	mps->loop = loop;
	mps->request = *request;
	mps->timer = (struct loop_timer){.due = look, .context = mps};
	/* without the folder there are none */
	if (fd >= 0 && folder_each(fd, take_over, mps) < 0)
		log_warn("MPS daemons that run may not all be found",
			STR("folder", request->folder));
	ask_for_clients(mps);
	if (mps->count)
		look_soon(mps, 0);
	*ret_mps = mps;
	return 0;
}

void mps_free(struct mps *mps)
{
	if (!mps)
		return;
	loop_timer_clear(mps->loop, &mps->timer);
	ask_for_clients(mps);
	for (unsigned i = 0; i < mps->count; i++) {
		struct daemon *daemon = &mps->daemons[i];
		struct err err = ERR_NULL;

		if (daemon->has_clients || daemon->is_due ||
			!mps_daemon_is_alive(daemon->place.pipe))
			continue;
		if (find_program(mps, &err) < 0 ||
			mps_daemon_stop(&daemon->place, mps->program) < 0)
			log_warn("an MPS control daemon without clients stays",
				STR("device", daemon->uuid));
	}
	free(mps);
}
