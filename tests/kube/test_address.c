/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: where to listen, and who calls. */
#include "net/address.h"

#include <string.h>

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

static void an_address_has_a_port(void **state)
{
	static const char *const wrong[] = {"", "127.0.0.1", "127.0.0.1:", ":65536", ":x"};
	char address[ADDRESS_BYTES];
	uint16_t port;

	assert_true(address_parse("127.0.0.1:80", address, &port));
	assert_string_equal(address, "127.0.0.1");
	assert_int_equal(port, 80);
	assert_true(address_parse(":9395", address, &port));
	assert_string_equal(address, "0.0.0.0");
	assert_true(address_parse("[::1]:443", address, &port));
	assert_string_equal(address, "::1");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(address_parse(wrong[i], address, &port));
}

static void only_an_ip_address_is_listened_at(void **state)
{
	union address address;

	assert_true(address_make("127.0.0.1", 80, &address));
	assert_int_equal(address.any.sa_family, AF_INET);
	assert_int_equal(address.four.sin_port, htons(80));
	assert_int_equal(address.four.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_true(address_make("::1", 81, &address));
	assert_int_equal(address.any.sa_family, AF_INET6);
	assert_int_equal(address.six.sin6_port, htons(81));
	assert_true(IN6_IS_ADDR_LOOPBACK(&address.six.sin6_addr));
	assert_false(address_make("localhost", 80, &address));
	assert_false(address_make("", 80, &address));
}

static void this_host_is_told_from_others(void **state)
{
	static const char *const own[] = {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"},
				 *const others[] = {"0.0.0.0", "10.0.0.1", "128.0.0.1",
					 "::", "fe80::1", "::ffff:10.0.0.1", "::127.0.0.1"};
	union address address;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		assert_true(address_make(own[i], 1, &address));
		assert_true(address_is_of_this_host(&address.any));
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(address_make(others[i], 1, &address));
		assert_false(address_is_of_this_host(&address.any));
	}
	assert_false(address_is_of_this_host(&(struct sockaddr){.sa_family = AF_UNIX}));
}

static void a_client_of_ipv6_is_its_network(void **state)
{
	static const struct {
		const char *address, *client;
	} rows[] = {{"10.1.2.3", "10.1.2.3"}, {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"2001:db8:1:2::9", "2001:db8:1:2::"}, {"::ffff:10.1.2.3", "::ffff:10.1.2.3"},
		{"::1", "::"}};
	char text[ADDRESS_CLIENT_BYTES];
	union address address;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(address_make(rows[i].address, 1, &address));
		address_of_client(&address.any, text);
		assert_string_equal(text, rows[i].client);
	}
	address_of_client(&(struct sockaddr){.sa_family = AF_UNIX}, text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_a_port),
		cmocka_unit_test(only_an_ip_address_is_listened_at),
		cmocka_unit_test(this_host_is_told_from_others),
		cmocka_unit_test(a_client_of_ipv6_is_its_network),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
