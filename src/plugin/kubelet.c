/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's registration with the kubelet.
 *
 * Four times a second the two sockets are compared with what was there: whether the kubelet's is another than
 * the one we registered at, and whether ours is there. That costs two system calls, and unlike a watch on the
 * folder it cannot miss what happened while the folder itself was made anew, or mounted over.
 *
 * A kubelet that watches no more is registered with again where its socket is still the same: it knows plugins by their resource's
 * name, and when one ends it drops whoever has that name now (seen with 1.35).
 */
#include "plugin/kubelet.h"

#include <device_plugin.pb-c.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"

#define LOG_TOPIC   LOG_KUBELET

#define POLL_NS	    (250ull * 1000000)
#define REFUSED_NS  (1000ull * 1000000) /* after a failure */
#define LEFT_NS	    (100ull * 1000000)	/* the kubelet first finishes with what it has dropped */
#define REGISTER_NS (5ull * 1000000000)
#define REGISTER    "/v1beta1.Registration/Register"

struct kubelet {
	struct loop *loop;
	struct rpc *rpc;
	struct service *service;
	struct loop_timer timer;
	struct rpc_server *server;	  /* NULL: is not tied */
	struct rpc_request *registration; /* NULL: nothing is asked */
	struct stat registered_at;	  /* the socket that the registration went to */
	const char *kubelet_path, *resource_name;
	char path[108], *name; /* of our socket; its name is in the path */
	bool is_preferring;
	bool is_refused;	/* said once, until it goes well */
	bool is_left, is_again; /* it watches no more; it is being registered with for that */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void detach(struct kubelet *kubelet)
{
	rpc_request_free(kubelet->registration);
	rpc_server_free(kubelet->server);
	kubelet->registration = NULL;
	kubelet->server = NULL;
	service_forget_calls(kubelet->service);
	kubelet->is_left = kubelet->is_again = false;
}

static void ignore_message(void *context, const void *message, size_t bytes)
{
}

/* A failure is repaired at the next poll, because a server must not be ended from its own callback. */
static void registered(void *context, int status, const char *words)
{
	struct kubelet *kubelet = context;

	kubelet->registration = NULL;
	if (status == RPC_OK) {
		log_info("registered with the kubelet", STR("resource", kubelet->resource_name),
			STR("socket", kubelet->path));
		kubelet->is_refused = false;
		return;
	}
	/* it has ended itself: its socket is there until it begins again */
	if (kubelet->is_again && status == RPC_UNAVAILABLE) {
		kubelet->is_left = true;
		return;
	}
	if (!kubelet->is_refused)
		log_warn("the kubelet did not register the plugin; it is asked again",
			STR("why", words), U64("status", status));
	kubelet->is_refused = true;
	memset(&kubelet->registered_at, 0, sizeof(kubelet->registered_at));
}

static int send_registration(struct kubelet *kubelet)
{
	static char version[] = "v1beta1";
	static const struct rpc_listener listener = {ignore_message, registered};
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	uint8_t *packed;
	size_t bytes;
	int result;

	request.version = version;
	request.endpoint = kubelet->name;
	request.resource_name = (char *)kubelet->resource_name;
	options.get_preferred_allocation_available = kubelet->is_preferring;
	request.options = &options;
	packed = malloc(v1beta1__register_request__get_packed_size(&request));
	if (!packed)
		return -ENOMEM;
	bytes = v1beta1__register_request__pack(&request, packed);
	result = rpc_send(kubelet->rpc, kubelet->kubelet_path, REGISTER, packed, bytes, REGISTER_NS,
		&listener, kubelet, &kubelet->registration);
	free(packed);
	return result;
}

/* Who reaches the socket can ask for the slices of the pod that waits: its folder may be open, and the umask may be anything. */
static int serve(struct kubelet *kubelet, struct err *err)
{
	mode_t mask = umask(0177);
	int result = rpc_serve(kubelet->rpc, kubelet->path, &service_methods, kubelet->service,
		&kubelet->server, err);

	umask(mask);
	return result;
}

/* The kubelet asks back while it registers, so the server is there first. */
static void attach(struct kubelet *kubelet, const struct stat *at)
{
	struct err err = ERR_NULL;
	int result;

	detach(kubelet);
	result = serve(kubelet, &err);
	if (!result) {
		kubelet->registered_at = *at;
		result = send_registration(kubelet);
	}
	if (!result)
		return;
	if (!kubelet->is_refused)
		log_warn("the plugin's socket could not be made; it is tried again",
			STR("why", err.text[0] ? err.text : strerror(-result)));
	kubelet->is_refused = true;
	detach(kubelet);
}

static void has_left(void *context)
{
	struct kubelet *kubelet = context;

	kubelet->is_left = true;
	loop_timer_set(kubelet->loop, &kubelet->timer, clock_now_ns() + LEFT_NS);
}

static void register_again(struct kubelet *kubelet)
{
	if (kubelet->registration)
		return;
	kubelet->is_left = false;
	kubelet->is_again = true;
	if (send_registration(kubelet))
		kubelet->is_left = true;
}

static void poll_sockets(void *context)
{
	struct kubelet *kubelet = context;
	struct stat theirs, ours;

	loop_timer_set(kubelet->loop, &kubelet->timer,
		clock_now_ns() + (kubelet->is_refused ? REFUSED_NS : POLL_NS));
	if (stat(kubelet->kubelet_path, &theirs) < 0)
		return; /* it comes back, and then it is another */
	if (!kubelet->server || !is_same(&theirs, &kubelet->registered_at) ||
		stat(kubelet->path, &ours) < 0)
		attach(kubelet, &theirs);
	else if (kubelet->is_left)
		register_again(kubelet);
}

/* Beside the kubelet's, named after the resource: "nvidia-gpu.sock", as HAMi has it. */
static int name_socket(struct kubelet *kubelet, struct err *err)
{
	const char *slash = strrchr(kubelet->kubelet_path, '/'),
		   *kind = strchr(kubelet->resource_name, '/');
	int folder = slash ? (int)(slash - kubelet->kubelet_path) + 1 : 0, length;

	if (!kind || !kind[1] || strchr(kind + 1, '/'))
		return err_set(err, EINVAL, "resource name '%s' is not of the form DOMAIN/NAME",
			kubelet->resource_name);
	length = snprintf(kubelet->path, sizeof(kubelet->path), "%.*snvidia-%s.sock", folder,
		kubelet->kubelet_path, kind + 1);
	if (length < 0 || (size_t)length >= sizeof(kubelet->path))
		return err_set(err, EINVAL, "the path of the kubelet's socket is too long: %s",
			kubelet->kubelet_path);
	kubelet->name = kubelet->path + folder;
	return 0;
}

int kubelet_start(struct loop *loop, struct rpc *rpc, const struct kubelet_request *request,
	struct service *service, struct kubelet **ret_kubelet, struct err *err)
{
	struct kubelet *kubelet = calloc(1, sizeof(*kubelet));
	int result;

	if (!kubelet)
		return err_set(err, ENOMEM, "no memory");
	kubelet->loop = loop;
	kubelet->rpc = rpc;
	kubelet->service = service;
	kubelet->kubelet_path = request->socket_path;
	kubelet->resource_name = request->resource_name;
	kubelet->is_preferring = request->is_preferring;
	kubelet->timer = (struct loop_timer){.due = poll_sockets, .context = kubelet};
	result = name_socket(kubelet, err);
	if (result) {
		free(kubelet);
		return result;
	}
	service->left = has_left;
	service->left_context = kubelet;
	loop_timer_set(loop, &kubelet->timer, clock_now_ns());
	*ret_kubelet = kubelet;
	return 0;
}

void kubelet_stop(struct kubelet *kubelet)
{
	if (!kubelet)
		return;
	loop_timer_clear(kubelet->loop, &kubelet->timer);
	kubelet->service->left = NULL;
	detach(kubelet);
	free(kubelet);
}
