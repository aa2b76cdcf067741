/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts and device resources: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once
