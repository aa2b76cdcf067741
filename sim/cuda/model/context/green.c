/* SPDX-License-Identifier: Apache-2.0 */
/* Which green context a stream belongs to. */
#include "sim/cuda/model/context/green.h"

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/time/timeline.h"

struct green *green_of_stream(CUstream handle, const struct stream *stream)
{
	return !handle ? context_current_green() : stream->green;
}
