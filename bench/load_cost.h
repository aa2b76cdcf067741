/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/compute_load.c measures beside a load; each prints one line of JSON. */
#pragma once

/* How many turns a kernel makes in a µs: of the try that took least. 0 where no code runs. */
void load_calibrate(void);

/*
 * What a launch of a kernel that does nothing takes, the mean of each batch: by the name, where the
 * tenant library may be, and by the driver's own function. Side by side, for between two processes lies
 * more than between the two.
 */
void load_cost(void);
