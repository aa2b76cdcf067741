/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for the tenant library where only its being preloaded matters. */
extern const int stub_is_not_empty;
const int stub_is_not_empty = 1;
