/* SPDX-License-Identifier: Apache-2.0 */
/* An authority of our own, and the certificate of a server that it has signed. */
#include "scheduler/authority.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HOUR_S		3600 /* clocks of others may be behind */
#define AUTHORITY_LIVES 10
#define HOST_BYTES	254

/* A certificate and its key, as the library has them; NULL: there is none. */
struct pair {
	gnutls_x509_crt_t certificate;
	gnutls_x509_privkey_t key;
};

static void pair_deinit(struct pair *pair)
{
	if (pair->certificate)
		gnutls_x509_crt_deinit(pair->certificate);
	if (pair->key)
		gnutls_x509_privkey_deinit(pair->key);
	*pair = (struct pair){NULL, NULL};
}

static int pair_init(struct pair *pair)
{
	int result = gnutls_x509_crt_init(&pair->certificate);

	return result ? result : gnutls_x509_privkey_init(&pair->key);
}

static void free_secret(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void authority_deinit(struct authority *authority)
{
	free_secret(&authority->bundle);
	free_secret(&authority->authority_key);
	free_secret(&authority->certificate);
	free_secret(&authority->key);
}

/* The next of a list with commas; false: there is none. */
static bool next_host(const char **at, char ret_host[HOST_BYTES])
{
	size_t length;

	*at += strspn(*at, ", ");
	length = strcspn(*at, ", ");
	if (!length || length >= HOST_BYTES)
		return false;
	memcpy(ret_host, *at, length);
	ret_host[length] = '\0';
	*at += length;
	return true;
}

static bool is_for(gnutls_x509_crt_t certificate, const char *hosts)
{
	char host[HOST_BYTES];

	while (next_host(&hosts, host))
		if (!gnutls_x509_crt_check_hostname(certificate, host))
			return false;
	return true;
}

/* Both texts are understood, and belong together. */
static bool read_pair(const char *certificate, const char *key, struct pair *pair)
{
	const gnutls_datum_t its = {
		(unsigned char *)certificate, certificate ? (unsigned)strlen(certificate) : 0};
	const gnutls_datum_t its_key = {(unsigned char *)key, key ? (unsigned)strlen(key) : 0};
	unsigned char one[64], other[64];
	size_t one_bytes = sizeof(one), other_bytes = sizeof(other);

	return certificate && key && !pair_init(pair) &&
	       !gnutls_x509_crt_import(pair->certificate, &its, GNUTLS_X509_FMT_PEM) &&
	       !gnutls_x509_privkey_import2(
		       pair->key, &its_key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN) &&
	       !gnutls_x509_crt_get_key_id(pair->certificate, 0, one, &one_bytes) &&
	       !gnutls_x509_privkey_get_key_id(pair->key, 0, other, &other_bytes) &&
	       one_bytes == other_bytes && !memcmp(one, other, one_bytes);
}

static int begin(struct pair *pair, const char *name, int64_t from_s, int64_t until_s)
{
	unsigned char serial[16], id[64];
	size_t id_bytes = sizeof(id);
	int result = pair_init(pair);

	if (!result)
		result = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
	serial[0] &= 0x7f; /* no negative number */
	if (!result)
		result = gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
			GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	if (!result)
		result = gnutls_x509_crt_set_version(pair->certificate, 3);
	if (!result)
		result = gnutls_x509_crt_set_serial(pair->certificate, serial, sizeof(serial));
	if (!result)
		result = gnutls_x509_crt_set_activation_time(pair->certificate, from_s);
	if (!result)
		result = gnutls_x509_crt_set_expiration_time(pair->certificate, until_s);
	if (!result)
		result = gnutls_x509_crt_set_dn(pair->certificate, name, NULL);
	if (!result)
		result = gnutls_x509_crt_set_key(pair->certificate, pair->key);
	if (!result)
		result = gnutls_x509_crt_get_key_id(pair->certificate, 0, id, &id_bytes);
	return result ? result
		      : gnutls_x509_crt_set_subject_key_id(pair->certificate, id, id_bytes);
}

static int sign(struct pair *pair, const struct pair *by)
{
	unsigned char id[64];
	size_t id_bytes = sizeof(id);
	int result = gnutls_x509_crt_get_subject_key_id(by->certificate, id, &id_bytes, NULL);

	if (!result)
		result = gnutls_x509_crt_set_authority_key_id(pair->certificate, id, id_bytes);
	return result ? result
		      : gnutls_x509_crt_sign2(
				pair->certificate, by->certificate, by->key, GNUTLS_DIG_SHA256, 0);
}

static int add_host(gnutls_x509_crt_t certificate, const char *host)
{
	unsigned char bytes[16];
	int family = strchr(host, ':') ? AF_INET6 : AF_INET;

	if (inet_pton(family, host, bytes) == 1)
		return gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS,
			bytes, family == AF_INET ? 4 : 16, GNUTLS_FSAN_APPEND);
	return gnutls_x509_crt_set_subject_alt_name(
		certificate, GNUTLS_SAN_DNSNAME, host, (unsigned)strlen(host), GNUTLS_FSAN_APPEND);
}

static int make_authority(const struct authority_wish *wish, struct pair *pair)
{
	int result = begin(pair, "CN=vgpu-scheduler authority", wish->now_s - HOUR_S,
		wish->now_s + AUTHORITY_LIVES * wish->life_s);

	if (!result)
		result = gnutls_x509_crt_set_basic_constraints(pair->certificate, 1, 0);
	if (!result)
		result = gnutls_x509_crt_set_key_usage(
			pair->certificate, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
	return result ? result : sign(pair, pair);
}

static int make_certificate(
	const struct authority_wish *wish, const struct pair *by, struct pair *pair)
{
	const char *hosts = wish->hosts;
	char host[HOST_BYTES];
	int result =
		begin(pair, "CN=vgpu-scheduler", wish->now_s - HOUR_S, wish->now_s + wish->life_s);

	if (!result)
		result = gnutls_x509_crt_set_basic_constraints(pair->certificate, 0, -1);
	if (!result)
		result = gnutls_x509_crt_set_key_usage(
			pair->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (!result)
		result = gnutls_x509_crt_set_key_purpose_oid(
			pair->certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
	while (!result && next_host(&hosts, host))
		result = add_host(pair->certificate, host);
	return result ? result : sign(pair, by);
}

/* With before, which may be NULL, behind it. */
static char *copy_text(const gnutls_datum_t *text, const char *before)
{
	char *copy = NULL;

	if (asprintf(&copy, "%.*s%s", (int)text->size, (const char *)text->data,
		    before ? before : "") < 0)
		return NULL;
	return copy;
}

static int write_pair(
	const struct pair *pair, const char *before, char **ret_certificate, char **ret_key)
{
	gnutls_datum_t certificate = {NULL, 0}, key = {NULL, 0};
	int result = gnutls_x509_crt_export2(pair->certificate, GNUTLS_X509_FMT_PEM, &certificate);
	char *texts[2] = {NULL, NULL};

	if (!result)
		result = gnutls_x509_privkey_export2_pkcs8(
			pair->key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &key);
	if (!result) {
		texts[0] = copy_text(&certificate, before);
		texts[1] = copy_text(&key, NULL);
		result = texts[0] && texts[1] ? 0 : GNUTLS_E_MEMORY_ERROR;
	}
	gnutls_free(certificate.data);
	if (key.data)
		explicit_bzero(key.data, key.size);
	gnutls_free(key.data);
	if (result) {
		free_secret(&texts[0]);
		free_secret(&texts[1]);
		return result;
	}
	free_secret(ret_certificate);
	free_secret(ret_key);
	*ret_certificate = texts[0];
	*ret_key = texts[1];
	return 0;
}

/* The first certificate of a bundle, where it is still good: what it has signed is served until all have the new one. */
static char *last_authority(const char *bundle, const struct pair *pair, int64_t now_s)
{
	static const char end[] = "-----END CERTIFICATE-----\n";
	const char *at = bundle ? strstr(bundle, end) : NULL;

	if (!at || !pair->certificate ||
		gnutls_x509_crt_get_expiration_time(pair->certificate) <= now_s)
		return NULL;
	return strndup(bundle, (size_t)(at - bundle) + sizeof(end) - 1);
}

static int renew_authority(struct authority *authority, const struct authority_wish *wish,
	struct pair *pair, bool *changed)
{
	bool is_there = read_pair(authority->bundle, authority->authority_key, pair);
	_cleanup_free_ char *before = NULL;
	int result;

	if (is_there && gnutls_x509_crt_get_ca_status(pair->certificate, NULL) > 0 &&
		gnutls_x509_crt_get_expiration_time(pair->certificate) >=
			wish->now_s + wish->life_s)
		return 0;
	*changed = true;
	before = is_there ? last_authority(authority->bundle, pair, wish->now_s) : NULL;
	pair_deinit(pair);
	result = make_authority(wish, pair);
	return result ? result
		      : write_pair(pair, before, &authority->bundle, &authority->authority_key);
}

static int renew_certificate(struct authority *authority, const struct authority_wish *wish,
	const struct pair *by, struct pair *pair, bool *changed)
{
	unsigned status = 1;
	int result;

	if (read_pair(authority->certificate, authority->key, pair) &&
		!gnutls_x509_crt_verify(pair->certificate, &by->certificate, 1,
			GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &status) &&
		!(status & GNUTLS_CERT_INVALID) && is_for(pair->certificate, wish->hosts) &&
		gnutls_x509_crt_get_expiration_time(pair->certificate) - wish->now_s >
			wish->life_s / 3)
		return 0;
	*changed = true;
	pair_deinit(pair);
	result = make_certificate(wish, by, pair);
	return result ? result : write_pair(pair, NULL, &authority->certificate, &authority->key);
}

int authority_renew(struct authority *authority, const struct authority_wish *wish,
	bool *ret_changed, struct err *err)
{
	struct pair by = {NULL, NULL}, pair = {NULL, NULL};
	int result;

	*ret_changed = false;
	result = renew_authority(authority, wish, &by, ret_changed);
	if (!result)
		result = renew_certificate(authority, wish, &by, &pair, ret_changed);
	pair_deinit(&by);
	pair_deinit(&pair);
	if (!result)
		return 0;
	return err_set(err, result == GNUTLS_E_MEMORY_ERROR ? ENOMEM : EINVAL,
		"no certificate can be made: %s", gnutls_strerror(result));
}
