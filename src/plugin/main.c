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
#include "plugin/config.h"
#include "plugin/plugin.h"

#define LOG_TOPIC   LOG_KUBELET
#define EXIT_FAILED 1
#define EXIT_USAGE  2

static void write_help(void)
{
	puts("vgpu-device-plugin: hands the slices of this node's devices out to its pods\n");
	flags_write_help(stdout);
	puts("  --help, --version");
}

static void signal_came(void *context, uint32_t events)
{
	loop_stop(context);
}

/* Before any thread is there: all of them have these signals blocked then. */
static int open_signals(int *ret_fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

static int serve(struct loop *loop, const struct config *config, struct err *err)
{
	struct plugin *plugin;
	int result = plugin_start(loop, config, &plugin, err);

	if (result)
		return result;
	while (!(result = loop_run(loop, UINT64_MAX)))
		;
	if (result < 0)
		err_set(err, -result, "the loop ended: %s", strerror(-result));
	plugin_stop(plugin);
	return result < 0 ? result : 0;
}

static int serve_until_told(const struct config *config, struct err *err)
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
		result = serve(loop, config, err);
	loop_free(loop);
	return result;
}

int main(int argc, char **argv)
{
	struct config *config = NULL;
	struct err err = ERR_NULL;
	struct flags flags;
	int result = flags_read(argc, argv, getenv, &flags, &err);

	if (!result && (flags.wants_help || flags.wants_version)) {
		flags.wants_help ? write_help() : (void)puts(VGPU_VERSION);
		return 0;
	}
	log_set_sink(&log_daemon);
	log_set_level(LOG_INFO);
	if (!result)
		result = config_load(&flags, &config, &err);
	if (result) {
		log_error("the configuration is not understood", STR("why", err.text));
		return EXIT_USAGE;
	}
	result = serve_until_told(config, &err);
	config_free(config);
	if (result)
		log_error("the plugin ends", STR("why", err.text));
	return result ? EXIT_FAILED : 0;
}
