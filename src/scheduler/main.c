/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-scheduler: which node a pod with slices gets, and which devices there. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "net/service.h"
#include "scheduler/daemon.h"

#define LOG_TOPIC   LOG_PODS
#define DESCRIPTORS 4096
#define EXIT_FAILED 1
#define EXIT_USAGE  2

static void write_help(void)
{
	puts("vgpu-scheduler: kube-scheduler's extender and the webhook for pods with slices\n");
	settings_write_help(stdout);
	puts("  --help, -h, --version, -V");
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

static int start(struct loop *loop, const void *settings, void **ret_daemon, struct err *err)
{
	return daemon_start(loop, settings, (struct daemon **)ret_daemon, err);
}

static void stop(void *daemon)
{
	daemon_stop(daemon);
}

int main(int argc, char **argv)
{
	static const struct service service = {start, stop};
	struct settings settings;
	struct err err = ERR_NULL;
	int result = settings_read(argc, argv, &settings, &err);

	if (!result && (settings.wants_help || settings.wants_version)) {
		settings.wants_help ? write_help() : (void)puts(VGPU_VERSION);
		return 0;
	}
	allow_descriptors();
	/* lists of pods come and go as many small pieces: with these kept apart they are put together again and again */
	mallopt(M_MXFAST, 0);
	log_set_sink(&log_daemon);
	log_set_level(!result && settings.is_debug ? LOG_DEBUG : LOG_INFO);
	if (result) {
		log_error("the configuration is not understood", STR("why", err.text));
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	result = service_run(&service, &settings, &err);
	settings_deinit(&settings);
	if (result)
		log_error("the scheduler ends", STR("why", err.text));
	return result ? EXIT_FAILED : 0;
}
