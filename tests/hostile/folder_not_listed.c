/* SPDX-License-Identifier: Apache-2.0 */
/* The slice's program forbids its own process to list folders, so that it meets nobody else's turn record. */
#include "tests/hostile/served.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void forbid(unsigned call)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void attack(void)
{
	CUfunction kernel;

	forbid(SYS_getdents64);
	served_begin();
	kernel = served_kernel();
	for (;;)
		served_launch(kernel, NULL, MS / 2);
}

int main(void)
{
	return served_beside_main(attack);
}
