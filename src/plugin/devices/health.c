/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices are fit to be handed out.
 *
 * NVML is begun anew while a device is missing, because only then does it find what has come back, and after each failure
 * of its own, because only then is what it holds of the driver of this driver.
 */
#include "plugin/devices/health.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "node/nvml_library.h"

#define LOG_TOPIC LOG_KUBELET

#define WAIT_MS	  500  /* for an event, and then whether to end is asked */
#define AGAIN_MS  2000 /* while a device or the driver is missing it is looked for so often */

#define EVENTS	  (nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError)

struct health {
	struct health_request request;
	struct loop *loop;
	struct loop_watch watch;
	int event_fd; /* written by the thread, read in the loop */
	pthread_t thread;
	_Atomic bool is_ending;
	_Atomic uint64_t unhealthy; /* written by the thread */
	/* the thread's own */
	struct nvml_library library;
	nvmlEventSet_t set;
	nvmlDevice_t handles[INVENTORY_MAX];
	uint64_t missing, failed; /* by device */
};

/* Whether the number is in a list with commas. */
static bool has_number(const char *list, uint64_t number)
{
	char word[24];

	while (*list) {
		size_t length = strcspn(list, ", ");
		uint64_t one;

		if (length && length < sizeof(word)) {
			memcpy(word, list, length);
			word[length] = 0;
			if (!parse_u64(word, UINT64_MAX, &one) && one == number)
				return true;
		}
		list += length;
		list += *list != 0;
	}
	return false;
}

static bool is_word(const char *text, const char *word)
{
	return !strcmp(text, word);
}

bool health_is_failure(const char *ignores, const char *heeds, uint64_t xid)
{
	static const char programs[] = "13,31,43,45,68,109";

	if (is_word(heeds, "all") || has_number(heeds, xid))
		return true;
	return !is_word(ignores, "all") && !is_word(ignores, "xids") && !has_number(ignores, xid) &&
	       !has_number(programs, xid);
}

static uint64_t bit(unsigned device)
{
	return UINT64_C(1) << device;
}

/* The loop is told what it does not know yet. */
static void publish(struct health *health)
{
	uint64_t now = health->missing | health->failed, one = 1;

	/* relaxed: the write to the descriptor orders it before the loop's look */
	if (atomic_exchange_explicit(&health->unhealthy, now, memory_order_relaxed) != now &&
		write(health->event_fd, &one, sizeof(one)) < 0)
		log_debug("the loop is told of health already");
}

static const char *uuid_of(const struct health *health, unsigned device)
{
	return health->request.devices->device[device].uuid;
}

/* One that comes back has forgotten what it reported. */
static void set_missing(struct health *health, unsigned device, bool is_missing)
{
	uint64_t before = health->missing;

	health->missing = is_missing ? before | bit(device) : before & ~bit(device);
	if (health->missing == before)
		return;
	if (is_missing) {
		log_warn("a device is missing", STR("device", uuid_of(health, device)));
		return;
	}
	log_info("a device is there again", STR("device", uuid_of(health, device)));
	health->failed &= ~bit(device);
}

static void set_failed(struct health *health, unsigned device, const nvmlEventData_t *event)
{
	health->failed |= bit(device);
	if (event->eventType == nvmlEventTypeXidCriticalError)
		log_warn("a device reports a failure", STR("device", uuid_of(health, device)),
			U64("xid", event->eventData));
	else
		log_warn("a device's memory has an error that could not be corrected",
			STR("device", uuid_of(health, device)));
}

static void end_session(struct health *health)
{
	if (health->set)
		health->library.node.nvmlEventSetFree(health->set);
	health->set = NULL;
	nvml_library_close(&health->library);
}

/* A device that cannot report what is asked for is watched for being there. */
static void watch_device(struct health *health, unsigned device)
{
	const struct nvml_driver *nvml = &health->library.driver;
	nvmlMemory_t memory;
	nvmlReturn_t result =
		nvml->nvmlDeviceGetHandleByUUID(uuid_of(health, device), &health->handles[device]);

	if (result == NVML_SUCCESS)
		result = nvml->nvmlDeviceGetMemoryInfo(health->handles[device], &memory);
	if (result == NVML_ERROR_NOT_SUPPORTED)
		result = NVML_SUCCESS;
	set_missing(health, device, result != NVML_SUCCESS);
	if (result != NVML_SUCCESS || !health->set)
		return;
	result = health->library.node.nvmlDeviceRegisterEvents(
		health->handles[device], EVENTS, health->set);
	if (result == NVML_ERROR_NOT_SUPPORTED)
		result = health->library.node.nvmlDeviceRegisterEvents(
			health->handles[device], nvmlEventTypeXidCriticalError, health->set);
	if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_SUPPORTED)
		set_missing(health, device, true);
}

static bool has_events(const struct nvml_node *node)
{
	return node->nvmlEventSetCreate && node->nvmlEventSetFree && node->nvmlEventSetWait_v2 &&
	       node->nvmlDeviceRegisterEvents;
}

static void begin_session(struct health *health)
{
	struct err err = ERR_NULL;
	unsigned count = health->request.devices->count;

	if (nvml_library_open(NULL, &health->library, &err)) {
		for (unsigned i = 0; i < count; i++)
			set_missing(health, i, true);
		return;
	}
	if (!has_events(&health->library.node) ||
		health->library.node.nvmlEventSetCreate(&health->set) != NVML_SUCCESS)
		health->set = NULL;
	for (unsigned i = 0; i < count; i++)
		watch_device(health, i);
}

static void take_event(struct health *health, const nvmlEventData_t *event)
{
	if (event->eventType == nvmlEventTypeXidCriticalError &&
		!health_is_failure(
			health->request.ignores, health->request.heeds, event->eventData))
		return;
	for (unsigned i = 0; i < health->request.devices->count; i++)
		if (health->handles[i] == event->device && !(health->failed & bit(i)))
			set_failed(health, i, event);
}

/* Whether the session is of no use any more. */
static bool wait_for_event(struct health *health)
{
	nvmlEventData_t event;
	nvmlReturn_t result;

	if (!health->set) {
		poll(NULL, 0, WAIT_MS);
		return false;
	}
	result = health->library.node.nvmlEventSetWait_v2(health->set, &event, WAIT_MS);
	if (result == NVML_SUCCESS)
		take_event(health, &event);
	return result != NVML_SUCCESS && result != NVML_ERROR_TIMEOUT;
}

static bool is_ending(struct health *health)
{
	/* relaxed: the thread is joined after it */
	return atomic_load_explicit(&health->is_ending, memory_order_relaxed);
}

static void rest(struct health *health)
{
	for (unsigned i = 0; i < AGAIN_MS / WAIT_MS && !is_ending(health); i++)
		poll(NULL, 0, WAIT_MS);
}

/* What is missing is looked for again and again, and the others' events are waited for in between. */
static void watch_session(struct health *health)
{
	uint64_t until_ns = clock_now_ns() + AGAIN_MS * 1000000ull;
	bool is_over = false;

	while (!is_ending(health) && !is_over) {
		is_over = wait_for_event(health);
		publish(health);
		if (health->missing && clock_now_ns() >= until_ns)
			break;
	}
}

static void *watch(void *context)
{
	struct health *health = context;

	while (!is_ending(health)) {
		begin_session(health);
		publish(health);
		if (health->library.handle)
			watch_session(health);
		else
			rest(health);
		end_session(health);
	}
	return NULL;
}

static void told(void *context, uint32_t events)
{
	struct health *health = context;
	uint64_t count;

	if (read(health->event_fd, &count, sizeof(count)) < 0)
		return;
	/* relaxed: see publish() */
	health->request.changed(health->request.context,
		atomic_load_explicit(&health->unhealthy, memory_order_relaxed));
}

int health_start(
	struct loop *loop, const struct health_request *request, struct health **ret_health)
{
	struct health *health;
	int result;

	*ret_health = NULL;
	if (is_word(request->ignores, "all") && !*request->heeds)
		return 0;
	health = calloc(1, sizeof(*health));
	if (!health)
		return -ENOMEM;
	health->request = *request;
	health->loop = loop;
	health->watch = (struct loop_watch){.ready = told, .context = health};
	health->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	result = health->event_fd < 0
			 ? -errno
			 : loop_watch_add(loop, &health->watch, health->event_fd, EPOLLIN);
	if (!result)
		result = -pthread_create(&health->thread, NULL, watch, health);
	if (!result) {
		*ret_health = health;
		return 0;
	}
	loop_watch_remove(loop, &health->watch);
	if (health->event_fd >= 0)
		close(health->event_fd);
	free(health);
	return result;
}

void health_stop(struct health *health)
{
	if (!health)
		return;
	/* relaxed: nothing else is told by it */
	atomic_store_explicit(&health->is_ending, true, memory_order_relaxed);
	pthread_join(health->thread, NULL);
	loop_watch_remove(health->loop, &health->watch);
	close(health->event_fd);
	free(health);
}
