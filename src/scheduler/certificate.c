/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a server's certificate. */
#include "scheduler/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define FILE_BYTES 65536 /* a chain of several */

static int read_text(const char *path, char **ret_text, struct err *err)
{
	char *text = malloc(FILE_BYTES);
	size_t bytes;
	int result = text ? file_read(path, text, FILE_BYTES, &bytes) : -ENOMEM;

	if (!result) {
		*ret_text = text;
		return 0;
	}
	free(text);
	return err_set(err, -result, "%.200s: %s", path, strerror(-result));
}

int certificate_read(
	const char *const paths[3], struct certificate *ret_certificate, struct err *err)
{
	struct certificate certificate = {{NULL}};
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(certificate.texts) && !result; i++)
		if (*paths[i])
			result = read_text(paths[i], &certificate.texts[i], err);
	if (result)
		certificate_deinit(&certificate);
	else
		*ret_certificate = certificate;
	return result;
}

bool certificate_is_same(const struct certificate *one, const struct certificate *other)
{
	for (size_t i = 0; i < ARRAY_SIZE(one->texts); i++) {
		const char *a = one->texts[i], *b = other->texts[i];

		if (!a != !b || (a && strcmp(a, b) != 0))
			return false;
	}
	return true;
}

void certificate_deinit(struct certificate *certificate)
{
	for (size_t i = 0; i < ARRAY_SIZE(certificate->texts); i++) {
		/* one of them is a key */
		if (certificate->texts[i])
			explicit_bzero(certificate->texts[i], strlen(certificate->texts[i]));
		free(certificate->texts[i]);
		certificate->texts[i] = NULL;
	}
}
