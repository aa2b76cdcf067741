/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and stream capture: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once
