/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at the places of base/fault.h. */
#include "tests/stress/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"

const char *const fault_places[] = {"charge: on its way", "charge: in total", "charge: held",
	"give-back: on its way", "give-back: out of total", "shared: entered", "shared: on its way",
	"shared: moved", "shared: without a key", "shared: on its way back", "shared: moved back",
	"shared: let go", "end: on its way", "end: shared free", "end: out of total",
	"reap: shared forgotten", "reap: on its way", "reap: out of total", "reap: in doubt",
	"reap: slot empty"};
const unsigned fault_place_count = sizeof(fault_places) / sizeof(fault_places[0]);

/* Armed before there are threads; the count is theirs together. */
static const char *armed;
static unsigned armed_n;
static int armed_signal;
static _Atomic unsigned count;

void fault_arm(unsigned place, unsigned n, int signal)
{
	armed = fault_places[place];
	armed_n = n;
	armed_signal = signal;
	atomic_store(&count, 0);
}

unsigned fault_count(void)
{
	return atomic_load(&count);
}

bool fault_is_reapers(unsigned place)
{
	return strncmp(fault_places[place], "reap:", 5) == 0;
}

/* Places on the way to a slot are tried with the whole library (tests/tenant/test_steps.c). */
static bool is_known(const char *place)
{
	if (strncmp(place, "begin:", 6) == 0)
		return true;
	for (unsigned i = 0; i < fault_place_count; i++)
		if (strcmp(fault_places[i], place) == 0)
			return true;
	return false;
}

bool fault_is_out_of_memory(void)
{
	return false;
}

void fault_hit(const char *place)
{
	if (!is_known(place)) {
		fprintf(stderr, "the place '%s' is not in fault_places\n", place);
		abort();
	}
	if (armed && strcmp(armed, place) == 0 && atomic_fetch_add(&count, 1) + 1 == armed_n)
		kill(getpid(), armed_signal);
}
