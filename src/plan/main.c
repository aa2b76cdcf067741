/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-plan: what `vgpu plan` and `vgpu explain` are. `vgpu help plan` has their help. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "plan/plan.h"

static void warn(const char *words)
{
	fputs("vgpu: ", stderr);
	text_put(stderr, words);
	fputc('\n', stderr);
}

static int run(const struct options *options, int *ret_status, struct err *err)
{
	struct load all;
	int result = load(options, warn, &all, err);

	if (result)
		return result;
	result = options->is_explain ? explain_show(options, &all, ret_status, err)
				     : plan_show(options, &all, ret_status, err);
	load_deinit(&all);
	if (!result && (fflush(stdout) != 0 || ferror(stdout)))
		result = err_set(err, EIO, "the output could not be written whole");
	return result;
}

int main(int argc, char **argv)
{
	struct err err = ERR_NULL;
	struct options options = {0};
	int result, status = PLAN_BAD_INPUT;

	log_set_level(LOG_OFF);
	signal(SIGPIPE, SIG_IGN); /* a connection that ends is seen by the write that fails */
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("vgpu-plan " VGPU_VERSION);
		return 0;
	}
	if (argc < 2 || (strcmp(argv[1], "plan") != 0 && strcmp(argv[1], "explain") != 0)) {
		warn("vgpu-plan is called as `vgpu plan` and `vgpu explain`; see `vgpu help plan`");
		return PLAN_BAD_INPUT;
	}
	if (options_read(argc - 1, argv + 1, &options, &err)) {
		warn(err.text);
		options_deinit(&options);
		return PLAN_BAD_INPUT;
	}
	result = run(&options, &status, &err);
	options_deinit(&options);
	if (!result)
		return status;
	warn(err.text);
	return result == -EINVAL ? PLAN_BAD_INPUT : PLAN_NO_ANSWER;
}
