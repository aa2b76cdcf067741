/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-device-plugin: hands the slices of a node's devices out to the containers of its pods. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/life.h"

#define LOG_TOPIC   LOG_KUBELET
#define EXIT_FAILED 1
#define EXIT_USAGE  2

static void write_help(void)
{
	puts("vgpu-device-plugin: hands the slices of this node's devices out to its pods\n");
	flags_write_help(stdout);
	puts("  --help, -h, --version, -V");
}

/* Signals that are there, told to the life of the plugin. */
struct told {
	struct loop *loop;
	struct life *life;
	int fd;
};

static void signal_came(void *context, uint32_t events)
{
	const struct told *told = context;
	struct signalfd_siginfo info;

	if (read(told->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		life_reload(told->life);
	else
		loop_stop(told->loop);
}

/* Before any thread is there: all of them have these signals blocked then. */
static int open_signals(int *ret_fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

/* Until a signal says so. Signals that come before it has begun wait. */
static int serve(struct told *told, const struct flags *flags, struct err *err)
{
	struct loop_watch watch = {.ready = signal_came, .context = told};
	int result = life_start(told->loop, flags, &told->life, err);

	if (result)
		return result;
	result = loop_watch_add(told->loop, &watch, told->fd, EPOLLIN);
	while (!result)
		result = loop_run(told->loop, UINT64_MAX);
	if (result < 0)
		err_set(err, -result, "the loop ended: %s", strerror(-result));
	else if (!life_goes_on(told->life))
		result = err_set(err, EIO, "the configuration was changed");
	loop_watch_remove(told->loop, &watch);
	life_stop(told->life);
	return result < 0 ? result : 0;
}

static int serve_until_told(const struct flags *flags, struct err *err)
{
	_cleanup_fd_ int signals = -1;
	struct told told;
	int result = open_signals(&signals);

	if (!result)
		result = loop_new(&told.loop);
	if (result)
		return err_set(err, -result, "cannot start: %s", strerror(-result));
	told.fd = signals;
	result = serve(&told, flags, err);
	loop_free(told.loop);
	return result;
}

int main(int argc, char **argv)
{
	struct err err = ERR_NULL;
	struct flags flags;
	int result = flags_read(argc, argv, getenv, &flags, &err);

	if (!result && (flags.wants_help || flags.wants_version)) {
		flags.wants_help ? write_help() : (void)puts(VGPU_VERSION);
		return 0;
	}
	log_set_sink(&log_daemon);
	log_set_level(LOG_INFO);
	result = result ? LIFE_E_CONFIG : serve_until_told(&flags, &err);
	if (result == LIFE_E_CONFIG) {
		log_error("the configuration is not understood", STR("why", err.text));
		return EXIT_USAGE;
	}
	if (result)
		log_error("the plugin ends", STR("why", err.text));
	return result ? EXIT_FAILED : 0;
}
