/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler was told: its command line, and the section `nvidia` of device-config.yaml. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/err.h"
#include "scheduler/admission.h"

#define SETTINGS_USERS 8

struct settings {
	/* flags.def; a text is never NULL */
	const char *http_bind, *cert_file, *key_file, *client_ca_file, *metrics_bind;
	const char *scheduler_name, *node_policy, *device_policy, *node_selector;
	const char *lease_name, *lease_namespace, *config_file, *trusted_users;
	const char *webhook_secret, *webhook_configuration, *webhook_hosts, *page_bind;
	uint64_t calls_per_s, burst, client_calls_per_s, client_burst;
	uint64_t call_ns, lock_ns, bind_wait_ns, reservation_ns, certificate_life_ns;
	bool takes_default, has_leader, has_legacy_metrics, is_debug;

	struct admission_rules rules; /* of the file, and of flags */
	const char *trusted[SETTINGS_USERS + 1];
	char *users; /* what they point into */
	struct settings_text *texts;

	bool wants_help, wants_version; /* something is only to be shown */
};

/*
 * "--name value", "--name=value" and one dash for two are taken, and a switch alone is true. The arguments must live as
 * long. -EINVAL with err set, which names the flag, or file, line and key; -ENOMEM.
 */
int settings_read(int argc, char **argv, struct settings *ret_settings, struct err *err) MUST_CHECK;

/* The section of a file's text. */
int settings_read_file(
	struct settings *settings, const char *text, size_t bytes, struct err *err) MUST_CHECK;

/* Accepts what is all zero. */
void settings_deinit(struct settings *settings);

/* "5m", "1h30m", "28s", "250ms"; a number alone is seconds. False: it is no time, or longer than a year. */
bool settings_parse_time(const char *text, uint64_t *ret_ns);

/* The list of all flags with their defaults, for people. */
void settings_write_help(FILE *out);
