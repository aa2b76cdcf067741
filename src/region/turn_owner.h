/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose the turn records are. What is known of one that went counts for those that its owner makes later: under another name he
 * would be believed anew.
 */
#pragma once

#include "base/file.h"
#include "region/turn.h"

/* Notes whose a peer's record is, by its file: a user's, or where nobody but the operator makes records, one tenant's. */
void turn_owner_note(struct turn *turn, unsigned peer, const struct file_identity *record);

/* A peer's record is gone, or is forgotten: what is known of it is kept for the next ones. */
void turn_owner_leave(struct turn *turn, unsigned peer);

/* The waits for records of the owner that went count for this one of those that are there. */
void turn_owner_take_over(struct turn *turn, unsigned peer);

/* What is doubted of a peer is doubted of all that its owner makes from now on, where that is another user. */
void turn_owner_doubt(struct turn *turn, unsigned peer);
