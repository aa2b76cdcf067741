/* SPDX-License-Identifier: Apache-2.0 */
/* What was looked at of each user. */
#include "node/account.h"

#include <errno.h>
#include <stdlib.h>

#include "node/user.h"

struct account *account_find(struct accounts *accounts, uid_t user, uint64_t space)
{
	struct account *list;

	for (size_t i = 0; i < accounts->count; i++)
		if (accounts->list[i].user == user && accounts->list[i].space == space)
			return &accounts->list[i];
	list = reallocarray(accounts->list, accounts->count + 1, sizeof(*list));
	if (!list)
		return NULL;
	accounts->list = list;
	list[accounts->count] = (struct account){.user = user, .space = space};
	return &list[accounts->count++];
}

int account_enter(
	struct accounts *accounts, pid_t pid, uid_t *ret_user, struct account **ret_account)
{
	struct account *account;
	uint64_t space;
	uid_t user;

	if (!user_and_space(pid, &user, &space))
		return -ESRCH;
	*ret_user = user;
	*ret_account = NULL;
	if (!user && !space)
		return 0;
	account = account_find(accounts, space ? 0 : user, space);
	if (!account)
		return -ENOMEM;
	if (account->processes == ACCOUNT_PROCESSES) {
		account->processes_left_out++;
		return -E2BIG;
	}
	account->processes++;
	*ret_account = account;
	return 0;
}

void accounts_clear(struct accounts *accounts)
{
	free(accounts->list);
	*accounts = (struct accounts){.list = NULL};
}
