/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter's credit: budget that this process has taken out of the slice's in advance. The slice's two
 * budgets, of what it is sure to get and of what it never gets more than, are words in the region
 * (policy/budget.h). All of it under the meter's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter;
struct stream_state;

/* Of a meter; written by credit.c alone. */
struct credit {
	int64_t balance_ns;	/* less than 0: overdrawn */
	int64_t ordered_ns;	/* a filling that is not ready yet */
	uint64_t ready_ns;	/* when it will be */
	uint64_t overdrafts;	/* of the slice, when what is left of the credit was ordered */
	uint64_t filled_ns;	/* when it was last filled */
	uint32_t filling;	/* how often */
	uint64_t paid_until_ns; /* it has paid for the work of a stream until then */
	int64_t saved_ns; /* of its cores by the slice, as last found; less than 0: it owes, or borrows */
	/* of its cap, beyond the burst, as last asked: what it could not have before */
	uint64_t kept_ns, asked_ns; /* and when that was */
	/* of its cores: what others had while it waited for the time slice */
	uint64_t owed_ns;
	uint64_t lack_ns; /* the same since others were last to blame for it, beyond all bounds */
	/* how long the device had worked for the slice when that was last found */
	uint64_t served_ns;
	bool is_owed; /* more than waiting for honest slices costs, and not all of it is back */
	int64_t running_ns;  /* charged for work of this process that is not over */
	int64_t reserved_ns; /* for work that is not charged yet */
	bool is_borrowing;   /* the slice uses what others are sure of */
	bool is_left;	     /* nobody else wanted what was charged last */
};

/* What is reserved for work that should take so long: the part that was charged of such work as the streams did last. */
int64_t credit_reserve_of(const struct meter *meter, uint64_t ns);

/*
 * When credit lets the stream open a batch, whose first piece should take ns; 0: it does now. others_ns: what its other
 * streams have (streams_others_ahead_ns()). A filling is taken out of the slice's budget when it is ordered, and may be
 * spent when what was owed before is paid: so processes that wait for the same budget are served in the order of their
 * coming.
 */
uint64_t credit_ready_ns(struct meter *meter, struct stream_state *s, uint64_t ns,
	uint64_t others_ns, uint64_t now_ns);

/*
 * The slice has waited so long for the time slice. What it would have had meanwhile it may have afterwards, also beyond its
 * burst, so that others cost it no more than they give back.
 */
void credit_wait(struct meter *meter, uint64_t waited_ns);

/* What the slice is to have of the device beside others, in permille. */
uint64_t credit_due_permille(const struct meter *meter);

/* What the slice lacks is somebody's doing who will cause no more of it. */
void credit_blamed(struct meter *meter);

/* Of what the slice is sure of it has so much more, as others cost it that. */
void credit_return(struct meter *meter, int64_t ns, uint64_t now_ns);

/*
 * A stream of the slice, or a call, waited for nothing but itself, for so long: nothing is saved up beyond its burst meanwhile. idle_ns: of that for how
 * long the process gave no work at all.
 */
void credit_pause(struct meter *meter, uint64_t pause_ns, uint64_t idle_ns, uint64_t now_ns);

/*
 * Work that should take so long is about to be given, and so much is reserved for it. What is beyond that which was taken in
 * advance is taken of the slice's budget now. False where another process of the slice has just begun such work, and for work of
 * unknown length where another one's was just found to be such: credit_ready_ns() is to be asked again.
 */
bool credit_overdraw(
	struct meter *meter, uint64_t ns, int64_t reserve_ns, bool is_unknown, uint64_t now_ns);

/* Work is given that is expected to take so long. */
void credit_reserve(struct meter *meter, int64_t ns, uint64_t now_ns);

/* Work for which so much was reserved, and that began at since_ns, took so long. */
void credit_charge(struct meter *meter, int64_t reserved_ns, int64_t took_ns, uint64_t since_ns,
	uint64_t now_ns);

/* How much of what was charged last is not of the slice's cores. */
uint64_t credit_lent_ns(const struct meter *meter, uint64_t charged_ns);

/*
 * Before work is marked as charged: what the process has taken in advance goes back to nobody where it ends before
 * credit_charge() says it anew.
 */
void credit_hide(struct meter *meter);

/*
 * Work that is not over took so long so far. The slice owes it; this process's own work does not wait for it before it
 * is over, as it may be what the work under way waits for.
 */
void credit_charge_running(
	struct meter *meter, int64_t took_ns, uint64_t since_ns, uint64_t now_ns);
/* It is over. What was taken in advance pays for it, before more is given. */
void credit_end_running(struct meter *meter, int64_t took_ns, uint64_t now_ns);
