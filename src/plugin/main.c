/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-device-plugin: tells the kubelet which slices the node's devices have.
 *
 * It does not hand them out yet: Allocate is refused, so that no container starts without its limits.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "node/nvml_library.h"
#include "plugin/kubelet.h"
#include "plugin/slices.h"

#define LOG_TOPIC   LOG_KUBELET
#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define SPLIT_MOST  1000 /* slices of one device; the kubelet keeps a text for each */

struct settings {
	struct kubelet_request kubelet;
	unsigned split_count;
};

static const char help[] =
	"vgpu-device-plugin: tells the kubelet which slices this node's devices have\n"
	"\n"
	"  --kubelet-socket PATH       /var/lib/kubelet/device-plugins/kubelet.sock\n"
	"  --resource-name NAME        nvidia.com/gpu\n"
	"  --device-split-count COUNT  slices of one device (10)\n"
	"  --help, --version\n";

static int set(struct settings *settings, int option, const char *text, struct err *err)
{
	uint64_t number;

	switch (option) {
	case 's':
		settings->kubelet.socket_path = text;
		return 0;
	case 'r':
		settings->kubelet.resource_name = text;
		return 0;
	case 'c':
		if (parse_u64(text, SPLIT_MOST, &number) || !number)
			return err_set(err, EINVAL,
				"--device-split-count '%s' is not a number from 1 to %d", text,
				SPLIT_MOST);
		settings->split_count = (unsigned)number;
		return 0;
	default:
		return err_set(err, EINVAL, "unknown option; see --help");
	}
}

/* Ends the program where only something was to be shown. */
static int read_options(
	int argc, char **argv, struct settings *settings, bool *ret_was_shown, struct err *err)
{
	static const struct option options[] = {
		{"kubelet-socket", required_argument, NULL, 's'},
		{"resource-name", required_argument, NULL, 'r'},
		{"device-split-count", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int option, result;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		*ret_was_shown = option == 'h' || option == 'v';
		if (*ret_was_shown) {
			puts(option == 'h' ? help : VGPU_VERSION);
			return 0;
		}
		result = set(settings, option, optarg, err);
		if (result)
			return result;
	}
	return optind == argc ? 0
			      : err_set(err, EINVAL, "'%s' is no option; see --help", argv[optind]);
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

static int serve(struct loop *loop, const struct settings *settings, struct service *service,
	struct err *err)
{
	struct kubelet *kubelet;
	struct rpc *rpc;
	int result = rpc_new(loop, &rpc);

	if (result)
		return err_set(err, -result, "gRPC does not start: %s", strerror(-result));
	result = kubelet_start(loop, rpc, &settings->kubelet, service, &kubelet, err);
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

static int serve_until_told(
	const struct settings *settings, struct service *service, struct err *err)
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
		result = serve(loop, settings, service, err);
	loop_free(loop);
	return result;
}

static int run(const struct settings *settings, struct err *err)
{
	_cleanup_free_ struct inventory *devices = calloc(1, sizeof(*devices));
	_cleanup_free_ uint8_t *list = NULL;
	struct service service = {0};
	int result;

	if (!devices)
		return err_set(err, ENOMEM, "no memory");
	result = nvml_library_read_inventory(NULL, devices, err);
	if (result)
		return result < 0 ? result : -EIO;
	result = slices_pack(devices, settings->split_count, &list, &service.list_bytes);
	if (result)
		return err_set(err, -result, "no memory");
	service.list = list;
	log_info("devices are read", U64("devices", devices->count),
		U64("slices", devices->count * settings->split_count));
	return serve_until_told(settings, &service, err);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.kubelet = {.socket_path = "/var/lib/kubelet/device-plugins/kubelet.sock",
			.resource_name = "nvidia.com/gpu"},
		.split_count = 10,
	};
	struct err err = ERR_NULL;
	bool was_shown = false;
	int result = read_options(argc, argv, &settings, &was_shown, &err);

	if (was_shown)
		return 0;
	log_set_sink(&log_daemon);
	log_set_level(LOG_INFO);
	if (result) {
		log_error("the command line is not understood", STR("why", err.text));
		return EXIT_USAGE;
	}
	if (run(&settings, &err)) {
		log_error("the plugin ends", STR("why", err.text));
		return EXIT_FAILED;
	}
	return 0;
}
