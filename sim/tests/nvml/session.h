/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of libnvidia-ml.so.1 have in common: a machine of two H200, and a beginning and end of the library. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/machine.h"
#include "sim/tests/nvml/scratch.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"
#undef ENTRY

#define MiB	 1048576ull

#define OK(call) assert_int_equal(call, NVML_SUCCESS)

static inline int begin(void **state)
{
	scratch_begin("h200x2");
	return nvmlInit_v2() == NVML_SUCCESS ? 0 : -1;
}

static inline int end(void **state)
{
	while (nvmlShutdown() == NVML_SUCCESS)
		;
	scratch_end();
	return 0;
}

static inline nvmlDevice_t device_at(unsigned int index)
{
	nvmlDevice_t device = NULL;

	OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
	return device;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
