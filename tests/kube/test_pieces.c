/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the client that need no server: the rate, pauses, lines, base64, tokens, kubeconfigs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kube/access.h"
#include "kube/base64.h"
#include "kube/lines.h"
#include "kube/rate.h"
#include "kube/token.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define MS 1000000ull

static void a_rate_lets_a_burst_pass_and_then_its_share(void **state)
{
	struct rate rate = {.per_s = 10, .burst = 3};
	uint64_t now = 1000 * MS;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rate_take(&rate, now), now);
	assert_int_equal(rate_take(&rate, now), now + 100 * MS);
	assert_int_equal(rate_take(&rate, now), now + 200 * MS);
	/* the two are given back by time; then one is free */
	now += 300 * MS;
	assert_int_equal(rate_take(&rate, now), now);
	assert_int_equal(rate_take(&rate, now), now + 100 * MS);
	/* a long rest gives a burst, and no more */
	now += 3600 * 1000 * MS;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rate_take(&rate, now), now);
	assert_true(rate_take(&rate, now) > now);
}

static void without_a_rate_nothing_waits(void **state)
{
	struct rate rate = {0};

	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(rate_take(&rate, 5), 5);
}

static void a_pause_doubles_to_its_most_and_is_random_by_half(void **state)
{
	const uint64_t first = 200 * MS, most = 10000 * MS;
	uint64_t whole = first;

	for (unsigned failed = 1; failed < 100; failed++) {
		assert_int_equal(rate_pause_ns(failed, first, most, 0), whole / 2);
		for (uint32_t random = 1; random < 5000; random += 7) {
			uint64_t pause = rate_pause_ns(failed, first, most, random);

			assert_in_range(pause, whole / 2, whole);
		}
		whole = whole * 2 < most ? whole * 2 : most;
	}
	assert_int_equal(rate_pause_ns(0, first, most, 0), first / 2);
}

static int take_line(void *context, const char *line, size_t bytes)
{
	char *told = context;
	size_t length = strlen(told);

	snprintf(told + length, 64 - length, "%.*s|", (int)bytes, line);
	return *line == '!' ? -ECANCELED : 0;
}

static void lines_come_whole_however_they_are_cut(void **state)
{
	static const char text[] = "one\n\ntwo\nthree";

	for (size_t step = 1; step <= sizeof(text); step++) {
		struct lines lines = {0};
		char told[64] = "";

		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t count = sizeof(text) - 1 - at < step ? sizeof(text) - 1 - at : step;

			assert_int_equal(
				lines_add(&lines, text + at, count, 100, take_line, told), 0);
		}
		assert_string_equal(told, "one|two|");
		lines_clear(&lines);
	}
}

static void a_line_that_is_too_long_is_refused(void **state)
{
	struct lines lines = {0};
	char told[64] = "";

	assert_int_equal(lines_add(&lines, "12345", 5, 8, take_line, told), 0);
	assert_int_equal(lines_add(&lines, "6789", 4, 8, take_line, told), -EMSGSIZE);
	assert_int_equal(lines_add(&lines, "6789\n", 5, 8, take_line, told), -EMSGSIZE);
	lines_clear(&lines);
	assert_int_equal(lines_add(&lines, "123456789\n", 10, 8, take_line, told), -EMSGSIZE);
	assert_int_equal(lines_add(&lines, "a\n!\nb\n", 6, 8, take_line, told), -ECANCELED);
	assert_string_equal(told, "a|!|");
	lines_clear(&lines);
}

static void base64_is_decoded_or_refused(void **state)
{
	static const char *const good[][2] = {{"", ""}, {"YQ==", "a"}, {"YWI=", "ab"},
		{"YWJj", "abc"}, {"LS0t\nLS1C\r\n RUdJTg==", "-----BEGIN"},
		{"++//", "\xfb\xef\xff"}};
	static const char *const bad[] = {
		"Y", "YQ", "YQ=", "Y===", "YQ==YQ==", "Y-Q=", "====", "YWJj="};
	char *bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(base64_decode(good[i][0], &bytes), 0);
		assert_string_equal(bytes, good[i][1]);
		free(bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(base64_decode(bad[i], &bytes), BASE64_E_MALFORMED);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void a_token_is_read_again_after_a_while(void **state)
{
	struct scratch *s = *state;
	struct kube_token token;
	unsigned number;

	write_file(s->file, "one\n");
	assert_int_equal(kube_token_init(&token, s->file, NULL), 0);
	assert_string_equal(kube_token_header(&token, 1), "Authorization: Bearer one");
	write_file(s->file, "two");
	assert_string_equal(
		kube_token_header(&token, KUBE_TOKEN_FRESH_NS), "Authorization: Bearer one");
	assert_string_equal(
		kube_token_header(&token, KUBE_TOKEN_FRESH_NS + 2), "Authorization: Bearer two");
	number = token.number;
	kube_token_renew(&token, 5);
	/* what is empty or away leaves the old one */
	write_file(s->file, "");
	kube_token_renew(&token, 5);
	remove(s->file);
	kube_token_renew(&token, 5);
	assert_int_equal(token.number, number);
	write_file(s->file, "three");
	kube_token_renew(&token, 5);
	assert_int_not_equal(token.number, number);
	write_file(s->file, "two");
	kube_token_renew(&token, 5);
	assert_string_equal(kube_token_header(&token, 6), "Authorization: Bearer two");
	kube_token_deinit(&token);
	assert_int_equal(kube_token_init(&token, NULL, "three"), 0);
	assert_string_equal(kube_token_header(&token, 1), "Authorization: Bearer three");
	kube_token_deinit(&token);
	assert_int_equal(kube_token_init(&token, NULL, NULL), 0);
	assert_null(kube_token_header(&token, 1));
	kube_token_deinit(&token);
}

#define CONFIG(cluster, user)                                                                     \
	"apiVersion: v1\ncurrent-context: two\ncontexts:\n- name: one\n  context: {cluster: x, "  \
	"user: x}\n"                                                                              \
	"- name: two\n  context:\n    cluster: c\n    user: u\nclusters:\n- name: c\n  cluster: " \
	"{" cluster "}\nusers:\n- name: x\n  user: {}\n- name: u\n  user: {" user "}\n"

static void a_kubeconfig_is_read(void **state)
{
	struct scratch *s = *state;
	struct kube_access access;
	struct err err = ERR_NULL;
	char path[320];

	write_file(s->file,
		CONFIG("server: 'https://h:6443//', certificate-authority: ca.crt",
			"client-certificate: /abs/c.crt, client-key-data: S0VZ, token: t"));
	assert_int_equal(kube_access_read(s->file, &access, &err), 0);
	assert_string_equal(access.server, "https://h:6443");
	snprintf(path, sizeof(path), "%s/ca.crt", s->folder);
	assert_string_equal(access.authority_file, path);
	assert_string_equal(access.certificate_file, "/abs/c.crt");
	assert_string_equal(access.key, "KEY");
	assert_null(access.key_file);
	assert_string_equal(access.token, "t");
	assert_false(access.is_unverified);
	kube_access_deinit(&access);
	write_file(s->file, CONFIG("server: http://h, insecure-skip-tls-verify: true",
				    "tokenFile: /t, token: x"));
	assert_int_equal(kube_access_read(s->file, &access, &err), 0);
	assert_true(access.is_unverified);
	assert_string_equal(access.token_file, "/t");
	assert_null(access.token);
	kube_access_deinit(&access);
	kube_access_deinit(&access);
}

static void a_kubeconfig_that_is_not_understood_says_why(void **state)
{
	static const char *const rows[][2] = {
		{"a: [", "line 2"},
		{"", "no context is named"},
		{"- a\n", "no context is named"},
		{"current-context: z\n", "contexts has no 'z'"},
		{CONFIG("server: ftp://h", ""), "is no URL"},
		{CONFIG("", ""), "the cluster has no server"},
		{CONFIG("server: https://h", "exec: {command: x}"),
			"a user with 'exec' is not supported"},
		{CONFIG("server: https://h", "username: x"),
			"a user with 'username' is not supported"},
		{CONFIG("server: https://h, certificate-authority-data: '?'", ""),
			"certificate-authority-data is not base64"},
	};
	struct scratch *s = *state;
	struct kube_access access;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = ERR_NULL;

		write_file(s->file, rows[i][0]);
		assert_int_equal(kube_access_read(s->file, &access, &err), -EINVAL);
		if (!strstr(err.text, rows[i][1]) || strncmp(err.text, s->file, strlen(s->file)))
			fail_msg("row %zu: %s", i, err.text);
	}
	remove(s->file);
	assert_int_equal(kube_access_read(s->file, &access, &(struct err)ERR_NULL), -ENOENT);
}

static void a_pod_has_its_access_in_a_folder(void **state)
{
	struct kube_access access;
	struct err err = ERR_NULL;

	assert_int_equal(kube_access_in_pod("/f", NULL, "443", &access, &err), -EINVAL);
	assert_int_equal(kube_access_in_pod("/f", "10.0.0.1", "", &access, &err), -EINVAL);
	assert_int_equal(kube_access_in_pod("/f", "10.0.0.1", "443", &access, &err), 0);
	assert_string_equal(access.server, "https://10.0.0.1:443");
	assert_string_equal(access.token_file, "/f/token");
	assert_string_equal(access.authority_file, "/f/ca.crt");
	kube_access_deinit(&access);
	assert_int_equal(kube_access_in_pod("/f", "fd00::1", "443", &access, &err), 0);
	assert_string_equal(access.server, "https://[fd00::1]:443");
	kube_access_deinit(&access);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_lets_a_burst_pass_and_then_its_share),
		cmocka_unit_test(without_a_rate_nothing_waits),
		cmocka_unit_test(a_pause_doubles_to_its_most_and_is_random_by_half),
		cmocka_unit_test(lines_come_whole_however_they_are_cut),
		cmocka_unit_test(a_line_that_is_too_long_is_refused),
		cmocka_unit_test(base64_is_decoded_or_refused),
		SCRATCH_TEST(a_token_is_read_again_after_a_while),
		SCRATCH_TEST(a_kubeconfig_is_read),
		SCRATCH_TEST(a_kubeconfig_that_is_not_understood_says_why),
		cmocka_unit_test(a_pod_has_its_access_in_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
