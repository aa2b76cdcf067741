/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of CUDA 2 and 3 that drivers still export: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once
