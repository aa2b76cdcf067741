/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices the containers of a pod were assigned. */
#include "kube/assignment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 4
#define NONE   SIZE_MAX
/* three texts, two numbers, the marks */
#define DEVICE_BYTES \
	(ASSIGNMENT_UUID_BYTES + ASSIGNMENT_PART_BYTES + ASSIGNMENT_VENDOR_BYTES + 2 * 12 + 8)
#define SHOWN 60 /* bytes of a wrong text that a message has */

/* A part of the text, of which no byte is changed. */
struct piece {
	const char *at;
	size_t length;
};

/* Cuts the text up to the mark off its front; false where there is no mark, and the rest is the piece. */
static bool cut(struct piece *rest, char mark, struct piece *ret_piece)
{
	const char *end = memchr(rest->at, mark, rest->length);

	if (!end) {
		*ret_piece = *rest;
		rest->at += rest->length;
		rest->length = 0;
		return false;
	}
	*ret_piece = (struct piece){rest->at, (size_t)(end - rest->at)};
	rest->length -= ret_piece->length + 1;
	rest->at = end + 1;
	return true;
}

static size_t count_of(const char *text, char mark)
{
	size_t count = 0;

	while ((text = strchr(text, mark))) {
		count++;
		text++;
	}
	return count;
}

/* A whole number of 0 or more with 31 bits. A sign is read, because it is written by Go's formats. */
static const char *read_number(struct piece text, int32_t *ret_number)
{
	bool is_negative = text.length && *text.at == '-';
	int64_t number = 0;

	if (text.length && (*text.at == '-' || *text.at == '+')) {
		text.at++;
		text.length--;
	}
	if (!text.length)
		return "is no number";
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return "is no number";
		number = number * 10 + (text.at[i] - '0');
		if (number > INT32_MAX)
			return "is too large";
	}
	if (is_negative && number)
		return "is below 0";
	*ret_number = (int32_t)number;
	return NULL;
}

/* Copies a text without what could mean something else to a path, a shell or this text. */
static const char *read_text(struct piece text, unsigned char least, char *ret_name, size_t size)
{
	if (text.length >= size)
		return "is too long";
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.at[i];

		if (c < least || c >= 0x7f || strchr("\"'\\`$&|<>*?(){}[]#~!%", c))
			return "has a character that no name has";
	}
	memcpy(ret_name, text.at, text.length);
	ret_name[text.length] = '\0';
	return NULL;
}

bool assignment_is_uuid(const char *uuid)
{
	char copy[ASSIGNMENT_UUID_BYTES];

	return *uuid && !strpbrk(uuid, ",:;") &&
	       !read_text((struct piece){uuid, strlen(uuid)}, ' ' + 1, copy, sizeof(copy));
}

static const char *read_name(struct piece text, char *ret_name, size_t size)
{
	return read_text(text, ' ' + 1, ret_name, size);
}

static const char *read_uuid(struct piece text, struct assignment_device *device)
{
	struct piece uuid;
	const char *wrong;

	if (!text.length || text.at[text.length - 1] != ']')
		return read_name(text, device->uuid, sizeof(device->uuid));
	text.length--;
	if (!cut(&text, '[', &uuid))
		return "has a bracket too many";
	wrong = read_name(uuid, device->uuid, sizeof(device->uuid));
	return wrong ? wrong : read_name(text, device->part, sizeof(device->part));
}

/* Where a device stands, for messages. */
struct spot {
	size_t slot, device;
	struct err *err;
};

static int refuse(const struct spot *spot, const char *what, struct piece text, const char *why)
{
	char shown[SHOWN + 1];
	size_t length = text.length < SHOWN ? text.length : SHOWN;

	for (size_t i = 0; i < length; i++)
		shown[i] = text.at[i] >= ' ' && text.at[i] < 0x7f ? text.at[i] : '?';
	shown[length] = '\0';
	return err_set(spot->err, EINVAL,
		"the assigned devices are not understood: container slot %zu, device %zu: %s '%s' "
		"%s",
		spot->slot, spot->device, what, shown, why);
}

/* 0, or 1 where the token is no device: without a comma, or without a UUID, as old writers have it. */
static int read_device(
	const struct spot *spot, struct piece token, struct assignment_device *ret_device)
{
	struct assignment_device device = {.memory_mib = 0};
	struct piece fields[FIELDS], rest = token;
	unsigned count = 0;
	const char *wrong;

	while (count < FIELDS && cut(&rest, ',', &fields[count]))
		count++;
	if (!count)
		return 1;
	if (count < FIELDS)
		count++; /* the last one has no comma behind it */
	if (count < FIELDS)
		return refuse(spot, "the text", token, "has fewer than four fields");
	wrong = read_uuid(fields[0], &device);
	if (wrong)
		return refuse(spot, "the UUID", fields[0], wrong);
	wrong = read_text(
		fields[1], ' ', device.vendor, sizeof(device.vendor)); /* "NVIDIA-NVIDIA A30" */
	if (wrong)
		return refuse(spot, "the vendor", fields[1], wrong);
	wrong = read_number(fields[2], &device.memory_mib);
	if (wrong)
		return refuse(spot, "the memory", fields[2], wrong);
	wrong = read_number(fields[3], &device.cores_percent);
	if (wrong)
		return refuse(spot, "the cores", fields[3], wrong);
	if (!device.uuid[0])
		return device.memory_mib || device.vendor[0]
			       ? refuse(spot, "the text", token, "names no device")
			       : 1;
	*ret_device = device;
	return 0;
}

static int read_slot(
	struct spot *spot, struct piece text, struct assignment_device *devices, size_t *ret_count)
{
	struct piece token;
	size_t count = 0;
	bool goes_on = true;
	int result;

	for (spot->device = 0; goes_on; spot->device++) {
		goes_on = cut(&text, ':', &token);
		result = read_device(spot, token, &devices[count]);
		if (result < 0)
			return result;
		count += result == 0;
	}
	*ret_count = count;
	return 0;
}

static int read_slots(struct piece text, struct assignment *a, struct err *err)
{
	struct spot spot = {.err = err};
	struct assignment_device *next = a->devices;

	while (text.length) {
		struct assignment_slot *slot = &a->slots[a->count];
		struct piece slot_text;
		int result;

		cut(&text, ';', &slot_text);
		slot->devices = next;
		spot.slot = a->count;
		result = read_slot(&spot, slot_text, next, &slot->count);
		if (result)
			return result;
		next += slot->count;
		a->count++;
	}
	return 0;
}

int assignment_decode(const char *text, struct assignment *ret_assignment, struct err *err)
{
	size_t slots = count_of(text, ';') + 1, devices = slots + count_of(text, ':');
	struct assignment a = ASSIGNMENT_NULL;
	int result;

	if (slots > ASSIGNMENT_CONTAINERS_MAX + 1 ||
		devices > ASSIGNMENT_CONTAINERS_MAX + ASSIGNMENT_DEVICES_MAX + 1)
		return err_set(err, EINVAL,
			"the assigned devices are not understood: more than %d containers or "
			"devices",
			ASSIGNMENT_CONTAINERS_MAX);
	a.slots = calloc(slots, sizeof(*a.slots));
	a.devices = calloc(devices, sizeof(*a.devices));
	result = a.slots && a.devices ? read_slots((struct piece){text, strlen(text)}, &a, err)
				      : err_set(err, ENOMEM, "no memory");
	if (result) {
		assignment_deinit(&a);
		return result;
	}
	*ret_assignment = a;
	return 0;
}

void assignment_deinit(struct assignment *assignment)
{
	free(assignment->slots);
	free(assignment->devices);
	*assignment = (struct assignment)ASSIGNMENT_NULL;
}

/* Writes at `to`, which has DEVICE_BYTES for each device and a byte for each slot. Returns the end. */
static char *write_slot(char *to, const struct assignment_slot *slot)
{
	for (size_t i = 0; i < slot->count; i++) {
		const struct assignment_device *d = &slot->devices[i];

		to += snprintf(to, DEVICE_BYTES, "%s%s%s%s,%s,%d,%d:", d->uuid,
			d->part[0] ? "[" : "", d->part, d->part[0] ? "]" : "", d->vendor,
			d->memory_mib, d->cores_percent);
	}
	*to++ = ';';
	return to;
}

int assignment_encode(const struct assignment *assignment, char **ret_text)
{
	size_t bytes = assignment->count + 1;
	char *text, *end;

	for (size_t i = 0; i < assignment->count; i++)
		bytes += assignment->slots[i].count * DEVICE_BYTES;
	text = malloc(bytes);
	if (!text)
		return -ENOMEM;
	end = text;
	for (size_t i = 0; i < assignment->count; i++)
		end = write_slot(end, &assignment->slots[i]);
	*end = '\0';
	*ret_text = text;
	return 0;
}

bool assignment_next(const struct assignment *assignment, size_t *ret_slot)
{
	for (size_t i = 0; i < assignment->count; i++)
		if (assignment->slots[i].count) {
			*ret_slot = i;
			return true;
		}
	return false;
}

void assignment_consume(struct assignment *assignment, size_t slot)
{
	assignment->slots[slot].count = 0;
}

/* The container that a slot is for, in three readings; NONE where there is no such container. */
typedef size_t reading_fn(const struct assignment *assignment, const struct assignment_need *needs,
	size_t need_count, size_t slot);

static size_t read_by_place(const struct assignment *assignment,
	const struct assignment_need *needs, size_t need_count, size_t slot)
{
	return slot < need_count ? slot : NONE;
}

static size_t read_without_init(const struct assignment *assignment,
	const struct assignment_need *needs, size_t need_count, size_t slot)
{
	for (size_t i = 0; i < need_count; i++)
		if (!needs[i].is_init && slot-- == 0)
			return i;
	return NONE;
}

/* A writer that leaves empty slots out leaves out all of them: one before this says that it was another. */
static size_t read_without_empty(const struct assignment *assignment,
	const struct assignment_need *needs, size_t need_count, size_t slot)
{
	size_t rank = slot;

	for (size_t i = 0; i < slot; i++)
		if (!assignment->slots[i].count)
			return NONE;
	for (size_t i = 0; i < need_count; i++)
		if (needs[i].count && rank-- == 0)
			return i;
	return NONE;
}

static bool try(reading_fn *read, const struct assignment *assignment,
	const struct assignment_need *needs, size_t need_count, size_t *ret_containers)
{
	for (size_t i = 0; i < assignment->count; i++) {
		size_t container;

		if (!assignment->slots[i].count)
			continue;
		container = read(assignment, needs, need_count, i);
		if (container == NONE || needs[container].count < 0 ||
			(uint64_t)needs[container].count != assignment->slots[i].count)
			return false;
		ret_containers[i] = container;
	}
	return true;
}

/* Whether each app container that asks for devices has a slot. */
static bool is_whole(const struct assignment *assignment, const struct assignment_need *needs,
	size_t need_count, const size_t *containers)
{
	for (size_t i = 0; i < need_count; i++) {
		bool has_slot = needs[i].is_init || needs[i].count <= 0;

		for (size_t k = 0; k < assignment->count && !has_slot; k++)
			has_slot = assignment->slots[k].count && containers[k] == i;
		if (!has_slot)
			return false;
	}
	return true;
}

int assignment_match(const struct assignment *assignment, const struct assignment_need *needs,
	size_t need_count, size_t *ret_containers, struct err *err)
{
	static reading_fn *const readings[] = {
		read_by_place, read_without_init, read_without_empty};

	for (int is_any_right = 0; is_any_right < 2; is_any_right++)
		for (size_t i = 0; i < ARRAY_SIZE(readings); i++)
			if (try(readings[i], assignment, needs, need_count, ret_containers) &&
				(is_any_right ||
					is_whole(assignment, needs, need_count, ret_containers)))
				return 0;
	return err_set(err, EINVAL,
		"the assigned devices are not those that the pod's containers ask for");
}
