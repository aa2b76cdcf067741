/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor --machine: whether the folders that users share are as they have to be. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Shows every place and what is wrong with it. 0 with *ret_status, 1 where something is; or -errno with err set. */
int doctor_machine(bool is_json, int *ret_status, struct err *err) MUST_CHECK;
