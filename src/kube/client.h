/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the Kubernetes API server, in a daemon's loop.
 *
 * A call is begun here and ends in a callback from loop_run(), always later than the function that began it.
 * It is limited in rate together with all calls of its client; it is tried again, with growing pauses or as
 * long as the server asks for, while that can do no harm and its deadline has not come. No object is kept:
 * the callback looks at what came and takes what it needs.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "kube/access.h"
#include "net/loop.h"

struct kube_client;
struct kube_call;

struct kube_settings {
	unsigned calls_per_s, burst;		/* of all calls together; 0: no limit */
	uint64_t deadline_ns;			/* for a call with all its attempts and pauses */
	uint64_t attempt_ns;			/* for one attempt */
	uint64_t first_pause_ns, most_pause_ns; /* between attempts, where the server names none */
	size_t answer_most_bytes;		/* a larger one is not read to its end */
	/*
	 * Keys of lists that nobody reads, up to a NULL: they are empty in what the server answers, wherever they are. NULL: none.
	 */
	const char *const *unused;
	/*
	 * A descriptor. Once it can be read, every call ends with KUBE_E_CANCELLED, and so does each later
	 * one: an eventfd or a pipe, by which any thread or signal handler stops the client. -1: none. It is
	 * the caller's.
	 */
	int cancel_fd;
};

/* 50 calls a second, 100 at once; 30 s a call, 10 s an attempt; pauses of 0.2 to 10 s; 64 MiB. */
extern const struct kube_settings kube_settings_default;

enum kube_outcome {
	_KUBE_E_SUCCESS = 0,
	KUBE_E_NOT_FOUND,
	KUBE_E_CONFLICT, /* the object is no longer at the resourceVersion that the patch names: read it again */
	KUBE_E_EXISTS,	/* what was to be created is there */
	KUBE_E_GONE,	/* a resourceVersion or a continue token is too old: list anew */
	KUBE_E_DENIED,	/* who this is, is unknown or may not do this */
	KUBE_E_INVALID, /* the server refuses the request as it is */
	KUBE_E_UNREACHABLE, /* no answer of use until the deadline; nothing was changed, or a get or patch may be repeated */
	KUBE_E_UNCERTAIN, /* the answer to a create was lost: it may have been carried out */
	KUBE_E_CANCELLED,
	KUBE_E_NOT_UNDERSTOOD, /* the answer is not JSON, or too large */
};

struct kube_result {
	enum kube_outcome outcome;
	int status; /* HTTP; 0: no answer came */
	unsigned attempts;
	const json_t *
		body; /* the object; NULL without success. The client's: gone when the callback returns */
	const char *words; /* why not; the server's own words where it gave some */
};

typedef void kube_done_fn(void *context, const struct kube_result *result);

/* The access is copied. The loop must outlive the client. */
int kube_client_new(struct loop *loop, const struct kube_access *access,
	const struct kube_settings *settings, struct kube_client **ret_client,
	struct err *err) MUST_CHECK;

/* Ends every call without its callback. Not from a callback. */
void kube_client_free(struct kube_client *client);

/*
 * Each of these begins a call. The path begins with "/api" and may have a query, whose values the caller has
 * escaped. The JSON stays the caller's. done is called once, unless the call is cancelled by kube_cancel().
 * They fail for want of memory alone: -ENOMEM, and no callback.
 */
int kube_get(struct kube_client *client, const char *path, kube_done_fn *done, void *context,
	struct kube_call **ret_call) MUST_CHECK;

/*
 * A merge patch. resource_version (NULL: any) is put into it: where the object is at another,
 * KUBE_E_CONFLICT, which can also be the echo of the call's own first attempt, whose answer was lost. Who
 * reads again sees.
 */
int kube_patch(struct kube_client *client, const char *path, const json_t *patch,
	const char *resource_version, kube_done_fn *done, void *context,
	struct kube_call **ret_call) MUST_CHECK;

/*
 * A JSON patch (RFC 6902): an array of operations, of which all are carried out or none. One that begins with
 * "test" operations changes the object only as it is known. KUBE_E_INVALID where a test fails, which, too, can be the
 * echo of the first attempt.
 */
int kube_patch_if(struct kube_client *client, const char *path, const json_t *operations,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;

/*
 * Creates an object in a collection, or a subresource: events, bindings. Is repeated only where the server
 * has surely not carried it out.
 */
int kube_create(struct kube_client *client, const char *path, const json_t *object,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;

/*
 * A get whose answer goes on: each line of it, parsed, is handed to take() as it comes. One attempt, without
 * a deadline; ends when nothing comes for silence_s. Where take() returns other than 0, or a line is not
 * JSON, the call ends with KUBE_E_NOT_UNDERSTOOD. An answer that ends, ends with success and without a body.
 * take() must not cancel the call.
 */
typedef int kube_take_fn(void *context, const json_t *line);
int kube_stream(struct kube_client *client, const char *path, unsigned silence_s,
	kube_take_fn *take, kube_done_fn *done, void *context,
	struct kube_call **ret_call) MUST_CHECK;

/* Ends a call without its callback. Accepts NULL. The server may have carried it out. */
void kube_cancel(struct kube_call *call);

/* How many requests it has sent. */
uint64_t kube_client_sent(const struct kube_client *client);

/* The loop that the client is in. */
struct loop *kube_client_loop(const struct kube_client *client);

/* The pause after so many attempts that failed, by the client's settings. */
uint64_t kube_client_pause_ns(const struct kube_client *client, unsigned failed);
