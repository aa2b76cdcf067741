/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor: what it says. */
#pragma once

#include "cli/diagnosis.h"

void diagnosis_show_text(const struct diagnosis *d);

/* One object; its keys only ever become more. Null is not known. */
void diagnosis_show_json(const struct diagnosis *d);
