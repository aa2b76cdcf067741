/* SPDX-License-Identifier: Apache-2.0 */
/* What holdings need of the rest of the library: books that only count. */
#include "tests/unit/holding_books.h"

#include "tenant/memory/charge.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/reconcile.h"
#include "tenant/slice/parts.h"
#include "tests/unit/cmocka_ready.h"

static struct device device = {.ordinal = 0};
_Atomic uint64_t charge_strays;
uint64_t given_back, left_to_figure, in_doubt, unnamed;
unsigned let_go, objects_ended;
bool has_figure;

struct device *state_device(CUdevice ordinal)
{
	return &device;
}

void charge_hide(struct device *of, uint64_t bytes, enum charge_kind kind)
{
}

void charge_give_back(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	given_back += bytes;
}

void charge_anyway(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	given_back -= bytes;
}

CUresult charge_reserve(
	struct device *of, uint64_t bytes, enum charge_kind kind, struct charge *ret_charge)
{
	return CUDA_ERROR_OUT_OF_MEMORY;
}

uint64_t charge_take(struct charge *charge)
{
	return 0;
}

void charge_undo(struct charge *charge)
{
}

void everywhere_give_back(const struct device *own, uint64_t bytes)
{
}

bool ipc_make(const struct ipc_memory *memory, unsigned *ret_shared)
{
	*ret_shared = 5;
	return true;
}

void ipc_let_go(unsigned shared, bool is_over)
{
	assert_int_equal(shared, 5);
	let_go++;
}

void ipc_hide(unsigned shared)
{
	assert_int_equal(shared, 5);
}

void parts_object_ended(CUmemGenericAllocationHandle object, uint32_t serial)
{
	assert_int_not_equal(serial, 0);
	objects_ended++;
}

void ipc_open_foreign(const struct device *of, int64_t bytes)
{
}

void reconcile_look_again(const struct device *of)
{
}

bool reconcile_has_figure(const struct device *of)
{
	return has_figure;
}

bool reconcile_leave_to_figure(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	left_to_figure += has_figure ? bytes : 0;
	return has_figure;
}

/* A comparison follows, and says how much of it there is: here, none. */
void reconcile_doubt(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	given_back += bytes;
	in_doubt += bytes;
}

uint64_t charge_unnamed_since(const struct device *of)
{
	(void)of;
	return unnamed;
}

int holding_books_begin(void **unused)
{
	holding_reset_after_fork();
	given_back = in_doubt = left_to_figure = 0;
	has_figure = true;
	let_go = 0;
	objects_ended = 0;
	return 0;
}

struct holding holding_books_units(uint32_t count, uint64_t life)
{
	struct charge charge = {.device = &device, .units = count, .kind = CHARGE_PLAIN};

	return holding_of(&charge, life, 0);
}
