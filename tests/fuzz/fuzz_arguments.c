/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as what kube-scheduler sends: names that are read where they stand are those that a reader of JSON finds. */
#include <string.h>

#include "scheduler/arguments.h"
#include "tests/fuzz/fuzz.h"

static void check_names(const struct arguments *arguments, const json_t *list)
{
	const json_t *name;
	size_t i, count = 0;

	FUZZ_CHECK(arguments->has_names == json_is_array(list));
	json_array_foreach(list, i, name) if (json_is_string(name))
	{
		FUZZ_CHECK(count < arguments->name_count);
		FUZZ_CHECK(!strcmp(arguments->names[count++], json_string_value(name)));
	}
	FUZZ_CHECK(count == arguments->name_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *body = malloc(size + 1);
	struct arguments arguments;
	struct err err = ERR_NULL;
	json_t *whole, *list;

	FUZZ_CHECK(body);
	memcpy(body, bytes, size);
	body[size] = '\0';
	whole = json_loadb(body, size, 0, NULL);
	if (arguments_read(body, size, &arguments, &err)) {
		FUZZ_CHECK(!json_is_object(whole) && err.text[0]);
	} else {
		FUZZ_CHECK(json_is_object(whole));
		check_names(&arguments, json_object_get(whole, "NodeNames"));
		list = arguments_list(&arguments);
		FUZZ_CHECK(json_equal(list, json_object_get(whole, "NodeNames")) ||
			   !json_object_get(whole, "NodeNames"));
		json_decref(list);
		json_object_del(whole, "NodeNames");
		json_object_del(arguments.object, "NodeNames");
		FUZZ_CHECK(json_equal(whole, arguments.object));
		arguments_deinit(&arguments);
	}
	json_decref(whole);
	free(body);
	return 0;
}
