/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of a stream that comes in pieces: only the line that has not ended is kept. */
#include "kube/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void lines_clear(struct lines *lines)
{
	free(lines->part);
	*lines = (struct lines){0};
}

static int keep(struct lines *lines, const char *bytes, size_t count, size_t most_bytes)
{
	size_t wanted = lines->bytes + count, room = lines->room_bytes;
	char *grown;

	if (wanted > most_bytes)
		return -EMSGSIZE;
	while (room < wanted)
		room = room ? room * 2 : 1024;
	if (room != lines->room_bytes) {
		grown = realloc(lines->part, room);
		if (!grown)
			return -ENOMEM;
		lines->part = grown;
		lines->room_bytes = room;
	}
	memcpy(lines->part + lines->bytes, bytes, count);
	lines->bytes = wanted;
	return 0;
}

/* The line that ends with these bytes; its beginning may have come before. */
static int end_line(struct lines *lines, const char *bytes, size_t count, size_t most_bytes,
	lines_fn *take, void *context)
{
	struct lines whole;
	int result;

	if (!lines->bytes)
		return count > most_bytes ? -EMSGSIZE : count ? take(context, bytes, count) : 0;
	result = keep(lines, bytes, count, most_bytes);
	if (result)
		return result;
	/* the function may clear the lines */
	whole = *lines;
	*lines = (struct lines){0};
	result = take(context, whole.part, whole.bytes);
	free(whole.part);
	return result;
}

int lines_add(struct lines *lines, const char *bytes, size_t count, size_t most_bytes,
	lines_fn *take, void *context)
{
	const char *end;

	while ((end = memchr(bytes, '\n', count))) {
		size_t length = (size_t)(end - bytes);
		int result = end_line(lines, bytes, length, most_bytes, take, context);

		if (result)
			return result;
		bytes = end + 1;
		count -= length + 1;
	}
	return count ? keep(lines, bytes, count, most_bytes) : 0;
}
