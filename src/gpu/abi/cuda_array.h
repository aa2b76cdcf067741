/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and mipmapped arrays: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once
