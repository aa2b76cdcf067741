/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a server, by the clients that have them. */
#include "net/crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/address.h"

struct crowd_guest {
	struct crowd_client *client; /* NULL: it was shut down */
	struct crowd_guest *next, *previous;
	int fd;
	bool is_served;
};

/* Its guests in the order in which they asked last, or came. */
struct crowd_client {
	struct crowd_client *next;
	struct crowd_guest *first, *last;
	unsigned count;
	char address[ADDRESS_CLIENT_BYTES];
};

static struct crowd_client *find_client(struct crowd *crowd, const char *address)
{
	struct crowd_client *client = crowd->clients;

	while (client && strcmp(client->address, address) != 0)
		client = client->next;
	if (client)
		return client;
	client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	snprintf(client->address, sizeof(client->address), "%s", address);
	client->next = crowd->clients;
	crowd->clients = client;
	return client;
}

static void put_last(struct crowd_guest *guest)
{
	struct crowd_client *client = guest->client;

	guest->next = NULL;
	guest->previous = client->last;
	if (client->last)
		client->last->next = guest;
	else
		client->first = guest;
	client->last = guest;
}

static void take_out(struct crowd_guest *guest)
{
	struct crowd_client *client = guest->client;

	if (guest->previous)
		guest->previous->next = guest->next;
	else
		client->first = guest->next;
	if (guest->next)
		guest->next->previous = guest->previous;
	else
		client->last = guest->previous;
}

static void drop_client(struct crowd *crowd, struct crowd_client *client)
{
	struct crowd_client **link = &crowd->clients;

	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	free(client);
}

/* It counts no more. */
static void forget(struct crowd *crowd, struct crowd_guest *guest)
{
	struct crowd_client *client = guest->client;

	take_out(guest);
	guest->client = NULL;
	crowd->count--;
	if (!--client->count)
		drop_client(crowd, client);
}

static struct crowd_guest *longest_quiet(const struct crowd_client *client)
{
	struct crowd_guest *guest = client->first;

	while (guest && guest->is_served)
		guest = guest->next;
	return guest;
}

static void send_one_away(struct crowd *crowd)
{
	struct crowd_guest *away = NULL;

	for (struct crowd_client *client = crowd->clients; client; client = client->next) {
		struct crowd_guest *guest = longest_quiet(client);

		if (guest && (!away || client->count > away->client->count))
			away = guest;
	}
	if (!away)
		return;
	shutdown(away->fd, SHUT_RDWR);
	forget(crowd, away);
}

struct crowd_guest *crowd_enter(struct crowd *crowd, const char *client, int fd)
{
	struct crowd_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	if (crowd->most && crowd->count >= crowd->most)
		send_one_away(crowd);
	*guest = (struct crowd_guest){.client = find_client(crowd, client), .fd = fd};
	if (!guest->client) {
		free(guest);
		return NULL;
	}
	put_last(guest);
	guest->client->count++;
	crowd->count++;
	return guest;
}

void crowd_leave(struct crowd *crowd, struct crowd_guest *guest)
{
	if (guest && guest->client)
		forget(crowd, guest);
	free(guest);
}

void crowd_serve(struct crowd_guest *guest, bool is_served)
{
	if (!guest)
		return;
	guest->is_served = is_served;
	if (!guest->client)
		return;
	take_out(guest);
	put_last(guest);
}
