/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines with fields.
 *
 *	log_warn("share file is broken", STR("path", path), U64("line", line));
 *	vgpu: level=warn topic=share pid=71 msg="share file is broken" path=/etc/vgpu/share line=3
 *
 * One write(2) a line, to stderr where that harms no program (base/stderr.h), never to stdout; no allocation; errno is kept. Messages are constant
 * lower-case sentences without values. A file that logs defines LOG_TOPIC first.
 *
 * The sink says how many lines come from one place in the code. A guest in the process of another program has
 * log_guest, and need not set it; a program of ours that runs for months sets log_daemon.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/bits.h"

/* Lines of one place in the code for the life of a process, in log_guest. */
#define LOG_LINES_PER_SITE 16

struct log_sink {
	uint32_t lines_per_site; /* 0: without a bound */
};
extern const struct log_sink log_guest, log_daemon;

/* The sink of all threads from here on; log_guest before that. */
void log_set_sink(const struct log_sink *sink);

enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* The topics: the set exists once. */
#define LOG_TOPICS(X)         \
	X(OPTIONS, "options") \
	X(SHARE, "share")     \
	X(REGION, "region")   \
	X(LEDGER, "ledger")   \
	X(DOOR, "door")       \
	X(MEMORY, "memory")   \
	X(COMPUTE, "compute") \
	X(NET, "net")         \
	X(KUBELET, "kubelet") \
	X(PODS, "pods")

enum log_topic {
#define X(id, name) LOG_##id,
	LOG_TOPICS(X)
#undef X
		LOG_TOPIC_COUNT
};

struct log_field {
	const char *key;  /* NULL ends the list */
	const char *text; /* NULL: number is the value */
	uint64_t number;
};

#define U64(k, v)                                   \
	{                                           \
		.key = (k), .number = (uint64_t)(v) \
	}
#define STR(k, v)                                  \
	{                                          \
		.key = (k), .text = (v) ? (v) : "" \
	}

/* Levels by topic, and how often one place has spoken. */
extern _Atomic uint8_t log_levels[LOG_TOPIC_COUNT];

/*
 * Sets the levels from text like "warn" or "warn,ledger=trace"; unknown words are skipped, and the
 * first of them is put into *ret_unknown (NULL where there is none; points into text).
 */
void log_set_levels(const char *text, const char **ret_unknown);

/* The first unknown word of such a text, or NULL. Sets nothing. */
const char *log_check_levels(const char *text);

/* Sets one level for every topic. */
void log_set_level(enum log_level level);

/* Writes one line; use the macros below. */
void log_write(_Atomic uint32_t *site_lines, enum log_level level, enum log_topic topic,
	const char *message, const struct log_field *fields) __attribute__((cold));

#define LOG_AT(level, message, ...)                                                                \
	do {                                                                                       \
		static _Atomic uint32_t site_lines_;                                               \
		/* relaxed: a level seen late costs or saves one line */                           \
		if (UNLIKELY(atomic_load_explicit(&log_levels[LOG_TOPIC], memory_order_relaxed) >= \
			     (level)))                                                             \
			log_write(&site_lines_, (level), LOG_TOPIC, (message),                     \
				(const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}});        \
	} while (0)

#define log_error(message, ...) LOG_AT(LOG_ERROR, message, __VA_ARGS__)
#define log_warn(message, ...)	LOG_AT(LOG_WARN, message, __VA_ARGS__)
#define log_info(message, ...)	LOG_AT(LOG_INFO, message, __VA_ARGS__)
#define log_debug(message, ...) LOG_AT(LOG_DEBUG, message, __VA_ARGS__)
