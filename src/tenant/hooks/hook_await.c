/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: what a stream waits for that is no work of the device's: a word that somebody writes, and functions of the host.
 *
 * The program may be about to bring it about, and be held back by its limit as it does. Charged as work of the stream's, such a wait would be
 * owed, and make the next one longer by that, and so on.
 */
#include "tenant/compute/gate.h"
#include "tenant/hooks/hook.h"

#define AWAIT(symbol, patience_ns, ...)                                                          \
	HOOK_FORMS_UNLESS(symbol, _ptsz, hook_is_attached() && gate_is_free(), CUstream, stream, \
		__VA_ARGS__)                                                                     \
	{                                                                                        \
		(void)null_stream;                                                               \
		gate_break_slowly(stream, patience_ns);                                          \
		return real(stream, HOOK_NAMES(__VA_ARGS__));                                    \
	}
#define AWAIT_WORD(symbol, ...)	    AWAIT(symbol, GATE_WORD_NS, __VA_ARGS__)
#define AWAIT_FUNCTION(symbol, ...) AWAIT(symbol, GATE_FUNCTION_NS, __VA_ARGS__)

AWAIT_WORD(cuStreamWaitValue32, CUdeviceptr, address, cuuint32_t, value, unsigned int, flags)
AWAIT_WORD(cuStreamWaitValue32_v2, CUdeviceptr, address, cuuint32_t, value, unsigned int, flags)
AWAIT_WORD(cuStreamWaitValue64, CUdeviceptr, address, cuuint64_t, value, unsigned int, flags)
AWAIT_WORD(cuStreamWaitValue64_v2, CUdeviceptr, address, cuuint64_t, value, unsigned int, flags)
/* Some of these only write; another thread may change them before the driver reads them, so none is looked at. */
AWAIT_WORD(cuStreamBatchMemOp, unsigned int, count, CUstreamBatchMemOpParams *, operations,
	unsigned int, flags)
AWAIT_WORD(cuStreamBatchMemOp_v2, unsigned int, count, CUstreamBatchMemOpParams *, operations,
	unsigned int, flags)
AWAIT_FUNCTION(cuLaunchHostFunc, CUhostFn, function, void *, data)
AWAIT_FUNCTION(cuStreamAddCallback, CUstreamCallback, function, void *, data, unsigned int, flags)
