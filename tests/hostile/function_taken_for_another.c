/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of many functions in two contexts a pair is looked for whose handles, each with its context's, give one word by exclusive or.
 * The one, which needs nothing, is launched, and then the other, whose frames are 4 GiB.
 *
 * By that word a function was known that has been launched in its context, so the other one's frames were not charged: 5 GiB
 * were held in a slice of 2. Now a context is part of the word by a hash.
 */
#include <stdlib.h>

#include "tests/hostile/hostile.h"

#define FUNCTIONS   2000
#define FRAME_BYTES 16384
#define TEXT_BYTES  (FUNCTIONS * 256)

struct side {
	CUcontext context;
	CUmodule module;
	CUfunction functions[FUNCTIONS];
};

static void load(struct side *side, unsigned frame_bytes)
{
	char *text = malloc(TEXT_BYTES);
	size_t length;

	MUST(!text);
	length = (size_t)sprintf(text, ".version 7.0\n.target sm_70\n.address_size 64\n");
	for (int i = 0; i < FUNCTIONS; i++)
		length += (size_t)sprintf(text + length,
			".visible .entry k%d(.param .u64 out, .param .u64 n)\n{\n"
			"\t.local .align 8 .b8 frame[%u];\n\tret;\n}\n",
			i, frame_bytes);
	MUST(cuCtxSetCurrent(side->context));
	MUST(cuModuleLoadData(&side->module, text));
	free(text);
}

static void get(struct side *side, int i)
{
	char name[16];

	sprintf(name, "k%d", i);
	MUST(cuCtxSetCurrent(side->context));
	MUST(cuModuleGetFunction(&side->functions[i], side->module, name));
}

static uintptr_t word(const struct side *side, int i)
{
	return (uintptr_t)side->functions[i] ^ (uintptr_t)side->context << 1;
}

static bool find(const struct side *a, const struct side *b, int *ret_a, int *ret_b)
{
	for (int i = 0; i < FUNCTIONS; i++)
		for (int k = 0; k < FUNCTIONS; k++)
			if (word(a, i) == word(b, k)) {
				*ret_a = i;
				*ret_b = k;
				return true;
			}
	return false;
}

static void attack(void)
{
	static struct side small, large;
	int a = 0, b = 0;

	MUST(cuInit(0));
	MUST(cuCtxCreate_v2(&small.context, 0, 0));
	MUST(cuCtxCreate_v2(&large.context, 0, 0));
	load(&small, 16);
	load(&large, FRAME_BYTES);
	/* In turn, and not at regular places, so that their handles lie among each other. */
	for (int i = 0; i < FUNCTIONS; i++) {
		get(&small, i);
		MUST(!malloc((size_t)(rand() % 16 * 16)));
		get(&large, i);
		MUST(!malloc((size_t)(rand() % 16 * 16)));
	}
	/* Where there is no such pair, as may be on a card, any will do. */
	(void)find(&small, &large, &a, &b);
	MUST(cuCtxSetCurrent(small.context));
	MUST(hostile_launch(small.functions[a], NULL));
	MUST(cuCtxSynchronize());
	MUST(cuCtxSetCurrent(large.context));
	hostile_launch(large.functions[b], NULL);
	cuCtxSynchronize();
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
