/* SPDX-License-Identifier: Apache-2.0 */
/* The real driver. */
#include "gpu/driver.h"

static CUresult absent_cuda(void)
{
	return CUDA_ERROR_NOT_FOUND;
}

static nvmlReturn_t absent_nvml(void)
{
	return NVML_ERROR_FUNCTION_NOT_FOUND;
}

int driver_is_absent(const void *function)
{
	return function == (const void *)absent_cuda || function == (const void *)absent_nvml;
}

/* The calling conventions that we know let a function ignore the arguments that it is given. */
static void *or_absent(void *found, void *absent)
{
	return found ? found : absent;
}

void driver_load_cuda(void *library, driver_lookup_fn *lookup, struct cuda_driver *ret_driver)
{
#define HOOK(s) ret_driver->s = or_absent(lookup(library, #s), (void *)absent_cuda);
#define CALL(s) ret_driver->s = lookup(library, #s);
#include "gpu/cuda.def"
}

void driver_load_nvml(void *library, driver_lookup_fn *lookup, struct nvml_driver *ret_driver)
{
#define HOOK(s) ret_driver->s = or_absent(lookup(library, #s), (void *)absent_nvml);
#define CALL(s) ret_driver->s = lookup(library, #s);
#include "gpu/nvml.def"
}

void driver_load_nvml_node(void *library, driver_lookup_fn *lookup, struct nvml_node *ret_node)
{
#define CALL(s) ret_node->s = lookup(library, #s);
#include "gpu/nvml_node.def"
}
