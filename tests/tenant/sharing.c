/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that share memory, and what the slice pays for it. */
#include "tests/tenant/sharing.h"

#include <stdio.h>
#include <string.h>

void expect_beside(struct slice *slice, unsigned contexts, uint64_t bytes)
{
	assert_int_equal(slice_agreed(slice, 0), contexts * CONTEXT_BYTES + bytes);
}

void expect_books(struct slice *slice, unsigned contexts, uint64_t bytes)
{
	assert_int_equal(slice_books(slice, 0), contexts * CONTEXT_BYTES + bytes);
}

const char *bytes_of(const struct tenant *t, const char *key)
{
	static char text[129];
	const char *at = strstr(t->answer, key);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.128s", at + strlen(key) + 1);
	return text;
}

void hand_over(struct tenant *from, struct tenant *to, const char *fd)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/hand-over", from->node->dir);
	tenant_tell(to, "recvfd %s %s", fd, path);
	expect(from, OK, "sendfd %s %s", path, fd);
	assert_int_equal(tenant_answer(to), OK);
}

void import_block(struct tenant *maker, struct tenant *user)
{
	expect(maker, OK, "createx h 64m");
	expect(maker, OK, "export f h");
	hand_over(maker, user, "f");
	expect(maker, 0, "closefd f");
	expect(user, OK, "import h f");
	expect(user, 0, "closefd f");
}
