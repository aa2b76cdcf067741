/* SPDX-License-Identifier: Apache-2.0 */
/* A library that a plugin brings (plugin.c): it has names that begin as the driver's do, and asks for the plugin's. */
#include "tests/tenant/ask.h"

int curl_easy_init(void);
int cupsGetDests(void);
int nvmlOwn(void);
own_ask_fn own_ask;

EXPORT int curl_easy_init(void)
{
	return 1;
}

EXPORT int cupsGetDests(void)
{
	return 2;
}

EXPORT int nvmlOwn(void)
{
	return 3;
}

EXPORT void own_ask(void)
{
	ASK_ALL("part");
}
