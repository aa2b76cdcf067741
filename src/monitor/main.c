/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-monitor: tells what the slices of a node use, and containers whether they may work. */
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
#include "monitor/monitor.h"

#define LOG_TOPIC   LOG_NET
#define EXIT_FAILED 1
#define EXIT_USAGE  2

static const char help[] =
	"vgpu-monitor: tells what the slices of this node use, as metrics\n\n"
	"  --metrics-bind-address ADDRESS:PORT\n"
	"        where /metrics, /healthz and /readyz are served (:9394); empty: nowhere\n"
	"  --legacy-metrics\n"
	"        metrics by their old names, too\n"
	"  --node-name NAME, $NODE_NAME\n"
	"        this node in the cluster; without it, there is none, and a pod is its UID\n"
	"  --hook-path FOLDER, $HOOK_PATH\n"
	"        where the device plugin has the folder `containers` (/usr/local/vgpu)\n"
	"  --nvml FILE\n"
	"        the library NVML, in place of the machine's own\n"
	"  --help, --version\n";

enum {
	OPTION_HELP = 1,
	OPTION_VERSION,
	OPTION_BIND,
	OPTION_LEGACY,
	OPTION_NODE,
	OPTION_HOOK,
	OPTION_NVML,
	OPTION_IGNORED
};

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* 0; 1 where something was only to be shown; EXIT_USAGE. */
static int read_settings(int argc, char **argv, struct monitor_settings *settings)
{
	static const struct option options[] = {{"help", no_argument, NULL, OPTION_HELP},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"metrics-bind-address", required_argument, NULL, OPTION_BIND},
		{"legacy-metrics", no_argument, NULL, OPTION_LEGACY},
		{"node-name", required_argument, NULL, OPTION_NODE},
		{"hook-path", required_argument, NULL, OPTION_HOOK},
		{"nvml", required_argument, NULL, OPTION_NVML},
		/* HAMi's log's */
		{"v", required_argument, NULL, OPTION_IGNORED},
		{"vmodule", required_argument, NULL, OPTION_IGNORED},
		{"logtostderr", optional_argument, NULL, OPTION_IGNORED},
		{"alsologtostderr", optional_argument, NULL, OPTION_IGNORED},
		{"stderrthreshold", required_argument, NULL, OPTION_IGNORED}, {0}};
	int option;

	*settings = (struct monitor_settings){.metrics_bind = ":9394",
		.node = variable("NODE_NAME", ""),
		.hook = variable("HOOK_PATH", "/usr/local/vgpu")};
	while ((option = getopt_long_only(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case OPTION_HELP:
			fputs(help, stdout);
			return 1;
		case OPTION_VERSION:
			puts(VGPU_VERSION);
			return 1;
		case OPTION_BIND:
			settings->metrics_bind = optarg;
			break;
		case OPTION_LEGACY:
			settings->has_legacy = true;
			break;
		case OPTION_NODE:
			settings->node = optarg;
			break;
		case OPTION_HOOK:
			settings->hook = optarg;
			break;
		case OPTION_NVML:
			settings->nvml = optarg;
			break;
		case OPTION_IGNORED:
			break;
		default:
			return EXIT_USAGE; /* getopt has said what is wrong */
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vgpu-monitor: '%.100s' is no option; see --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	return 0;
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

static int serve(struct loop *loop, const struct monitor_settings *settings, struct err *err)
{
	struct monitor *monitor;
	int r = monitor_start(loop, settings, &monitor, err);

	if (r)
		return r;
	while (!(r = loop_run(loop, UINT64_MAX)))
		;
	if (r < 0)
		err_set(err, -r, "the loop ended: %s", strerror(-r));
	monitor_stop(monitor);
	return r < 0 ? r : 0;
}

static int serve_until_told(const struct monitor_settings *settings, struct err *err)
{
	_cleanup_fd_ int signals = -1;
	struct loop_watch watch = {.ready = signal_came};
	struct loop *loop;
	int r = open_signals(&signals);

	if (!r)
		r = loop_new(&loop);
	if (r)
		return err_set(err, -r, "cannot start: %s", strerror(-r));
	watch.context = loop;
	r = loop_watch_add(loop, &watch, signals, EPOLLIN);
	if (r)
		err_set(err, -r, "cannot wait for signals: %s", strerror(-r));
	else
		r = serve(loop, settings, err);
	loop_free(loop);
	return r;
}

int main(int argc, char **argv)
{
	struct monitor_settings settings;
	struct err err = ERR_NULL;
	int r = read_settings(argc, argv, &settings);

	if (r)
		return r == EXIT_USAGE ? EXIT_USAGE : 0;
	log_set_sink(&log_daemon);
	log_set_level(LOG_INFO);
	if (serve_until_told(&settings, &err)) {
		log_error("the monitor ends", STR("why", err.text));
		return EXIT_FAILED;
	}
	return 0;
}
