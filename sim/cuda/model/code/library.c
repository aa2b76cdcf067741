/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: modules that have an instance in each context. */
#include "sim/cuda/model/code/library.h"

#include <stdlib.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"

CUresult library_new(struct image *image, struct module **ret_library)
{
	struct module *library = module_take_place();

	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	library->is_library = true;
	library->image = image;
	library->magic = MODULE_MAGIC;
	*ret_library = library;
	return CUDA_SUCCESS;
}

void library_end(struct module *library)
{
	while (library->instances)
		module_end(library->instances);
	module_end(library);
}

CUresult library_instantiate(
	struct module *library, struct context *context, struct module **ret_module)
{
	struct module *module;
	CUresult result;

	for (module = library->instances; module; module = module->next_instance) {
		if (module->context == context) {
			*ret_module = module;
			return CUDA_SUCCESS;
		}
	}
	result = module_new(context, library->image, &module);
	if (result != CUDA_SUCCESS)
		return result;
	module->library = library;
	module->next_instance = library->instances;
	library->instances = module;
	*ret_module = module;
	return CUDA_SUCCESS;
}
