/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of modules: variables, code, heaps and buffers of device code. */
#include <stdlib.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/machine/kept.h"

/*
 * Measured on an H200 with driver 580:
 *   variables of a module   one allocation like any other, as long as the module is loaded
 *   device malloc           138 MiB with the first module that calls it, and at the first launch the
 *                           heap: the limit and 2 MiB
 *   device printf           64 MiB with the first module that calls it, whatever the limit
 *   code                    nothing for some MiB
 * All but variables stays until the context ends, and is taken once.
 */
#define HEAP_BYTES (UINT64_C(2) << 20)

/* Estimated: more than 1.5 MiB of code took nothing. */
#define CODE_FIRST_BYTES (UINT64_C(4) << 20)

static uint64_t round_up(uint64_t bytes)
{
	uint64_t unit = driver.board->chunk_bytes;

	return (bytes + unit - 1) / unit * unit;
}

static void free_at(CUdeviceptr base)
{
	struct owner *owner = base != 0 ? address_find_owner(base) : NULL;

	if (owner)
		heap_free(owner, base);
}

static void drop_variables(struct module *module)
{
	for (unsigned int i = 0; module->globals && i < module->image->global_count; i++) {
		if (module->image->global[i].is_managed)
			free_at(module->globals[i]);
	}
	free_at(module->data);
	module->data = 0;
	free(module->globals);
	module->globals = NULL;
}

/* Places variables in the module's data, one behind the other. Returns the bytes of all. */
static size_t place_variables(struct module *module)
{
	size_t end = 0;

	for (unsigned int i = 0; i < module->image->global_count; i++) {
		const struct image_global *global = &module->image->global[i];
		size_t align = global->align > 0 ? global->align : 1;

		if (global->is_managed)
			continue;
		end = (end + align - 1) / align * align;
		module->globals[i] = end;
		end += global->size;
	}
	return end;
}

/* The driver fills managed variables on the device, and there they are then, if it has room. */
static CUresult take_managed(struct module *module, unsigned int index)
{
	CUdeviceptr base;
	CUresult result = heap_alloc_managed(
		module->context, module->image->global[index].size, CU_MEM_ATTACH_GLOBAL, &base);

	if (result != CUDA_SUCCESS)
		return result;
	module->globals[index] = base;
	(void)heap_move_managed((struct plain *)address_find_owner(base), module->context->device);
	return CUDA_SUCCESS;
}

static CUresult take_variables(struct module *module)
{
	unsigned int count = module->image->global_count;
	CUresult result = CUDA_SUCCESS;
	size_t bytes;

	if (count == 0)
		return CUDA_SUCCESS;
	module->globals = calloc(count, sizeof(*module->globals));
	if (!module->globals)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes = place_variables(module);
	/* Small ones share the packed chunks; only large ones show up as module data. */
	if (bytes > 0)
		result = heap_alloc(module->context, bytes,
			bytes > driver.board->chunk_bytes ? MACHINE_MODULE : MACHINE_PLAIN,
			&module->data);
	for (unsigned int i = 0; i < count; i++) {
		if (!module->image->global[i].is_managed)
			module->globals[i] += module->data;
		else if (result == CUDA_SUCCESS)
			result = take_managed(module, i);
	}
	if (result != CUDA_SUCCESS)
		drop_variables(module);
	return result;
}

/* The bytes that the context lacks for this much code. */
static uint64_t missing_code_bytes(const struct context_code *code, uint64_t bytes)
{
	uint64_t wanted = bytes > CODE_FIRST_BYTES ? round_up(bytes - CODE_FIRST_BYTES) : 0;

	return wanted > code->room_bytes ? wanted - code->room_bytes : 0;
}

CUresult module_take_memory(struct module *module)
{
	struct context_code *code = &module->context->code;
	const struct image *image = module->image;
	uint64_t room = missing_code_bytes(code, code->bytes + image->code_bytes);
	bool needs_malloc = image->has_malloc && !code->has_malloc;
	bool needs_printf = image->has_printf && !code->has_printf;
	uint64_t kept = room + (needs_malloc ? driver.board->malloc_bytes : 0) +
			(needs_printf ? driver.board->printf_bytes : 0);
	CUresult result = room_keep(module->context, MACHINE_MODULE, kept);

	if (result != CUDA_SUCCESS)
		return result;
	result = take_variables(module);
	if (result != CUDA_SUCCESS) {
		room_let_go(module->context, MACHINE_MODULE, kept);
		return result;
	}
	code->bytes += image->code_bytes;
	code->room_bytes += room;
	code->has_malloc |= needs_malloc;
	code->has_printf |= needs_printf;
	return CUDA_SUCCESS;
}

void module_give_memory(struct module *module)
{
	drop_variables(module);
	module->context->code.bytes -= module->image->code_bytes;
}

CUresult module_take_heap(struct module *module)
{
	struct context *context = module->context;
	CUresult result = CUDA_SUCCESS;

	if (module->image->has_malloc && !context->code.has_heap) {
		result = room_keep(context, MACHINE_MODULE,
			round_up(context_limit(context, CU_LIMIT_MALLOC_HEAP_SIZE)) + HEAP_BYTES);
		context->code.has_heap = result == CUDA_SUCCESS;
	}
	if (module->image->has_printf)
		context->code.has_printed = true;
	return result;
}
