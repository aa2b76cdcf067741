/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu plan and vgpu explain: another program, vgpu-plan, which is built where the libraries for Kubernetes are. vgpu needs none
 * of them and hands over to it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"

#define PROGRAM	   "vgpu-plan"
#define PATH_BYTES 4096

#define COMMON_HELP                                                                               \
	"  --config FILE         device-config.yaml of the scheduler; without it, defaults\n"     \
	"  --node-policy P       which node is taken, as it was told: binpack (as it is "         \
	"otherwise), spread\n"                                                                    \
	"  --device-policy P     which device is taken: spread (otherwise), binpack, mutex, "     \
	"numa, topology-aware\n"                                                                  \
	"  --scheduler-name S    the scheduler that new pods with devices are given to\n"         \
	"  --kubeconfig FILE     how the cluster is reached; else KUBECONFIG or ~/.kube/config\n" \
	"  --context NAME        the context of that file, instead of its current one\n"          \
	"  -n, --namespace NS    the namespace of objects that name none (default)\n"             \
	"  --scores              each node's and device's score, and the policy in force\n"       \
	"  --json                all of it for programs, with units in the names\n"

const char help_plan[] =
	"  --nodes FILE          nodes from a file instead of a cluster, as `kubectl get nodes -o\n"
	"                        yaml` writes them; pods and quotas may stand there, too\n"
	"  --pods FILE           pods from a file, or Deployments or Jobs, to place beside what\n"
	"                        waits already\n"
	"  --add-node NODE       one more node with nothing on it: like=NODE, or\n"
	"                        "
	"name=n9,type=NVIDIA-H100-80GB-HBM3,gpus=8,memory=81559Mi,split=10\n"
	"  --drain NODE          a node whose pods are placed again elsewhere\n" COMMON_HELP "\n"
	"Files are YAML or JSON, - is standard input; these four may be given several times. Says\n"
	"where each pod that waits would go, with which devices, and why not on each other node:\n"
	"the scheduler's own decision, and nothing is changed. Ends with 0 if all have a place, 1\n"
	"if not, 2 for input that is not understood, 3 if the cluster gives no answer.\n";

const char help_explain[] =
	"  --nodes FILE          nodes and pods from files instead of a cluster, as in vgpu plan\n"
	"  --pods FILE           pods from a file\n" COMMON_HELP "\n"
	"Of a pod that waits: what it asks, what is left of the quota, each node's answer, locks\n"
	"of nodes, its last events. Of one that runs: its devices, and whether its annotations go\n"
	"with what its node has. Ends with 0 if it runs or would be placed, 1 if not, 2 for input\n"
	"that is not understood or a pod that is not there, 3 if the cluster gives no answer.\n";

/* Beside vgpu, installed or in a build, or on the path. */
static void hand_over(char **words)
{
	char self[PATH_BYTES], path[PATH_BYTES + sizeof("/../plan/" PROGRAM)];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[length < 0 ? 0 : length] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		snprintf(path, sizeof(path), "%s/" PROGRAM, self);
		execv(path, words);
		snprintf(path, sizeof(path), "%s/../plan/" PROGRAM, self);
		execv(path, words);
	}
	execvp(PROGRAM, words);
}

static int run(int argc, char **argv, struct err *err)
{
	_cleanup_free_ char **words = calloc((size_t)argc + 2, sizeof(*words));
	char name[] = PROGRAM;

	if (!words)
		return err_set(err, ENOMEM, "no memory");
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return COMMAND_E_HELP;
	words[0] = name;
	memcpy(words + 1, argv, (size_t)argc * sizeof(*words));
	hand_over(words);
	if (errno != ENOENT)
		return err_set(err, errno, PROGRAM " does not start: %s", strerror(errno));
	return err_set(err, ENOENT,
		"`vgpu %s` needs " PROGRAM
		", which is not beside vgpu nor on the path; it is built "
		"where libcurl, jansson and libyaml are (meson's -Ddaemons)",
		argv[0]);
}

int command_plan(int argc, char **argv, int *ret_status, struct err *err)
{
	return run(argc, argv, err);
}

int command_explain(int argc, char **argv, int *ret_status, struct err *err)
{
	return run(argc, argv, err);
}
