/* SPDX-License-Identifier: Apache-2.0 */
/* The table of parts: what each does at the turning points of a process (slice/parts.h). */
#include <stdatomic.h>
#include <stddef.h>

#include "tenant/hooks/hook.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/code.h"
#include "tenant/memory/code_pins.h"
#include "tenant/memory/code_uses.h"
#include "tenant/memory/context_calls.h"
#include "tenant/memory/contexts.h"
#include "tenant/compute/gate.h"
#include "tenant/memory/graphs.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/deferred_free.h"
#include "tenant/memory/launching.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/load_turn.h"
#include "tenant/memory/local.h"
#include "tenant/memory/makings.h"
#include "tenant/memory/managed_data.h"
#include "tenant/memory/mapped.h"
#include "tenant/memory/mapped_share.h"
#include "tenant/memory/mapped_turns.h"
#include "tenant/memory/marks.h"
#include "tenant/memory/multicast.h"
#include "tenant/compute/untracked.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/own_events.h"
#include "tenant/driver/scope.h"
#include "tenant/driver/symbols.h"
#include "tenant/slice/nvml.h"
#include "tenant/memory/oom.h"
#include "tenant/memory/oversubscribe.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"
#include "tenant/memory/pool_current.h"
#include "tenant/memory/pools.h"
#include "tenant/slice/quota.h"
#include "tenant/memory/ipc.h"
#include "tenant/slice/state.h"
#include "tenant/memory/graph_frames.h"
#include "tenant/memory/graph_survey.h"
#include "tenant/memory/runtime.h"
#include "tenant/memory/tiles.h"
#include "tenant/memory/quiet.h"
#include "tenant/memory/reconcile.h"

/* Every part has reset_after_fork(); the rest is named. In the order in which they are called. */
#define PART(part, ...)                                                                   \
	{                                                                                 \
		.name = #part, .reset_after_fork = part##_reset_after_fork, ##__VA_ARGS__ \
	}

/* clang-format off */
static const struct part parts[] = {
	PART(capture),
	PART(charge),
	PART(code),
	PART(code_pins, .life_ended = code_pins_life_ended),
	PART(code_uses),
	PART(marks, .context_comes = marks_context_comes, .context_ended = marks_context_ended),
	PART(context_calls),
	PART(contexts),
	PART(deferred_free, .context_ends = deferred_free_context_ends, .life_ended = deferred_free_life_ended,
		.collect = deferred_free_collect_all),
	PART(everywhere, .quota_comes = everywhere_quota_comes, .quota_came = everywhere_quota_came),
	PART(gate, .context_comes = gate_context_comes, .context_made = gate_context_made,
		.context_ends = gate_context_ends, .context_ended = gate_context_ended),
	PART(graphs),
	PART(holding, .life_ended = holding_life_ended),
	PART(launching),
	PART(libraries, .life_ended = libraries_life_ended),
	PART(load_turn),
	PART(local, .life_ended = local_life_ended),
	PART(makings),
	PART(managed_data),
	PART(mapped),
	PART(mapped_share),
	PART(mapped_turns),
	PART(multicast, .object_ended = multicast_object_ended),
	PART(nvml),
	PART(oversubscribe),
	PART(own_events),
	PART(own_pid),
	PART(pool_current, .context_ended = pool_current_context_ended),
	PART(pools, .collect = pools_collect, .trim = pools_trim),
	PART(quota),
	PART(ipc),
	PART(graph_survey),
	PART(graph_frames, .life_ended = graph_frames_life_ended),
	PART(runtime, .life_ended = runtime_life_ended),
	PART(tiles, .life_ended = tiles_life_ended),
	PART(untracked),
	PART(quiet),
	PART(reconcile, .life_ended = reconcile_life_ended, .compare = reconcile_compare),
	PART(oom, .compare = oom_compare), /* after the books are right */
};
/* clang-format on */

_Atomic bool hook_has_cuda, hook_has_nvml;

int hook_begun_slowly(void)
{
	if (!state_has_begun())
		state_meet_driver();
	/* relaxed: see hook_begun() */
	if (atomic_load_explicit(&call_end_is_awaited, memory_order_relaxed))
		quiet_wait();
	return 0;
}

void hook_ended_slowly(void)
{
	reconcile_pay();
}

bool hook_attach_cuda_slowly(void)
{
	CANCEL_PUT_OFF; /* dlsym() comes here, too */

	if (!attach_cuda())
		return false;
	parts_hand_down(parts, ARRAY_SIZE(parts));
	/* pairs with the acquire in hook_attach_cuda() */
	atomic_store_explicit(&hook_has_cuda, true, memory_order_release);
	return true;
}

bool hook_attach_nvml_slowly(void)
{
	CANCEL_PUT_OFF;

	if (!attach_nvml())
		return false;
	parts_hand_down(parts, ARRAY_SIZE(parts));
	/* pairs with the acquire in hook_attach_nvml() */
	atomic_store_explicit(&hook_has_nvml, true, memory_order_release);
	return true;
}

void *hook_find_other(const char *symbol)
{
	return symbols_have_no_driver ? NULL : scope_find_function(symbol);
}
