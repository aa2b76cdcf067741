/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of vgpu plan and vgpu explain. */
#include "plan/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

enum {
	NODES = 256,
	PODS,
	ADD_NODE,
	DRAIN,
	KUBECONFIG,
	CONTEXT,
	CONFIG,
	POLICY,
	DEVICE_POLICY,
	SCHEDULER,
	SCORES,
	JSON
};

static const struct option table[] = {
	{"nodes", required_argument, NULL, NODES},
	{"pods", required_argument, NULL, PODS},
	{"add-node", required_argument, NULL, ADD_NODE},
	{"drain", required_argument, NULL, DRAIN},
	{"kubeconfig", required_argument, NULL, KUBECONFIG},
	{"context", required_argument, NULL, CONTEXT},
	{"namespace", required_argument, NULL, 'n'},
	{"config", required_argument, NULL, CONFIG},
	{"node-policy", required_argument, NULL, POLICY},
	{"device-policy", required_argument, NULL, DEVICE_POLICY},
	{"scheduler-name", required_argument, NULL, SCHEDULER},
	{"scores", no_argument, NULL, SCORES},
	{"json", no_argument, NULL, JSON},
	{0},
};

static int add(struct options_list *list, const char *value, const char *name, struct err *err)
{
	if (list->count == OPTIONS_LIST)
		return err_set(err, EINVAL, "--%s is given more than %d times", name, OPTIONS_LIST);
	list->at[list->count++] = value;
	return 0;
}

/* The scheduler reads its own flags. */
static int pass(struct options *options, const char *flag, const char *value, struct err *err)
{
	const int most = (int)(sizeof(options->words) / sizeof(*options->words)) - 2;

	if (options->word_count >= most)
		return err_set(err, EINVAL, "%s is given too often", flag);
	options->words[options->word_count++] = flag;
	options->words[options->word_count++] = value;
	return 0;
}

static int take(struct options *options, int option, const char *value, struct err *err)
{
	switch (option) {
	case NODES:
		return add(&options->nodes, value, "nodes", err);
	case PODS:
		return add(&options->pods, value, "pods", err);
	case ADD_NODE:
		return add(&options->added, value, "add-node", err);
	case DRAIN:
		return add(&options->drained, value, "drain", err);
	case CONFIG:
		return pass(options, "--device-config-file", value, err);
	case POLICY:
		return pass(options, "--node-scheduler-policy", value, err);
	case DEVICE_POLICY:
		return pass(options, "--gpu-scheduler-policy", value, err);
	case SCHEDULER:
		return pass(options, "--scheduler-name", value, err);
	case KUBECONFIG:
		options->kubeconfig = value;
		return 0;
	case CONTEXT:
		options->context = value;
		return 0;
	case 'n':
		options->namespace = value;
		return 0;
	case SCORES:
		options->with_scores = true;
		return 0;
	default:
		options->is_json = true;
		return 0;
	}
}

/* "NAMESPACE/NAME", as the table has it, or the name alone. */
static void take_pod(struct options *options, char *text)
{
	char *slash = strchr(text, '/');

	options->pod = slash ? slash + 1 : text;
	if (!slash)
		return;
	*slash = '\0';
	options->namespace = text;
}

static int check(const struct options *options, struct err *err)
{
	if (options->is_explain && (!options->pod || !*options->pod))
		return err_set(err, EINVAL, "a pod is needed: vgpu explain [NAMESPACE/]POD");
	if (options->is_explain && (options->added.count || options->drained.count))
		return err_set(err, EINVAL, "--add-node and --drain are of `vgpu plan`");
	if (!options->is_explain && options->nodes.count &&
		(options->kubeconfig || options->context))
		return err_set(err, EINVAL,
			"--nodes goes without a cluster, and --kubeconfig and --context name one");
	return 0;
}

/* The names by which policies are known; the scheduler takes an unknown one for its default. */
static int check_policies(const struct settings *settings, struct err *err)
{
	if (strcmp(settings->node_policy, "binpack") != 0 &&
		strcmp(settings->node_policy, "spread") != 0)
		return err_set(err, EINVAL, "--node-policy is '%.80s'; binpack or spread is right",
			settings->node_policy);
	return 0;
}

int options_read(int argc, char **argv, struct options *ret_options, struct err *err)
{
	struct options *options = ret_options;
	int option, result = 0;

	*options = (struct options){.is_explain = !strcmp(argv[0], "explain"),
		.namespace = "default",
		.words = {"vgpu-plan"},
		.word_count = 1};
	opterr = 0;
	while (!result && (option = getopt_long(argc, argv, ":n:", table, NULL)) != -1) {
		if (option == ':')
			result = err_set(err, EINVAL, "%.100s needs a value", argv[optind - 1]);
		else if (option == '?')
			result = err_set(err, EINVAL, "unknown option '%.100s'; see `vgpu help %s`",
				argv[optind - 1], argv[0]);
		else
			result = take(options, option, optarg, err);
	}
	if (!result && options->is_explain && optind < argc)
		take_pod(options, argv[optind++]);
	if (!result && optind < argc)
		result = err_set(err, EINVAL, "'%.100s' is not expected here; see `vgpu help %s`",
			argv[optind], argv[0]);
	if (!result)
		result = check(options, err);
	if (!result)
		result = settings_read(
			options->word_count, (char **)options->words, &options->settings, err);
	return result ? result : check_policies(&options->settings, err);
}

void options_deinit(struct options *options)
{
	settings_deinit(&options->settings);
}
