/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an image. */
#include "sim/cuda/model/code/image.h"

#include <stdlib.h>
#include <string.h>

void *image_append(void **array, unsigned int *count, size_t size)
{
	char *more = realloc(*array, (*count + 1) * size);

	if (!more)
		return NULL;
	*array = more;
	memset(more + *count * size, 0, size);
	return more + (*count)++ * size;
}

struct image_kernel *image_add_kernel(struct image *image, const char *name, size_t length)
{
	struct image_kernel *kernel =
		image_append((void **)&image->kernel, &image->kernel_count, sizeof(*kernel));

	if (!kernel)
		return NULL;
	kernel->duration_param = -1;
	kernel->duration_ns = IMAGE_DURATION_NONE;
	kernel->name = strndup(name, length);
	return kernel->name ? kernel : NULL;
}

struct image_global *image_add_global(struct image *image, const char *name, size_t length)
{
	struct image_global *global =
		image_append((void **)&image->global, &image->global_count, sizeof(*global));

	if (!global)
		return NULL;
	global->name = strndup(name, length);
	return global->name ? global : NULL;
}

static bool begins(const char *name, size_t length, const char *beginning)
{
	return length >= strlen(beginning) && memcmp(name, beginning, strlen(beginning)) == 0;
}

void image_note_needed(struct image *image, const char *name, size_t length)
{
	/* As CUDA 12's and 13's compilers name what launches kernels, and the toolkit's library what it asks of the driver. */
	image->has_malloc |= (length == 6 && begins(name, length, "malloc")) ||
			     begins(name, length, "cudaLaunchDevice") ||
			     begins(name, length, "__cudaCDP2") ||
			     begins(name, length, "__cuda_syscall_cnpv2");
	image->has_printf |= length == 7 && begins(name, length, "vprintf");
}

void image_free(struct image *image)
{
	if (!image)
		return;
	for (unsigned int i = 0; i < image->kernel_count; i++) {
		for (unsigned int j = 0; j < image->kernel[i].param_count; j++)
			free(image->kernel[i].param[j].name);
		free(image->kernel[i].param);
		free(image->kernel[i].name);
	}
	for (unsigned int i = 0; i < image->global_count; i++)
		free(image->global[i].name);
	free(image->kernel);
	free(image->global);
	free(image);
}

const struct image_kernel *image_find(const struct image *image, const char *name)
{
	for (unsigned int i = 0; i < image->kernel_count; i++) {
		if (strcmp(image->kernel[i].name, name) == 0)
			return &image->kernel[i];
	}
	return NULL;
}
