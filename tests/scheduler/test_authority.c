/* SPDX-License-Identifier: Apache-2.0 */
/* An authority of our own: what is made anew, and when. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/authority.h"
#include "tests/unit/cmocka_ready.h"

#define NOW  1800000000
#define LIFE 1000

/* Whether something was made anew. */
static bool renewed(struct authority *authority, const char *hosts, int64_t now_s)
{
	const struct authority_wish wish = {hosts, LIFE, now_s};
	struct err err = ERR_NULL;
	bool changed;

	assert_int_equal(authority_renew(authority, &wish, &changed, &err), 0);
	assert_non_null(strstr(authority->bundle, "BEGIN CERTIFICATE"));
	assert_non_null(strstr(authority->certificate, "BEGIN CERTIFICATE"));
	assert_non_null(strstr(authority->key, "PRIVATE KEY"));
	return changed;
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	while ((text = strstr(text, part)))
		found++, text++;
	return found;
}

static void a_certificate_is_renewed_with_a_third_left(void **state)
{
	struct authority authority = {.bundle = NULL};
	char *bundle, *certificate;

	assert_true(renewed(&authority, "a.b.svc, 127.0.0.1,::1", NOW));
	assert_false(renewed(&authority, "a.b.svc,127.0.0.1,::1", NOW + 660));
	bundle = strdup(authority.bundle);
	certificate = strdup(authority.certificate);
	assert_true(renewed(&authority, "a.b.svc,127.0.0.1,::1", NOW + 670));
	assert_string_equal(authority.bundle, bundle);
	assert_string_not_equal(authority.certificate, certificate);
	free(bundle);
	free(certificate);
	authority_deinit(&authority);
}

static void other_hosts_get_another_certificate(void **state)
{
	struct authority authority = {.bundle = NULL};

	assert_true(renewed(&authority, "a.b.svc,127.0.0.1", NOW));
	assert_false(renewed(&authority, "a.b.svc", NOW));
	assert_true(renewed(&authority, "a.b.svc,127.0.0.2", NOW));
	assert_true(renewed(&authority, "c.b.svc", NOW));
	authority_deinit(&authority);
}

/* Replicas that have not seen the new one serve what the old one has signed. */
static void the_authority_before_is_trusted_while_it_is_good(void **state)
{
	struct authority authority = {.bundle = NULL};
	char *bundle;

	assert_true(renewed(&authority, "a", NOW));
	bundle = strdup(authority.bundle);
	assert_true(renewed(&authority, "a", NOW + 9 * LIFE + 1));
	assert_int_equal(count(authority.bundle, "BEGIN CERTIFICATE"), 2);
	assert_non_null(strstr(authority.bundle, bundle));
	assert_false(renewed(&authority, "a", NOW + 9 * LIFE + 2));
	free(bundle);
	/* of two that ended only today's is there */
	assert_true(renewed(&authority, "a", NOW + 30 * LIFE));
	assert_int_equal(count(authority.bundle, "BEGIN CERTIFICATE"), 1);
	authority_deinit(&authority);
}

static void what_is_not_understood_is_made_anew(void **state)
{
	struct authority authority = {.bundle = NULL}, other = {.bundle = NULL};

	assert_true(renewed(&authority, "a", NOW));
	assert_true(renewed(&other, "a", NOW));
	free(authority.key);
	authority.key = other.key; /* of another certificate */
	other.key = NULL;
	assert_true(renewed(&authority, "a", NOW));
	free(authority.certificate);
	authority.certificate = other.certificate; /* of another authority */
	other.certificate = NULL;
	assert_true(renewed(&authority, "a", NOW));
	free(authority.bundle);
	authority.bundle = strdup("x");
	assert_true(renewed(&authority, "a", NOW));
	free(authority.authority_key);
	authority.authority_key = NULL;
	assert_true(renewed(&authority, "a", NOW));
	assert_false(renewed(&authority, "a", NOW));
	authority_deinit(&authority);
	authority_deinit(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_certificate_is_renewed_with_a_third_left),
		cmocka_unit_test(other_hosts_get_another_certificate),
		cmocka_unit_test(the_authority_before_is_trusted_while_it_is_good),
		cmocka_unit_test(what_is_not_understood_is_made_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
