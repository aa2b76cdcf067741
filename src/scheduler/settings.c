/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's command line. */
#include "scheduler/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"

#define FILE_BYTES    (1u << 20) /* a ConfigMap has no more */
#define YEAR_NS	      (365ull * 86400 * 1000000000)
#define LIFE_LEAST_NS 10000000000ull
#define LOCK_VARIABLE "HAMI_NODELOCK_EXPIRE"

enum kind { KIND_TEXT, KIND_SWITCH, KIND_NUMBER, KIND_TIME };

struct flag {
	const char *name, *otherwise, *meaning; /* a meaning of NULL: it is taken and not used */
	enum kind kind;
	size_t offset;
};

static const struct flag flags[] = {
#define FLAG(field, name, kind, otherwise, meaning) \
	{(name), (otherwise), (meaning), KIND_##kind, offsetof(struct settings, field)},
#define IGNORED(name) {(name), NULL, NULL, KIND_TEXT, 0},
#include "scheduler/flags.def"
};

bool settings_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *word;
		uint64_t ns;
	} units[] = {{"ms", 1000000}, {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
		{"", 1000000000}};
	const char *start = text;
	uint64_t total = 0;

	do {
		size_t digits = strspn(text, "0123456789"), i = 0;
		uint64_t number;
		char part[16];

		if (!digits || digits >= sizeof(part))
			return false;
		memcpy(part, text, digits);
		part[digits] = '\0';
		text += digits;
		while (strncmp(text, units[i].word, strlen(units[i].word)) != 0)
			i++;
		text += strlen(units[i].word);
		if (parse_u64(part, YEAR_NS / units[i].ns, &number) ||
			(!*units[i].word && (*text || text != start + digits)))
			return false;
		total += number * units[i].ns;
	} while (*text && total <= YEAR_NS);
	*ret_ns = total;
	return total <= YEAR_NS;
}

static const struct flag *find(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		size_t its = strlen(flags[i].name);
		bool is_family = flags[i].name[its - 1] == '-' || flags[i].name[its - 1] == '_';

		if ((is_family ? length > its : length == its) && !memcmp(flags[i].name, text, its))
			return &flags[i];
	}
	return NULL;
}

static int set(
	struct settings *settings, const struct flag *flag, const char *value, struct err *err)
{
	void *field = (char *)settings + flag->offset;
	const char *right = NULL;

	switch (flag->kind) {
	case KIND_TEXT:
		*(const char **)field = value;
		break;
	case KIND_SWITCH:
		right = parse_switch(value, field) ? NULL : "true or false";
		break;
	case KIND_NUMBER:
		right = parse_u64(value, 1000000, field) ? "a number up to 1000000" : NULL;
		break;
	case KIND_TIME:
		right = settings_parse_time(value, field) ? NULL : "a time like 5m or 28s";
		break;
	}
	return right ? err_set(err, EINVAL, "--%s is '%.80s': %s is right", flag->name, value,
			       right)
		     : 0;
}

/* Takes one flag, and the argument behind it where that is its value. */
static int take(char **argv, int *at, struct settings *settings, struct err *err)
{
	const char *text = argv[*at] + (argv[*at][1] == '-' ? 2 : 1), *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	const struct flag *flag = find(text, length);
	const char *value = equals ? equals + 1 : NULL;

	settings->wants_help |= !strcmp(text, "help") || !strcmp(text, "h");
	settings->wants_version |= !strcmp(text, "version") || !strcmp(text, "V");
	if (settings->wants_help || settings->wants_version)
		return 0;
	if (!flag)
		return err_set(err, EINVAL, "unknown option '%.100s'; see --help", argv[*at]);
	if (!flag->meaning) {
		*at += !value && argv[*at + 1] && argv[*at + 1][0] != '-';
		return 0;
	}
	if (!value)
		value = flag->kind == KIND_SWITCH ? "true" : argv[++*at];
	return value ? set(settings, flag, value, err)
		     : err_set(err, EINVAL, "--%s needs a value", flag->name);
}

static int read_users(struct settings *settings, struct err *err)
{
	size_t count = 0;

	settings->users = strdup(settings->trusted_users);
	if (!settings->users)
		return err_set(err, ENOMEM, "no memory");
	for (char *rest = settings->users, *user; (user = strsep(&rest, ","));) {
		if (count == SETTINGS_USERS)
			return err_set(
				err, EINVAL, "--trusted-users names more than %d", SETTINGS_USERS);
		if (*user)
			settings->trusted[count++] = user;
	}
	return 0;
}

static int read_file(struct settings *settings, struct err *err)
{
	_cleanup_free_ char *text = malloc(FILE_BYTES + 1);
	size_t bytes;
	int result = text ? file_read_regular(AT_FDCWD, settings->config_file, 0, text,
				    FILE_BYTES + 1, &bytes)
			  : -ENOMEM;

	if (result)
		return err_set(
			err, -result, "%.200s: %s", settings->config_file, strerror(-result));
	return settings_read_file(settings, text, bytes, err);
}

static int check(const struct settings *settings, struct err *err)
{
	if (!*settings->cert_file != !*settings->key_file)
		return err_set(err, EINVAL, "--cert_file and --key_file go together");
	if (*settings->webhook_secret && *settings->cert_file)
		return err_set(err, EINVAL, "--webhook-secret takes the place of --cert_file");
	if (*settings->webhook_configuration && !*settings->webhook_secret)
		return err_set(err, EINVAL, "--webhook-configuration needs --webhook-secret");
	if (settings->certificate_life_ns < LIFE_LEAST_NS)
		return err_set(err, EINVAL, "--webhook-certificate-life is at least 10s");
	if (*settings->client_ca_file && !*settings->cert_file && !*settings->webhook_secret)
		return err_set(err, EINVAL, "--client_ca_file needs --cert_file");
	if (settings->has_leader && (!*settings->lease_name || !*settings->lease_namespace))
		return err_set(err, EINVAL,
			"--leader-elect needs --leader-elect-resource-name and -namespace");
	return 0;
}

/* HAMi's variable; the command line goes before it. */
static int read_environment(struct settings *settings, struct err *err)
{
	const char *text = getenv(LOCK_VARIABLE);

	if (text && *text && !settings_parse_time(text, &settings->lock_ns))
		return err_set(err, EINVAL,
			LOCK_VARIABLE " is '%.80s': a time like 5m or 28s is right", text);
	return 0;
}

static int read_all(int argc, char **argv, struct settings *settings, struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(flags) && !result; i++)
		if (flags[i].meaning)
			result = set(settings, &flags[i], flags[i].otherwise, err);
	if (!result)
		result = read_environment(settings, err);
	for (int i = 1; i < argc && !result && !settings->wants_help && !settings->wants_version;
		i++)
		result = argv[i][0] == '-' && argv[i][1]
				 ? take(argv, &i, settings, err)
				 : err_set(err, EINVAL, "'%.100s' is no option; see --help",
					   argv[i]);
	if (result || settings->wants_help || settings->wants_version)
		return result;
	result = check(settings, err);
	if (!result)
		result = read_users(settings, err);
	if (!result)
		result = *settings->config_file ? read_file(settings, err)
						: settings_read_file(settings, "", 0, err);
	return result;
}

int settings_read(int argc, char **argv, struct settings *ret_settings, struct err *err)
{
	int result;

	*ret_settings = (struct settings){.texts = NULL};
	result = read_all(argc, argv, ret_settings, err);
	if (result) {
		settings_deinit(ret_settings);
		return result;
	}
	ret_settings->rules.trusted = ret_settings->trusted;
	ret_settings->rules.scheduler = ret_settings->scheduler_name;
	ret_settings->rules.takes_default = ret_settings->takes_default;
	ret_settings->rules.demand.node_policy = ret_settings->node_policy;
	ret_settings->rules.demand.device_policy = ret_settings->device_policy;
	return 0;
}

void settings_write_help(FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].meaning)
			fprintf(out, "  --%s\n        %s%s%s%s\n", flags[i].name, flags[i].meaning,
				*flags[i].otherwise ? " (" : "", flags[i].otherwise,
				*flags[i].otherwise ? ")" : "");
}
