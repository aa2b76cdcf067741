/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's own filter of system calls. */
#include "tests/hostile/filtered.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "tests/hostile/hostile.h"

struct denied {
	unsigned call, argument;
	unsigned char to_argument; /* 2 instructions are left out where any is denied */
};

static void *begin(void *denied)
{
	const struct denied *of = denied;
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, of->call, of->to_argument, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, of->argument, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOENT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	cuInit(0);
	return NULL;
}

void filtered_begin(int call, int argument)
{
	struct denied denied = {(unsigned)call, (unsigned)argument, argument < 0 ? 2 : 0};
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, begin, &denied));
	MUST(pthread_join(thread, NULL));
}
