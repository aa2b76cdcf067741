/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer to the kubelet says of one container; NULL where it says nothing. */
#pragma once

#include <device_plugin.pb-c.h>

const char *answer_env(const V1beta1__ContainerAllocateResponse *answer, const char *name);
const V1beta1__Mount *answer_mount(
	const V1beta1__ContainerAllocateResponse *answer, const char *at);
