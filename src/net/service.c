/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon in a loop of its own. */
#include "net/service.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"

static void signal_came(void *context, uint32_t events)
{
	loop_stop(context);
}

static int open_signals(int *ret_fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL))
		return -EINVAL;
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

static int serve(
	const struct service *service, struct loop *loop, const void *settings, struct err *err)
{
	void *daemon;
	int result = service->start(loop, settings, &daemon, err);

	if (result)
		return result;
	while (!(result = loop_run(loop, UINT64_MAX)))
		;
	if (result < 0)
		err_set(err, -result, "the loop ended: %s", strerror(-result));
	service->stop(daemon);
	return result < 0 ? result : 0;
}

int service_run(const struct service *service, const void *settings, struct err *err)
{
	_cleanup_fd_ int signals = -1;
	struct loop_watch watch = {.ready = signal_came};
	struct loop *loop;
	int result = open_signals(&signals);

	if (!result)
		result = loop_new(&loop);
	if (result)
		return err_set(err, -result, "cannot start: %s", strerror(-result));
	watch.context = loop;
	result = loop_watch_add(loop, &watch, signals, EPOLLIN);
	if (result)
		err_set(err, -result, "cannot wait for signals: %s", strerror(-result));
	else
		result = serve(service, loop, settings, err);
	loop_free(loop);
	return result;
}
