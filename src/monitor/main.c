/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-monitor: tells what the slices of a node use, and containers whether they may work. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"
#include "monitor/audit.h"
#include "monitor/monitor.h"
#include "net/service.h"
#include "node/look.h"
#include "probe/probe.h"

#define LOG_TOPIC    LOG_NET
#define EXIT_FAILED  1
#define EXIT_USAGE   2
#define READ_SHOWN   1 /* of read_option() */
#define AUDIT_MOST_S 300
#define PAGE_BIND    "127.0.0.1:9396"

static const char help[] =
	"vgpu-monitor: tells what the slices of this node use, as metrics\n\n"
	"  --metrics-bind-address ADDRESS:PORT\n"
	"        where /metrics, /healthz and /readyz are served (:9394); empty: nowhere\n"
	"  --http[=ADDRESS:PORT]\n"
	"        serves a page for people (127.0.0.1:9396); at another address all that reach it "
	"see it\n"
	"  --legacy-metrics\n"
	"        metrics by their old names, too\n"
	"  --node-name NAME, $NODE_NAME\n"
	"        this node in the cluster; without it, there is none, and a pod is its UID\n"
	"  --hook-path FOLDER, $HOOK_PATH\n"
	"        where the device plugin has the folder `containers` (/usr/local/vgpu)\n"
	"  --shares-folder FOLDER\n"
	"        where it has the share files (/var/lib/cantaloupe/shares)\n"
	"  --pod-resources-socket FILE\n"
	"        the kubelet's, which tells what each container was given "
	"(/var/lib/kubelet/pod-resources/kubelet.sock);\n"
	"        empty: it is not asked\n"
	"  --resource-name NAME\n"
	"        by which containers ask for slices (nvidia.com/gpu)\n"
	"  --audit-interval SECONDS\n"
	"        between two comparisons of the driver's figures with what was granted, 1 to 300 "
	"(15)\n"
	"  --end-processes KIND[,KIND...]\n"
	"        a process is ended that is outside its container's slice (untracked), or has the "
	"most of\n"
	"        what its container takes beyond its quota (memory) or cap (compute); without it, "
	"none is\n"
	"  --nvml FILE\n"
	"        the library NVML, in place of the machine's own\n"
	"  --help, -h, --version, -V\n";

enum {
	OPTION_HELP = 1,
	OPTION_VERSION,
	OPTION_BIND,
	OPTION_HTTP,
	OPTION_LEGACY,
	OPTION_NODE,
	OPTION_HOOK,
	OPTION_NVML,
	OPTION_SHARES,
	OPTION_POD_RESOURCES,
	OPTION_RESOURCE,
	OPTION_AUDIT,
	OPTION_END,
	OPTION_IGNORED
};

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

static int refuse(const char *option, const char *value, const char *right)
{
	fprintf(stderr, "vgpu-monitor: %s is '%.100s': %s are right\n", option, value, right);
	return EXIT_USAGE;
}

/* 0; READ_SHOWN where something was only to be shown; EXIT_USAGE. */
static int read_option(int option, struct monitor_settings *settings)
{
	uint64_t seconds;

	switch (option) {
	case OPTION_HELP:
		fputs(help, stdout);
		return READ_SHOWN;
	case OPTION_VERSION:
		puts(VGPU_VERSION);
		return READ_SHOWN;
	case OPTION_BIND:
		settings->metrics_bind = optarg;
		return 0;
	case OPTION_HTTP:
		settings->page_bind = optarg ? optarg : PAGE_BIND;
		return 0;
	case OPTION_LEGACY:
		settings->has_legacy = true;
		return 0;
	case OPTION_NODE:
		settings->node = optarg;
		return 0;
	case OPTION_HOOK:
		settings->hook = optarg;
		return 0;
	case OPTION_NVML:
		settings->nvml = optarg;
		return 0;
	case OPTION_SHARES:
		settings->shares = optarg;
		return 0;
	case OPTION_POD_RESOURCES:
		settings->pod_resources = optarg;
		return 0;
	case OPTION_RESOURCE:
		settings->resource = optarg;
		return 0;
	case OPTION_AUDIT:
		if (parse_u64(optarg, AUDIT_MOST_S, &seconds) || !seconds)
			return refuse("--audit-interval", optarg, "seconds from 1 to 300");
		settings->audit_s = (unsigned)seconds;
		return 0;
	case OPTION_END:
		if (!audit_parse_kinds(optarg, &settings->ended))
			return refuse(
				"--end-processes", optarg, "some of untracked,memory,compute");
		return 0;
	case OPTION_IGNORED:
		return 0;
	default:
		return EXIT_USAGE; /* getopt has said what is wrong */
	}
}

/* As read_option(). */
static int read_settings(int argc, char **argv, struct monitor_settings *settings)
{
	static const struct option options[] = {{"help", no_argument, NULL, OPTION_HELP},
		{"h", no_argument, NULL, OPTION_HELP},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"V", no_argument, NULL, OPTION_VERSION},
		{"metrics-bind-address", required_argument, NULL, OPTION_BIND},
		{"http", optional_argument, NULL, OPTION_HTTP},
		{"legacy-metrics", no_argument, NULL, OPTION_LEGACY},
		{"node-name", required_argument, NULL, OPTION_NODE},
		{"hook-path", required_argument, NULL, OPTION_HOOK},
		{"nvml", required_argument, NULL, OPTION_NVML},
		{"shares-folder", required_argument, NULL, OPTION_SHARES},
		{"pod-resources-socket", required_argument, NULL, OPTION_POD_RESOURCES},
		{"resource-name", required_argument, NULL, OPTION_RESOURCE},
		{"audit-interval", required_argument, NULL, OPTION_AUDIT},
		{"end-processes", required_argument, NULL, OPTION_END},
		/* HAMi's log's */
		{"v", required_argument, NULL, OPTION_IGNORED},
		{"vmodule", required_argument, NULL, OPTION_IGNORED},
		{"logtostderr", optional_argument, NULL, OPTION_IGNORED},
		{"alsologtostderr", optional_argument, NULL, OPTION_IGNORED},
		{"stderrthreshold", required_argument, NULL, OPTION_IGNORED}, {0}};
	int option, r;

	*settings = (struct monitor_settings){.metrics_bind = ":9394",
		.page_bind = "",
		.node = variable("NODE_NAME", ""),
		.hook = variable("HOOK_PATH", "/usr/local/vgpu"),
		.shares = "/var/lib/cantaloupe/shares",
		.pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock",
		.resource = "nvidia.com/gpu",
		.audit_s = 15};
	while ((option = getopt_long_only(argc, argv, "", options, NULL)) != -1) {
		r = read_option(option, settings);
		if (r)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr, "vgpu-monitor: '%.100s' is no option; see --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	return 0;
}

static int start(struct loop *loop, const void *settings, void **ret_monitor, struct err *err)
{
	return monitor_start(loop, settings, (struct monitor **)ret_monitor, err);
}

static void stop(void *monitor)
{
	monitor_stop(monitor);
}

int main(int argc, char **argv)
{
	static const struct service service = {start, stop};
	struct monitor_settings settings;
	struct err err = ERR_NULL;
	int r = read_settings(argc, argv, &settings);

	if (r)
		return r == EXIT_USAGE ? EXIT_USAGE : 0;
	log_set_sink(&log_daemon);
	log_set_level(LOG_INFO);
	signal(SIGPIPE, SIG_IGN);
	/* A user's process that stands still is to hold up no scrape. Without root it would look at processes of its own user alone. */
	if (geteuid() == 0)
		look_begin(&probe_helper);
	if (service_run(&service, &settings, &err)) {
		log_error("the monitor ends", STR("why", err.text));
		return EXIT_FAILED;
	}
	return 0;
}
