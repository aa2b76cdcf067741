/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer for compilers that have none: replays the files of a folder, then FUZZ_RUNS mutations of
 * them from a fixed seed, so that a run can be repeated. The input of a crash is left in stderr.
 */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/fuzz/fuzz.h"

#define INPUTS	    64
#define INPUT_BYTES 4096

static struct {
	uint8_t bytes[INPUT_BYTES];
	size_t size;
} inputs[INPUTS];
static unsigned input_count;

static uint8_t input[INPUT_BYTES];
static size_t input_size;
static uint64_t seed = 1;

static unsigned below(unsigned limit)
{
	seed += 0x9e3779b97f4a7c15ull;
	return (unsigned)(hash_u64(seed) % limit);
}

/* Nothing here but what a signal handler may do. */
static void print_input(int number)
{
	static const char digits[] = "0123456789abcdef";
	char out[4];

	for (size_t i = 0; i < input_size; i++) {
		out[0] = '\\';
		out[1] = 'x';
		out[2] = digits[input[i] >> 4];
		out[3] = digits[input[i] & 15];
		if (write(STDERR_FILENO, out, sizeof(out)) < 0)
			break;
	}
	if (write(STDERR_FILENO, "\n", 1) < 0)
		input_size = 0;
	signal(number, SIG_DFL);
	raise(number);
}

/* In a buffer of exactly that size, so that a sanitizer sees every overrun. */
static void run_once(void)
{
	uint8_t *copy = malloc(input_size + !input_size);

	FUZZ_CHECK(copy);
	memcpy(copy, input, input_size);
	LLVMFuzzerTestOneInput(copy, input_size);
	free(copy);
}

static void load(const char *folder)
{
	struct dirent **names;
	int count = scandir(folder, &names, NULL, alphasort);
	char path[4096];

	FUZZ_CHECK(count >= 0);
	for (int i = 0; i < count; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		file = names[i]->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (file && input_count < INPUTS) {
			inputs[input_count].size =
				fread(inputs[input_count].bytes, 1, INPUT_BYTES, file);
			input_count++;
		}
		if (file)
			fclose(file);
		free(names[i]);
	}
	free(names);
}

static void insert(size_t at, uint8_t byte)
{
	if (input_size == INPUT_BYTES)
		return;
	memmove(input + at + 1, input + at, input_size - at);
	input[at] = byte;
	input_size++;
}

static void mutate(void)
{
	static const uint8_t telling[] = "\0\xff\n\r\t #019-+kmgtKMGT*/.end\x7f\x80";
	size_t at = below((unsigned)input_size + 1);
	uint8_t byte = below(2) ? telling[below(sizeof(telling) - 1)] : (uint8_t)below(256);
	size_t from, count;

	switch (below(5)) {
	case 0:
		insert(at, byte);
		break;
	case 1:
		if (at < input_size)
			input[at] = byte;
		break;
	case 2:
		if (at < input_size)
			input[at] ^= (uint8_t)(1 << below(8));
		break;
	case 3:
		count = below((unsigned)(input_size - at) + 1);
		count = below(4) && count > 8 ? 8 : count;
		memmove(input + at, input + at + count, input_size - at - count);
		input_size -= count;
		break;
	default:
		/* a piece of it once more */
		from = below((unsigned)input_size + 1);
		for (count = below(64); count > 0 && from < input_size; count--, from++)
			insert(at, input[from]);
	}
}

int main(int argc, char **argv)
{
	const char *text = getenv("FUZZ_RUNS");
	unsigned long runs = text ? strtoul(text, NULL, 10) : 100000;

	signal(SIGABRT, print_input);
	if (argc > 1)
		load(argv[1]);
	for (unsigned i = 0; i < input_count; i++) {
		input_size = inputs[i].size;
		memcpy(input, inputs[i].bytes, input_size);
		run_once();
	}
	for (unsigned long run = 0; run < runs; run++) {
		unsigned i = input_count ? below(input_count) : 0;

		input_size = inputs[i].size;
		memcpy(input, inputs[i].bytes, input_size);
		for (unsigned changes = 1 + below(6); changes > 0; changes--)
			mutate();
		run_once();
	}
	printf("%u files and %lu mutations\n", input_count, runs);
	return 0;
}
