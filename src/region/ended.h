/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a slice had no living process, as whoever made its share tells.
 *
 * What a dead process had under way is charged by the next one of its slice, which may begin much later, and nothing in the
 * slice tells when the other ended. The device plugin does: where no slot of the region is locked it writes the moment into a
 * file beside the share. A process that had work under way before that moment has ended by then.
 *
 * The file is believed where who could write it could as well write the share: on the same mount, of the same owner, and
 * writable by nobody else. It counts for one region, one boot of the machine and one clock (a time namespace has another).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"

#define ENDED_FILE  "ended"
#define ENDED_BYTES 192

/* Whether no process of the region lives, nor a child that keeps what one had; through a description that has no lock. -errno. */
int ended_look(int region_fd, bool *ret_is_ended) MUST_CHECK;

/* The file's text. -errno where the machine does not tell its boot. */
int ended_format(uint64_t at_ns, dev_t device, ino_t inode, char ret_text[ENDED_BYTES]) MUST_CHECK;

/* The moment of such a text; 0 where it is none, or of another region, boot or clock. */
uint64_t ended_parse(const char *text, dev_t device, ino_t inode);

/* The moment that the file beside this share (NULL: none) has for the region; 0: nothing is known. */
uint64_t ended_read(const char *share, dev_t device, ino_t inode);
