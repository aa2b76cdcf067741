/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, in words. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -error;
}

void err_wrap(struct err *err, const char *format, ...)
{
	char old[sizeof(err->text)];
	va_list args;
	size_t length;

	memcpy(old, err->text, sizeof(old));
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	length = strlen(err->text);
	snprintf(err->text + length, sizeof(err->text) - length, ": %s", old);
}
