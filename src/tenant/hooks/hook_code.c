/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: modules and libraries. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/code.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/managed_data.h"

static const struct image unknown_image = {.is_known = false};

/* In the driver, and what it had. Within a guard. What stays loaded stays charged. */
static CUresult unload_module(CUmodule module)
{
	uint64_t unloading = marks_unload_begin(module);
	CUresult r = cuda.cuModuleUnload(module);

	marks_unload_end(module, unloading, r == CUDA_SUCCESS);
	return r;
}

/* Where it cannot be begun, what the unloading gives back is found later. */
static void begin_end(struct guard *ret_guard)
{
	if (guard_begin_current(0, ret_guard) != CUDA_SUCCESS)
		log_debug("what is unloaded is found later");
	ret_guard->is_end = true;
}

/* What did not fit. */
static void unload_own(CUmodule module)
{
	struct code_pins_own own = code_pins_own_unload_begin((uintptr_t)module);
	struct guard guard;

	begin_end(&guard);
	unload_module(module);
	guard_end(&guard);
	code_pins_own_unload_end(&own);
}

/* After a module was loaded: it goes again where the slice has no room for it. */
static CUresult loaded(CUresult r, CUmodule made, const struct image *image, struct code_load *load)
{
	bool has_room, is_known = true;

	if (r == CUDA_SUCCESS) {
		managed_data_begin_owner(made);
		is_known = code_pins_module(made);
	}
	has_room = code_load_end(image, load, r == CUDA_SUCCESS ? made : NULL);
	if ((has_room && is_known) || r != CUDA_SUCCESS)
		return r;
	unload_own(made);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The program's image, or file, to be copied and read; in no slice the driver gets what the program gave. */
static CUresult open_image(const void *data, const char *path, struct image_source *ret_source)
{
	int r = 0;

	image_take(data, ret_source);
	if (state_enter() != STATE_OPEN || (!data && !path))
		return CUDA_SUCCESS;
	r = path ? image_open_file(path, ret_source) : image_open(data, ret_source);
	if (r == 0)
		return CUDA_SUCCESS;
	if (path && r != -ENOMEM && r != -EFBIG)
		return CUDA_ERROR_FILE_NOT_FOUND;
	log_error("an image cannot be copied, so it is refused", U64("errno", (uint64_t)-r));
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The rest of a hook that loads code: what its image is, what begins and ends it, and the driver's call. */
#define LOAD(type, handle, begin, end, bytes, path, call)                \
	{                                                                \
		struct image_source source;                              \
		struct code_load load;                                   \
		type made = NULL, *to = handle ? &made : NULL;           \
		CUresult r = open_image(bytes, path, &source);           \
		CURRENT_STAYS();                                         \
                                                                         \
		if (r != CUDA_SUCCESS)                                   \
			return r;                                        \
		r = to ? begin(&source.image, &load) : CUDA_SUCCESS;     \
		if (r == CUDA_SUCCESS) {                                 \
			r = call;                                        \
			r = to ? end(r, made, &source.image, &load) : r; \
		}                                                        \
		image_close(&source);                                    \
		return to ? HOOK_GIVE(r, handle, made) : r;              \
	}
#define LOAD_MODULE(...)  LOAD(CUmodule, module, code_load_begin, loaded, __VA_ARGS__)
#define LOAD_LIBRARY(...) LOAD(CUlibrary, library, library_begin, library_loaded, __VA_ARGS__)

HOOK_BODY(cuModuleLoad, CUmodule *, module, const char *, path)
LOAD_MODULE(NULL, path,
	source.data ? cuda.cuModuleLoadData(to, source.data) : cuda.cuModuleLoad(to, path))

HOOK_BODY(cuModuleLoadData, CUmodule *, module, const void *, data)
LOAD_MODULE(data, NULL, cuda.cuModuleLoadData(to, source.data))

HOOK_BODY(cuModuleLoadDataEx, CUmodule *, module, const void *, data, unsigned int, count,
	CUjit_option *, options, void **, values)
LOAD_MODULE(data, NULL, cuda.cuModuleLoadDataEx(to, source.data, count, options, values))

HOOK_BODY(cuModuleLoadFatBinary, CUmodule *, module, const void *, data)
LOAD_MODULE(data, NULL, cuda.cuModuleLoadFatBinary(to, source.data))

HOOK_BODY(cuModuleUnload, CUmodule, module)
{
	struct guard guard;
	CUresult r = code_pins_unload_begin((uintptr_t)module, CODE_PINS_WAIT_NS);

	if (r != CUDA_SUCCESS)
		return r;
	begin_end(&guard);
	r = unload_module(module);
	guard_end(&guard);
	code_pins_unload_end((uintptr_t)module, r == CUDA_SUCCESS);
	return r;
}

/*
 * A library takes nothing until it is used, unless the program asked for all to be loaded at once.
 * What its image tells is kept for its first use.
 */
static CUresult library_begin(const struct image *image, struct code_load *ret_load)
{
	CUresult r = code_check(image);

	return r == CUDA_SUCCESS ? code_load_begin(&unknown_image, ret_load) : r;
}

static CUresult library_loaded(
	CUresult r, CUlibrary made, const struct image *image, struct code_load *load)
{
	bool has_room = code_load_end(&unknown_image, load, NULL);
	struct code_pins_own own;

	if (r == CUDA_SUCCESS)
		managed_data_begin_owner(made);
	if (r == CUDA_SUCCESS && has_room && !libraries_keep(made, image))
		has_room = false;
	if (r != CUDA_SUCCESS || has_room)
		return r;
	own = code_pins_own_unload_begin((uintptr_t)made);
	libraries_end(made);
	code_pins_own_unload_end(&own);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The program's options, as the driver gets them. Without values, which some need not have, they stay so. */
#define OPTIONS_MOST 8 /* the driver knows two */
struct options {
	CUlibraryOption names[OPTIONS_MOST];
	void *values[OPTIONS_MOST];
	unsigned count;
	bool has_values;
	bool is_preserved;
	void *preserved; /* its value */
};

/* With our copy of the image the driver makes its own: what the program promises to keep is not what was read. */
static bool copy_options(const CUlibraryOption *names, void *const *values, unsigned count,
	struct options *ret_options)
{
	struct options *o = ret_options;

	*o = (struct options){.count = 0};
	o->has_values = count && values;
	if (count > OPTIONS_MOST || (count && !names))
		return false;
	if (count)
		memcpy(o->names, names, count * sizeof(o->names[0]));
	if (o->has_values)
		memcpy(o->values, values, count * sizeof(o->values[0]));
	for (unsigned i = 0; i < count; i++) {
		if (o->names[i] == CU_LIBRARY_BINARY_IS_PRESERVED) {
			o->is_preserved = true;
			o->preserved = o->values[i];
			continue;
		}
		o->names[o->count] = o->names[i];
		o->values[o->count++] = o->values[i];
	}
	return true;
}

/* For the driver to read itself, of an image that is the program's own. */
static void preserve(struct options *options)
{
	if (!options->is_preserved)
		return;
	options->names[options->count] = CU_LIBRARY_BINARY_IS_PRESERVED;
	options->values[options->count++] = options->preserved;
}

static CUresult load_library(CUlibrary *library, const struct image_source *source,
	CUjit_option *options, void **values, unsigned count, struct options *library_options)
{
	if (!source->copy)
		preserve(library_options);
	return cuda.cuLibraryLoadData(library, source->data, options, values, count,
		library_options->names,
		library_options->has_values ? library_options->values : NULL,
		library_options->count);
}

HOOK_BODY(cuLibraryLoadData, CUlibrary *, library, const void *, data, CUjit_option *, options,
	void **, values, unsigned int, count, CUlibraryOption *, library_options, void **,
	library_values, unsigned int, library_count)
{
	struct options copied;

	if (!copy_options(library_options, library_values, library_count, &copied))
		return CUDA_ERROR_INVALID_VALUE;
	LOAD_LIBRARY(data, NULL, load_library(to, &source, options, values, count, &copied))
}

HOOK_BODY(cuLibraryLoadFromFile, CUlibrary *, library, const char *, path, CUjit_option *, options,
	void **, values, unsigned int, count, CUlibraryOption *, library_options, void **,
	library_values, unsigned int, library_count)
{
	struct options copied;

	/* A file is not there to be preserved: the driver says the same. */
	if (!copy_options(library_options, library_values, library_count, &copied) ||
		copied.is_preserved)
		return CUDA_ERROR_INVALID_VALUE;
	LOAD_LIBRARY(NULL, path,
		source.data
			? load_library(to, &source, options, values, count, &copied)
			: cuda.cuLibraryLoadFromFile(to, path, options, values, count, copied.names,
				  copied.has_values ? copied.values : NULL, copied.count))
}

static CUresult unload_library(CUlibrary library)
{
	struct guard guard;
	CUresult r;

	begin_end(&guard);
	r = libraries_end(library);
	guard_end(&guard);
	return r;
}

HOOK_BODY(cuLibraryUnload, CUlibrary, library)
{
	CUresult r = code_pins_unload_begin((uintptr_t)library, CODE_PINS_WAIT_NS);

	if (r != CUDA_SUCCESS)
		return r;
	if (libraries_enter(library)) {
		r = unload_library(library);
		libraries_leave();
	} else {
		r = libraries_unloaded(library) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	code_pins_unload_end((uintptr_t)library, r == CUDA_SUCCESS);
	return r;
}

/* The rest of a hook that uses a library's code: the program gets what the driver made only where there is room. */
#define USE(type, to, begin, of, call)                        \
	{                                                     \
		struct code_use use;                          \
		type made = NULL, *own = (to) ? &made : NULL; \
		CUresult r;                                   \
		CURRENT_STAYS();                              \
                                                              \
		r = begin(of, &use);                          \
		if (r == CUDA_SUCCESS)                        \
			r = code_use_end(&use, call);         \
		if (r == CUDA_SUCCESS)                        \
			libraries_given(made);                \
		return own ? HOOK_GIVE(r, to, made) : r;      \
	}

HOOK_BODY(cuLibraryGetModule, CUmodule *, module, CUlibrary, library)
USE(CUmodule, module, code_use_begin, library, cuda.cuLibraryGetModule(own, library))

static CUresult use_data(cuLibraryGetGlobal_fn *real, CUdeviceptr *pointer, size_t *bytes,
	CUlibrary library, const char *name)
{
	CUdeviceptr made = 0;
	size_t size = 0;
	struct code_use use;
	CUresult r = code_use_begin(library, &use);

	if (r == CUDA_SUCCESS)
		r = code_use_end(
			&use, real(pointer ? &made : NULL, bytes ? &size : NULL, library, name));
	if (r == CUDA_SUCCESS && pointer)
		*pointer = made;
	if (r == CUDA_SUCCESS && bytes)
		*bytes = size;
	return r;
}

HOOK_BODY(cuLibraryGetGlobal, CUdeviceptr *, pointer, size_t *, bytes, CUlibrary, library,
	const char *, name)
{
	return use_data(cuda.cuLibraryGetGlobal, pointer, bytes, library, name);
}

HOOK_BODY(cuLibraryGetManaged, CUdeviceptr *, pointer, size_t *, bytes, CUlibrary, library,
	const char *, name)
{
	return use_data(cuda.cuLibraryGetManaged, pointer, bytes, library, name);
}

HOOK_BODY(cuLibraryGetUnifiedFunction, void **, function, CUlibrary, library, const char *, symbol)
USE(void *, function, code_use_begin, library,
	cuda.cuLibraryGetUnifiedFunction(own, library, symbol))

HOOK_BODY(cuKernelGetFunction, CUfunction *, function, CUkernel, kernel)
USE(CUfunction, function, code_use_kernel_begin, kernel, cuda.cuKernelGetFunction(own, kernel))

/* Of a kernel that stands in a function's place it loads the library. */
HOOK_BODY(cuFuncGetModule, CUmodule *, module, CUfunction, function)
{
	CODE_PIN_SCOPE pin;
	CUmodule made = NULL;
	CUresult r = code_pins_function(function, &pin);

	if (r == CUDA_SUCCESS && module && state_enter() != STATE_ASIDE)
		r = code_prepare(function, &pin);
	if (r != CUDA_SUCCESS)
		return r;
	if (!libraries_enter(function))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = cuda.cuFuncGetModule(module ? &made : NULL, function);
	libraries_leave();
	if (r == CUDA_SUCCESS && pin.is_library &&
		!code_pins_module_of(made, (CUlibrary)(uintptr_t)pin.owners[0]))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS)
		libraries_given(made);
	return module ? HOOK_GIVE(r, module, made) : r;
}

HOOK_BODY(cuFuncLoad, CUfunction, function)
{
	CODE_PIN_SCOPE pin;
	struct code_load load;
	CUresult r = code_pins_function(function, &pin);

	if (r == CUDA_SUCCESS)
		r = code_load_begin(&unknown_image, &load);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuFuncLoad(function);
	return code_load_end(&unknown_image, &load, NULL) || r != CUDA_SUCCESS
		       ? r
		       : CUDA_ERROR_OUT_OF_MEMORY;
}
