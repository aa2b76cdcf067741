/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: modules and libraries. */
#include "tenant/memory/code.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/managed_data.h"

static const struct image unknown_image = {.is_known = false};

/* After a module was loaded: it goes again where the slice has no room for it. */
static CUresult loaded(CUresult r, CUmodule made, const struct image *image, struct code_load *load)
{
	bool has_room = code_load_end(image, load, r == CUDA_SUCCESS ? made : NULL);
	struct guard guard;

	if (has_room || r != CUDA_SUCCESS)
		return r;
	if (guard_begin_current(0, &guard) == CUDA_SUCCESS) {
		cuda.cuModuleUnload(made);
		guard_end(&guard);
	}
	managed_data_unloaded(made);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * The rest of a hook that loads code: what begins and ends it, the driver's call, what its image tells, and the
 * arguments behind the handle.
 */
#define LOAD(type, handle, begin, end, real, read_image, ...) \
	{                                                     \
		const struct image image_ = read_image;       \
		struct code_load load;                        \
		type made = NULL;                             \
		CUresult r;                                   \
                                                              \
		if (!handle)                                  \
			return real(handle, __VA_ARGS__);     \
		r = begin(&image_, &load);                    \
		if (r == CUDA_SUCCESS) {                      \
			r = real(&made, __VA_ARGS__);         \
			r = end(r, made, &image_, &load);     \
		}                                             \
		return HOOK_GIVE(r, handle, made);            \
	}
#define LOAD_MODULE(...)  LOAD(CUmodule, module, code_load_begin, loaded, __VA_ARGS__)
#define LOAD_LIBRARY(...) LOAD(CUlibrary, library, library_begin, library_loaded, __VA_ARGS__)

HOOK_BODY(cuModuleLoad, CUmodule *, module, const char *, path)
LOAD_MODULE(cuda.cuModuleLoad, image_read_file(path), path)

HOOK_BODY(cuModuleLoadData, CUmodule *, module, const void *, data)
LOAD_MODULE(cuda.cuModuleLoadData, image_read(data), data)

HOOK_BODY(cuModuleLoadDataEx, CUmodule *, module, const void *, data, unsigned int, count,
	CUjit_option *, options, void **, values)
LOAD_MODULE(cuda.cuModuleLoadDataEx, image_read(data), data, count, options, values)

HOOK_BODY(cuModuleLoadFatBinary, CUmodule *, module, const void *, data)
LOAD_MODULE(cuda.cuModuleLoadFatBinary, image_read(data), data)

HOOK_BODY(cuModuleUnload, CUmodule, module)
{
	struct guard guard;
	CUresult r = guard_begin_current(0, &guard);

	if (r != CUDA_SUCCESS)
		return cuda.cuModuleUnload(module);
	r = cuda.cuModuleUnload(module);
	if (r == CUDA_SUCCESS)
		managed_data_unloaded(module);
	guard_end(&guard);
	code_forget_launches();
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

	if (r == CUDA_SUCCESS && has_room && !libraries_keep(made, image))
		has_room = false;
	if (r != CUDA_SUCCESS || has_room)
		return r;
	cuda.cuLibraryUnload(made);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

HOOK_BODY(cuLibraryLoadData, CUlibrary *, library, const void *, data, CUjit_option *, options,
	void **, values, unsigned int, count, CUlibraryOption *, library_options, void **,
	library_values, unsigned int, library_count)
LOAD_LIBRARY(cuda.cuLibraryLoadData, image_read(data), data, options, values, count,
	library_options, library_values, library_count)

HOOK_BODY(cuLibraryLoadFromFile, CUlibrary *, library, const char *, path, CUjit_option *, options,
	void **, values, unsigned int, count, CUlibraryOption *, library_options, void **,
	library_values, unsigned int, library_count)
LOAD_LIBRARY(cuda.cuLibraryLoadFromFile, image_read_file(path), path, options, values, count,
	library_options, library_values, library_count)

static CUresult unload_library(CUlibrary library)
{
	struct guard guard;
	CUresult r;

	libraries_forget(library);
	r = guard_begin_current(0, &guard);
	if (r != CUDA_SUCCESS)
		return cuda.cuLibraryUnload(library);
	r = cuda.cuLibraryUnload(library);
	if (r == CUDA_SUCCESS)
		managed_data_unloaded(library);
	guard_end(&guard);
	code_forget_launches();
	return r;
}

HOOK_BODY(cuLibraryUnload, CUlibrary, library)
{
	CUresult r;

	if (!libraries_enter(library))
		return libraries_unloaded(library) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	r = unload_library(library);
	libraries_leave();
	return r;
}

HOOK_BODY(cuLibraryGetModule, CUmodule *, module, CUlibrary, library)
{
	struct code_use use;
	CUresult r = code_use_begin(library, &use);

	return r == CUDA_SUCCESS ? code_use_end(&use, cuda.cuLibraryGetModule(module, library)) : r;
}

HOOK_BODY(cuLibraryGetGlobal, CUdeviceptr *, pointer, size_t *, bytes, CUlibrary, library,
	const char *, name)
{
	struct code_use use;
	CUresult r = code_use_begin(library, &use);

	return r == CUDA_SUCCESS
		       ? code_use_end(&use, cuda.cuLibraryGetGlobal(pointer, bytes, library, name))
		       : r;
}

HOOK_BODY(cuLibraryGetManaged, CUdeviceptr *, pointer, size_t *, bytes, CUlibrary, library,
	const char *, name)
{
	struct code_use use;
	CUresult r = code_use_begin(library, &use);

	return r == CUDA_SUCCESS
		       ? code_use_end(&use, cuda.cuLibraryGetManaged(pointer, bytes, library, name))
		       : r;
}

HOOK_BODY(cuLibraryGetUnifiedFunction, void **, function, CUlibrary, library, const char *, symbol)
{
	struct code_use use;
	CUresult r = code_use_begin(library, &use);

	return r == CUDA_SUCCESS ? code_use_end(&use, cuda.cuLibraryGetUnifiedFunction(
							      function, library, symbol))
				 : r;
}

HOOK_BODY(cuKernelGetFunction, CUfunction *, function, CUkernel, kernel)
{
	struct code_use use;
	CUresult r = code_use_kernel_begin(kernel, &use);

	return r == CUDA_SUCCESS ? code_use_end(&use, cuda.cuKernelGetFunction(function, kernel))
				 : r;
}

HOOK_BODY(cuFuncLoad, CUfunction, function)
{
	struct code_load load;
	CUresult r = code_load_begin(&unknown_image, &load);

	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuFuncLoad(function);
	return code_load_end(&unknown_image, &load, NULL) || r != CUDA_SUCCESS
		       ? r
		       : CUDA_ERROR_OUT_OF_MEMORY;
}
