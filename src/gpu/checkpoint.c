/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's checkpoints of other processes. */
#include "gpu/checkpoint.h"

#include <errno.h>

int checkpoint_start(
	void *library, driver_lookup_fn *lookup, struct checkpoint *ret_checkpoint, struct err *err)
{
	struct checkpoint c;
	CUresult r;

#define X(symbol) c.symbol = (symbol##_fn *)lookup(library, #symbol);
	CHECKPOINT_FUNCTIONS(X)
#undef X
#define X(symbol)                                                                                 \
	if (!c.symbol)                                                                            \
		return err_set(err, ENOSYS,                                                       \
			"this driver cannot move memory to the host (it has no %s); version 570 " \
			"or "                                                                     \
			"later is right",                                                         \
			#symbol);
	CHECKPOINT_FUNCTIONS(X)
#undef X
	r = c.cuInit(0);
	if (r != CUDA_SUCCESS)
		return checkpoint_explain(&c, "start the driver", r, err);
	*ret_checkpoint = c;
	return 0;
}

int checkpoint_explain(
	const struct checkpoint *checkpoint, const char *what, CUresult result, struct err *err)
{
	const char *name = NULL;

	if (checkpoint->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
		return err_set(err, EIO, "%s: the driver's error %d", what, (int)result);
	return err_set(err, EIO, "%s: %s", what, name);
}
