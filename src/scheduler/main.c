/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-scheduler: which node a pod with slices gets, and which devices there. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "scheduler/daemon.h"

#define LOG_TOPIC   LOG_PODS
#define DESCRIPTORS 4096
#define EXIT_FAILED 1
#define EXIT_USAGE  2

static void write_help(void)
{
	puts("vgpu-scheduler: kube-scheduler's extender and the webhook for pods with slices\n");
	settings_write_help(stdout);
	puts("  --help, --version");
}

static void signal_came(void *context, uint32_t events)
{
	loop_stop(context);
}

static int open_signals(int *ret_fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	/* a client that has gone is seen by the write that fails */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

/* A pod's soft limit may be below what connections take. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log_warn("few descriptors are allowed", STR("why", strerror(errno)));
}

static int serve(struct loop *loop, const struct settings *settings, struct err *err)
{
	struct daemon *daemon;
	int result = daemon_start(loop, settings, &daemon, err);

	if (result)
		return result;
	while (!(result = loop_run(loop, UINT64_MAX)))
		;
	if (result < 0)
		err_set(err, -result, "the loop ended: %s", strerror(-result));
	daemon_stop(daemon);
	return result < 0 ? result : 0;
}

static int serve_until_told(const struct settings *settings, struct err *err)
{
	_cleanup_fd_ int signals = -1;
	struct loop_watch watch = {.ready = signal_came};
	struct loop *loop;
	int result = open_signals(&signals);

	if (!result)
		result = loop_new(&loop);
	if (result)
		return err_set(err, -result, "cannot start: %s", strerror(-result));
	watch.context = loop;
	result = loop_watch_add(loop, &watch, signals, EPOLLIN);
	if (result)
		err_set(err, -result, "cannot wait for signals: %s", strerror(-result));
	else
		result = serve(loop, settings, err);
	loop_free(loop);
	return result;
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct err err = ERR_NULL;
	int result = settings_read(argc, argv, &settings, &err);

	if (!result && (settings.wants_help || settings.wants_version)) {
		settings.wants_help ? write_help() : (void)puts(VGPU_VERSION);
		return 0;
	}
	allow_descriptors();
	log_set_sink(&log_daemon);
	log_set_level(!result && settings.is_debug ? LOG_DEBUG : LOG_INFO);
	if (result) {
		log_error("the configuration is not understood", STR("why", err.text));
		return EXIT_USAGE;
	}
	result = serve_until_told(&settings, &err);
	settings_deinit(&settings);
	if (result)
		log_error("the scheduler ends", STR("why", err.text));
	return result ? EXIT_FAILED : 0;
}
