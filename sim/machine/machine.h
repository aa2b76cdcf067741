/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated machine: one shared file in which all processes see the same cards fill up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/board.h"
#include "sim/machine/clock.h"

#define MACHINE_DEVICES_MAX   16
#define MACHINE_PROCESSES_MAX 256
#define MACHINE_TAG_SIZE      64
#define MACHINE_TAGS_MAX      128
#define MACHINE_KEPT_MAX      4096

/* What a process holds of a device, by the kind of thing that took it. */
enum machine_kind {
	MACHINE_INIT,	       /* cuInit; shown for no process */
	MACHINE_CONTEXT,       /* contexts, as shown for the process */
	MACHINE_CONTEXT_EXTRA, /* contexts, on the device only; shown for no process */
	MACHINE_STREAM,	       /* streams */
	MACHINE_SMALL,	       /* chunks into which small blocks are packed */
	MACHINE_PLAIN,	       /* whole chunks */
	MACHINE_MANAGED,       /* managed memory resident here; shown for no process */
	MACHINE_VMM,	       /* cuMemCreate */
	MACHINE_POOL,	       /* reserve of memory pools */
	MACHINE_MODULE,	       /* data and code of modules, heaps of device code */
	MACHINE_ARRAY,	       /* arrays and mipmapped arrays */
	MACHINE_GRAPH,	       /* memory of graphs */
	MACHINE_LOCAL,	       /* frames of threads, beyond what a context begins with */
	MACHINE_KINDS_USED,
	MACHINE_KINDS_MAX = 16,
};

/* Short lower-case name of a kind ("context", "small", ...). Never NULL for a kind in use. */
const char *machine_kind_name(enum machine_kind kind);

/* An attached machine. Opaque; one process may attach several times. */
struct machine;

enum {
	_MACHINE_E_SUCCESS = 0,
	MACHINE_E_FULL,	   /* the device has not that much left */
	MACHINE_E_CROWDED, /* no process slot is left */
	MACHINE_E_STAGE,   /* the process is in another stage */
	MACHINE_E_LOST,	   /* the process is checkpointed for good */
	MACHINE_E_FOREIGN, /* the file is none of ours, of another version, or broken */
};

/*
 * Where the state lives: $VGPU_SIM_STATE, else /dev/shm/vgpu-sim-<uid>/machine, else the same below
 * $TMPDIR. Returns 0, or -ENAMETOOLONG.
 */
int machine_state_path(char *ret_path, size_t size);

/*
 * Attaches to the machine at `path` (NULL: machine_state_path()) and creates it when there is none,
 * with the board `board_name` (NULL: $VGPU_SIM_BOARD, else BOARD_DEFAULT). Creation is atomic:
 * of two makers the second attaches to the first one's. Returns 0 and *ret_machine, MACHINE_E_FOREIGN,
 * or -errno; then ret_why (may be NULL when why_size is 0) holds a sentence for a person.
 */
int machine_open(const char *path, const char *board_name, struct machine **ret_machine,
	char *ret_why, size_t why_size);

/* Leaves (machine_leave) and detaches. Accepts NULL. */
void machine_close(struct machine *machine);

/* The board the machine was made with; lives as long as the attachment. */
const struct board *machine_board(const struct machine *machine);

/*
 * Makes the calling process one of the machine's processes, under the tag $VGPU_SIM_TAG (cut to 63
 * bytes, "" when unset). The slot lasts until machine_leave() or the death of the process, however
 * it dies. A forked child has none. A second call is harmless. Returns 0, MACHINE_E_CROWDED or -errno.
 */
int machine_join(struct machine *machine);
void machine_leave(struct machine *machine);

/*
 * Takes `bytes` of device `device` for the calling process. Dead processes are reaped before a
 * refusal. Returns 0 or MACHINE_E_FULL (nothing changed). The process must have joined.
 */
int machine_grow(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes);

/* Takes for several kinds at once, all or nothing. `bytes` is indexed by kind. */
int machine_grow_kinds(
	struct machine *machine, int device, const uint64_t bytes[MACHINE_KINDS_USED]);

/* Gives back. Never more than was taken. */
void machine_shrink(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes);

/* Sets how many contexts the process has on the device. With none NVML does not list it. */
void machine_set_contexts(struct machine *machine, int device, uint32_t count);

/*
 * Sets the most that the process may hold of the device, but for MACHINE_INIT, MACHINE_CONTEXT_EXTRA and
 * MACHINE_MANAGED; 0: no limit.
 */
void machine_set_limit(struct machine *machine, int device, uint64_t bytes);

/* Whether the process is a client of an MPS server. */
bool machine_is_mps_client(const struct machine *machine);

/*
 * Says that the device worked for this process from start_ns to end_ns (CLOCK_BOOTTIME). Work that
 * lies in the future waits for the process's time slices. The driver uses schedule.h.
 */
void machine_add_work(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns);

/*
 * Whether a process may use its devices. Others decide it. A locked process waits at its next call, a
 * checkpointed one holds nothing of any device.
 */
enum machine_stage { MACHINE_RUNNING, MACHINE_LOCKED, MACHINE_CHECKPOINTED };

/* Reads the stage of process `pid` of the caller's PID namespace. Returns 0, or -ESRCH. */
int machine_read_stage(struct machine *machine, int pid, enum machine_stage *ret_stage);

/*
 * Brings a process from one stage to another. Returns 0, -ESRCH, MACHINE_E_STAGE when it is in
 * another than `from`, or MACHINE_E_FULL when the device has no room for what it held. Then it stays in
 * its stage for good: from then on the answer is MACHINE_E_LOST.
 */
int machine_change_stage(
	struct machine *machine, int pid, enum machine_stage from, enum machine_stage to);

/* Waits until the calling process may go on. Cheap when it may. */
void machine_wait_running(struct machine *machine);

/* What is left of a device, or of the part of it that the process uses: live or unreaped processes hold the rest. */
uint64_t machine_free_bytes(struct machine *machine, int device);

/* One process on one device. */
struct machine_held {
	bool has_context;
	bool has_part; /* it uses a part of the card (sim/machine/mig.h), with these ids */
	unsigned int instance, compute;
	uint64_t shown_bytes; /* as NVML shows it; 0 without a context */
	uint64_t held_bytes;  /* all kinds but MACHINE_INIT and MACHINE_CONTEXT_EXTRA */
	uint64_t total_bytes; /* all kinds */
	uint64_t bytes[MACHINE_KINDS_MAX];
	uint64_t busy_ns;	    /* served until now, since it joined; schedule.h */
	unsigned int busy_permille; /* of the window */
	unsigned int seen_percent;  /* of NVML's last looks, of which there are six in all */
};

struct machine_process {
	int32_t pid;		/* in its own PID namespace */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	uint64_t start_time; /* of the process, in clock ticks since boot, as in /proc/PID/stat */
	uint32_t slot;
	bool is_mps_client;
	char tag[MACHINE_TAG_SIZE];
	struct machine_held device[MACHINE_DEVICES_MAX];
};

struct machine_device {
	uint64_t used_bytes; /* of all live processes; the driver's reserve is not in it */
	uint64_t free_bytes;
	unsigned int busy_permille; /* of the window, by all processes */
	uint64_t busy_ns;	    /* by all processes, also by those that are gone */
};

struct machine_snapshot {
	uint64_t time_ns;
	uint64_t window_ns;
	int device_count;
	struct machine_device device[MACHINE_DEVICES_MAX];
	int process_count;
	struct machine_process process[MACHINE_PROCESSES_MAX];
};

/*
 * Reads all live processes and devices at one moment, after reaping the dead. Utilisation is that of
 * the last window_ns (kept for about 2 s). The snapshot is large: allocate it, do not put it on a
 * stack. Returns 0 or -errno.
 */
int machine_read_snapshot(
	struct machine *machine, uint64_t window_ns, struct machine_snapshot *ret_snapshot);

/* What the processes of one tag hold of one device, and the most they ever held together. */
struct machine_truth {
	char tag[MACHINE_TAG_SIZE];
	int device;
	int process_count;
	uint64_t held_bytes;	   /* now; as machine_held.held_bytes */
	uint64_t total_bytes;	   /* now; with the driver's own overhead */
	uint64_t peak_held_bytes;  /* highest held_bytes at any moment since the last reset */
	uint64_t peak_total_bytes; /* highest total_bytes */
};

/*
 * Reads the truth about a tag on a device, after reaping the dead. An unknown tag holds nothing.
 * Peaks are brought up to date at every growth, under the machine's lock, over the live processes of
 * the tag. Returns 0 or -errno.
 */
int machine_read_truth(
	struct machine *machine, const char *tag, int device, struct machine_truth *ret_truth);

/* Reads tag number `index`, in order of first use. Returns 0, or -ENOENT after the last. */
int machine_read_tag(struct machine *machine, unsigned int index, char ret_tag[MACHINE_TAG_SIZE]);

/* Sets the peaks of all tags to what is held now. */
void machine_reset_peaks(struct machine *machine);

/* Reaps the dead and clears peaks, rules and counts. */
void machine_reset(struct machine *machine);

/*
 * Kept memory is memory that processes share with each other. It belongs to its maker while that
 * holds it, then to the holder in the lowest slot. Where only descriptors keep it, it belongs to the
 * maker's tag and to no process. A process holds it once or not at all.
 */
enum machine_shown {
	MACHINE_SHOWN_HOLDER, /* NVML shows it for the process that it belongs to */
	MACHINE_SHOWN_MAKER,  /* only while that is its maker */
};

struct machine_kept {
	uint32_t index, generation;
	int device;
	uint64_t bytes;
	bool is_mine; /* the calling process made it and holds it */
};

/*
 * Makes kept memory of `bytes` that the process holds of this kind; it is the first holder. Returns 0
 * or MACHINE_E_CROWDED.
 */
int machine_keep(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes,
	enum machine_shown shown, struct machine_kept *ret_kept);
/* Takes more for kept memory: 0 or MACHINE_E_FULL. */
int machine_kept_grow(struct machine *machine, uint32_t index, uint64_t bytes);
/* Becomes a holder; -ENOENT where it is gone, or (is_from_maker) its maker does not hold it. */
int machine_kept_hold(struct machine *machine, uint32_t index, uint32_t generation,
	bool is_from_maker, struct machine_kept *ret_kept);
void machine_kept_drop(struct machine *machine, uint32_t index);
/* A new descriptor that keeps it, or -errno; and what a descriptor keeps: 0 or -ENOENT. */
int machine_kept_descriptor(struct machine *machine, uint32_t index);
int machine_kept_of_descriptor(
	struct machine *machine, int fd, uint32_t *ret_index, uint32_t *ret_generation);

/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" of board_uuid()'s bytes. */
#define MACHINE_UUID_SIZE 41
void machine_uuid_text(const uint8_t uuid[16], char ret_text[MACHINE_UUID_SIZE]);
