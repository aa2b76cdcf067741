/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of a server, by the clients that have them.
 *
 * Whoever reaches a port can fill it with connections, from a few addresses at once. So where there are nearly as many as there
 * may be, one goes for each that comes: of the client that has the most, the one on which nothing was asked for longest.
 */
#pragma once

#include <stdbool.h>

struct crowd_guest;
struct crowd_client;

/* All zero but the first. Every guest has left before its end. */
struct crowd {
	unsigned most; /* where there are so many, one goes for each that comes; 0: none does */
	unsigned count;
	struct crowd_client *clients;
};

/*
 * A connection has come; the descriptor stays the caller's. The one that goes for it is shut down, and is ended by the caller as any
 * that its client has closed. NULL: there is no memory, and it does not count.
 */
struct crowd_guest *crowd_enter(struct crowd *crowd, const char *client, int fd);

/* It has ended. Accepts NULL. */
void crowd_leave(struct crowd *crowd, struct crowd_guest *guest);

/* Whether a request of it is served just now, when it stays. Accepts NULL. */
void crowd_serve(struct crowd_guest *guest, bool is_served);
