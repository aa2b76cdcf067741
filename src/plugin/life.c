/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin and its configuration.
 *
 * Twice a second the two files are compared with what was read. A ConfigMap's file is a link into a folder that is itself
 * replaced by a link's rename; a name is followed each time, so it does not matter what on the way to the file was changed, nor
 * whether its folder was there before.
 */
#include "plugin/life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "plugin/config/config.h"
#include "plugin/plugin.h"

#define LOG_TOPIC LOG_KUBELET

#define FILES	  2
#define POLL_NS	  (500ull * 1000000)
#define WAIT_NS	  (10ull * 1000000000) /* for a driver, or a device that is lost */

/* What tells one content of a file from another, without reading it; all zero where it is not there. */
struct stamp {
	struct timespec modified, changed;
	ino_t node;
	dev_t device;
	off_t bytes;
};

struct life {
	struct loop *loop;
	const struct flags *flags;
	struct config *config;
	struct plugin *plugin; /* NULL: a driver is waited for */
	struct loop_timer look, wait;
	const char *paths[FILES];
	struct stamp read[FILES], last[FILES];
	bool is_over;
};

static void take_stamps(const struct life *life, struct stamp stamps[FILES])
{
	memset(stamps, 0, FILES * sizeof(*stamps));
	for (unsigned i = 0; i < FILES; i++) {
		struct stat s;

		if (!*life->paths[i] || stat(life->paths[i], &s) < 0)
			continue;
		stamps[i].modified = s.st_mtim;
		stamps[i].changed = s.st_ctim;
		stamps[i].node = s.st_ino;
		stamps[i].device = s.st_dev;
		stamps[i].bytes = s.st_size;
	}
}

static bool is_waited_for(const struct life *life, int result)
{
	return result == PLUGIN_E_DEVICES && !life->config->fails_on_init_error;
}

static int begin(struct life *life, struct err *err)
{
	int result = plugin_start(life->loop, life->config, &life->plugin, err);

	if (!result && plugin_lacks_devices(life->plugin))
		loop_timer_set(life->loop, &life->wait, clock_now_ns() + WAIT_NS);
	if (!is_waited_for(life, result))
		return result > 0 ? -EIO : result;
	log_warn("the devices cannot be read; it is tried again", STR("why", err->text));
	life->plugin = NULL;
	loop_timer_set(life->loop, &life->wait, clock_now_ns() + WAIT_NS);
	return 0;
}

static void end(struct life *life, const char *why)
{
	log_error("the plugin ends", STR("why", why));
	life->is_over = true;
	loop_stop(life->loop);
}

static void waited(void *context)
{
	struct life *life = context;
	struct err err = ERR_NULL;

	if (life->plugin && !plugin_finds_more_devices(life->plugin)) {
		loop_timer_set(life->loop, &life->wait, clock_now_ns() + WAIT_NS);
		return;
	}
	plugin_stop(life->plugin);
	life->plugin = NULL;
	if (begin(life, &err))
		end(life, err.text);
}

/* The one before is begun again where the new one does not go. */
static void begin_anew(struct life *life, struct config *fresh)
{
	struct config *before = life->config;
	struct err err = ERR_NULL;

	loop_timer_clear(life->loop, &life->wait);
	plugin_stop(life->plugin);
	life->plugin = NULL;
	life->config = fresh;
	if (!begin(life, &err)) {
		log_info("the plugin has begun anew with a changed configuration");
		config_free(before);
		return;
	}
	log_error("with the changed configuration the plugin does not start; the one before stays "
		  "in force",
		STR("why", err.text));
	life->config = before;
	config_free(fresh);
	if (begin(life, &err))
		end(life, err.text);
}

void life_reload(struct life *life)
{
	struct err err = ERR_NULL;
	struct config *fresh;
	int result;

	take_stamps(life, life->read);
	if (config_load(life->flags, &fresh, &err)) {
		log_error("the changed configuration is not understood; the one before stays in "
			  "force",
			STR("why", err.text));
		return;
	}
	result = life->plugin ? config_absorb(life->config, fresh) : CONFIG_E_OTHER;
	if (result == CONFIG_E_OTHER) {
		begin_anew(life, fresh);
		return;
	}
	if (!result)
		result = plugin_refresh(life->plugin);
	if (result)
		log_error("no memory to tell of devices");
	else
		log_info("the configuration was read again");
	config_free(fresh);
}

/* A file that is being written is left alone until it is the same twice. */
static void look(void *context)
{
	struct life *life = context;
	struct stamp now[FILES];
	bool is_quiet;

	loop_timer_set(life->loop, &life->look, clock_now_ns() + POLL_NS);
	take_stamps(life, now);
	is_quiet = !memcmp(now, life->last, sizeof(now));
	memcpy(life->last, now, sizeof(now));
	if (is_quiet && memcmp(now, life->read, sizeof(now)) != 0)
		life_reload(life);
}

static const char *path_of(const struct flags *flags, enum flag flag)
{
	return flags->text[flag] ? flags->text[flag] : flag_rows[flag].otherwise;
}

int life_start(
	struct loop *loop, const struct flags *flags, struct life **ret_life, struct err *err)
{
	struct life *life = calloc(1, sizeof(*life));
	int result;

	if (!life)
		return err_set(err, ENOMEM, "no memory");
	life->loop = loop;
	life->flags = flags;
	life->paths[0] = path_of(flags, FLAG_config_file);
	life->paths[1] = path_of(flags, FLAG_node_config_file);
	life->look = (struct loop_timer){.due = look, .context = life};
	life->wait = (struct loop_timer){.due = waited, .context = life};
	take_stamps(life, life->read);
	memcpy(life->last, life->read, sizeof(life->last));
	result = config_load(flags, &life->config, err) ? LIFE_E_CONFIG : 0;
	if (!result)
		result = begin(life, err);
	if (result) {
		life_stop(life);
		return result;
	}
	loop_timer_set(loop, &life->look, clock_now_ns() + POLL_NS);
	*ret_life = life;
	return 0;
}

bool life_goes_on(const struct life *life)
{
	return !life->is_over;
}

void life_stop(struct life *life)
{
	if (!life)
		return;
	loop_timer_clear(life->loop, &life->look);
	loop_timer_clear(life->loop, &life->wait);
	plugin_stop(life->plugin);
	config_free(life->config);
	free(life);
}
