/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-device-plugin: tells the kubelet which slices the node's devices have.
 *
 * It does not hand them out yet: Allocate is refused, so that no container starts without its limits.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "node/nvml_library.h"
#include "plugin/config.h"
#include "plugin/kubelet.h"
#include "plugin/slices.h"

#define LOG_TOPIC   LOG_KUBELET
#define EXIT_FAILED 1
#define EXIT_USAGE  2

static void write_help(void)
{
	puts("vgpu-device-plugin: tells the kubelet which slices this node's devices have\n");
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

static int serve(
	struct loop *loop, const struct config *config, struct service *service, struct err *err)
{
	const struct kubelet_request request = {config->kubelet_socket, config->resource_count};
	struct kubelet *kubelet;
	struct rpc *rpc;
	int result = rpc_new(loop, &rpc);

	if (result)
		return err_set(err, -result, "gRPC does not start: %s", strerror(-result));
	result = kubelet_start(loop, rpc, &request, service, &kubelet, err);
	if (!result) {
		while (!(result = loop_run(loop, UINT64_MAX)))
			;
		if (result < 0)
			err_set(err, -result, "the loop ended: %s", strerror(-result));
		kubelet_stop(kubelet);
	}
	rpc_free(rpc);
	return result < 0 ? result : 0;
}

static int serve_until_told(const struct config *config, struct service *service, struct err *err)
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
		result = serve(loop, config, service, err);
	loop_free(loop);
	return result;
}

static int run(const struct config *config, struct err *err)
{
	_cleanup_free_ struct inventory *devices = calloc(1, sizeof(*devices));
	_cleanup_free_ uint8_t *list = NULL;
	struct service service = {0};
	unsigned split_count = (unsigned)config->split_count;
	int result;

	if (!devices)
		return err_set(err, ENOMEM, "no memory");
	result = nvml_library_read_inventory(NULL, devices, err);
	if (result)
		return result < 0 ? result : -EIO;
	result = slices_pack(devices, split_count, &list, &service.list_bytes);
	if (result)
		return err_set(err, -result, "no memory");
	service.list = list;
	log_info("devices are read", U64("devices", devices->count),
		U64("slices", devices->count * split_count));
	return serve_until_told(config, &service, err);
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
	result = run(config, &err);
	config_free(config);
	if (result)
		log_error("the plugin ends", STR("why", err.text));
	return result ? EXIT_FAILED : 0;
}
