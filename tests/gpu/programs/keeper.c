/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose memory is worth something: it fills a block with a pattern, launches kernels until its input
 * ends, and says then whether the pattern is whole. Run by tests/gpu/evict.py.
 *
 *	keeper BYTES
 *
 * A line "step KERNELS NS" for kernels that were waited for, with the time of CLOCK_MONOTONIC; at the end
 * "end launched=N counted=N wrong=N": how many were launched, what the device counted of them (0 on the simulated
 * node, where no code runs), and how many words of the pattern are others.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/load_device.h"

extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemcpyHtoD_v2_fn cuMemcpyHtoD_v2;
extern cuMemcpyDtoH_v2_fn cuMemcpyDtoH_v2;
extern cuStreamSynchronize_fn cuStreamSynchronize;

#define KERNEL_NS  1000000
#define STEP	   4		       /* kernels that are waited for together */
#define CHUNK	   (UINT64_C(8) << 20) /* words that are copied at a time */
#define WORD_BYTES sizeof(uint64_t)

static uint64_t *words;

/* Each place has a word of its own, so that what came back elsewhere is noticed. */
static uint64_t word_at(uint64_t place)
{
	return (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t chunk_at(uint64_t place, uint64_t count)
{
	return count - place < CHUNK ? count - place : CHUNK;
}

static void fill(CUdeviceptr block, uint64_t count)
{
	for (uint64_t at = 0; at < count; at += CHUNK) {
		uint64_t size = chunk_at(at, count);

		for (uint64_t i = 0; i < size; i++)
			words[i] = word_at(at + i);
		load_need(cuMemcpyHtoD_v2(block + at * WORD_BYTES, words, size * WORD_BYTES),
			"cuMemcpyHtoD");
	}
}

static uint64_t count_wrong(CUdeviceptr block, uint64_t count)
{
	uint64_t wrong = 0;

	for (uint64_t at = 0; at < count; at += CHUNK) {
		uint64_t size = chunk_at(at, count);

		load_need(cuMemcpyDtoH_v2(words, block + at * WORD_BYTES, size * WORD_BYTES),
			"cuMemcpyDtoH");
		for (uint64_t i = 0; i < size; i++)
			wrong += words[i] != word_at(at + i);
	}
	return wrong;
}

static bool has_ended(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char byte;

	return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(int argc, char **argv)
{
	uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) / WORD_BYTES : 0;
	uint64_t launched = 0, wrong;
	CUdeviceptr block;

	if (count == 0) {
		fprintf(stderr, "usage: keeper BYTES\n");
		return 2;
	}
	/* Who is evicted does not read its input: vgpu run's end must be enough. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	words = malloc(CHUNK * WORD_BYTES);
	if (words == NULL)
		return 1;
	load_prepare();
	load_need(cuMemAlloc_v2(&block, count * WORD_BYTES), "cuMemAlloc");
	fill(block, count);
	while (!has_ended()) {
		for (unsigned i = 0; i < STEP; i++, launched++)
			load_launch(load_stream[0], KERNEL_NS, 0, 1);
		load_need(cuStreamSynchronize(load_stream[0]), "cuStreamSynchronize");
		printf("step %llu %llu\n", (unsigned long long)launched,
			(unsigned long long)clock_now_ns());
	}
	wrong = count_wrong(block, count);
	printf("end launched=%llu counted=%u wrong=%llu\n", (unsigned long long)launched,
		load_count_records(), (unsigned long long)wrong);
	return wrong ? 1 : 0;
}
