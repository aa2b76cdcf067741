/* SPDX-License-Identifier: Apache-2.0 */
/* A container and its node, for tests of what is granted: two cards, and what was made ready for the container. */
#pragma once

#include "plugin/grant/grant.h"

#define UUID0  "GPU-c694b1ba-0000-4000-8000-000000000000"
#define UUID1  "GPU-1f0ead19-0000-4000-8000-000000000001"
#define UID    "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c11"
#define UNIQUE "6ead0f30-affc-4ab6-937a-e6cb37978d76"

#define ONE    UUID0 ",NVIDIA,3000,30:;"
#define TWO    UUID0 ",NVIDIA,3000,30:" UUID1 ",NVIDIA,5000,50:;"

/* What a test has of the node and the container; the rest is as it mostly is. */
struct grant_scene {
	const char *config; /* device-config.yaml; NULL: the defaults */
	const char *arguments[8];
	const char *assigned, *disable_control, *pod_uid, *container, *unique, *hook, *covering;
	size_t ids; /* that the kubelet chose; 0: as many as are assigned */
	int64_t priority;
	uint64_t unhealthy;
	bool has_priority, is_mig, has_no_turns;
	const struct grant_asked *asked;
};
#define SCENE(...) (&(const struct grant_scene){__VA_ARGS__})

struct grant_made {
	struct config *config;
	struct grant_node node;
	struct grant grant;
};

extern struct inventory grant_scene_inventory;
extern const struct grant_paths grant_scene_paths;

/* The arguments end with NULL; there may be none. */
struct config *grant_scene_config(const char *text, const char *arguments[]);

/* As grant_plan(). */
int grant_scene_plan(const struct grant_scene *s, struct grant_made *ret_made, struct err *err);

/* The answer, which must be one. */
V1beta1__ContainerAllocateResponse *grant_scene_answer(const struct grant_scene *s,
	const struct grant_paths *prepared, struct grant_made *ret_made);

/* The answer may be NULL. */
void grant_made_free(V1beta1__ContainerAllocateResponse *answer, struct grant_made *m);
