/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a server, by the clients that have them. */
#include "net/crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "net/address.h"

struct crowd_guest {
	struct crowd_client *client; /* NULL: it was shut down */
	struct crowd_guest *next, *prev;
	int fd;
	bool is_served;
};

/* Its guests in the order in which they asked last, or came. */
struct crowd_client {
	struct crowd_client *next;
	struct crowd_guest *guests;
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
	LL_PREPEND(crowd->clients, client);
	return client;
}

/* It counts no more. */
static void forget(struct crowd *crowd, struct crowd_guest *guest)
{
	struct crowd_client *client = guest->client;

	DL_DELETE(client->guests, guest);
	guest->client = NULL;
	crowd->count--;
	if (--client->count)
		return;
	LL_DELETE(crowd->clients, client);
	free(client);
}

static struct crowd_guest *longest_quiet(const struct crowd_client *client)
{
	struct crowd_guest *guest = client->guests;

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
	DL_APPEND(guest->client->guests, guest);
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
	DL_DELETE(guest->client->guests, guest);
	DL_APPEND(guest->client->guests, guest);
}
