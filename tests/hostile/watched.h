/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of the program's memory in which each answer of the driver is seen, or changed, at the instant after it was written,
 * as a second thread may do. It cannot be written: the signal lets the write happen, and one instruction later it is looked at.
 */
#pragma once

/* A page of which written() is called, in a handler of a signal, after each write. One in a process. On x86 alone: elsewhere nothing is seen. */
void *watched_page(void (*written)(void *page));
