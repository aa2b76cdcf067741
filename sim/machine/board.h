/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a machine: its cards, how large they are, what they cost by themselves. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The most cards of one machine. */
#define BOARD_DEVICES_MAX 16

/*
 * Plain data without pointers: it is copied into the shared state of the machine as it is. All
 * cards of one board are alike. board_load() sets the padding too, so that equal boards are equal
 * bytes. sim/boards/h200.board says of every number where it comes from.
 */
struct board {
	char name[64];
	char device_name[96];
	char driver_version[32];
	int cuda_version; /* as cuDriverGetVersion says it: 13000 is 13.0 */
	int device_count;

	/* Device memory. */
	uint64_t total_bytes; /* what cuDeviceTotalMem says */
	uint64_t
		reserved_bytes; /* kept by the driver: NVML's total is total_bytes + reserved_bytes */
	uint64_t context_bytes;	      /* a context, shown for the process */
	uint64_t context_extra_bytes; /* a context, on the device only: shown for no process */
	uint64_t init_bytes;	      /* cuInit, on the device only */
	uint64_t
		stream_bytes; /* some streams, never given back before the context: sim/cuda/model */
	uint64_t green_context_bytes;
	uint64_t chunk_bytes;	  /* the unit in which device memory is taken */
	uint64_t small_max_bytes; /* blocks up to this share a chunk */
	uint64_t pool_step_bytes; /* the unit in which a memory pool grows */
	uint64_t malloc_bytes;	  /* of a context, once a module allocates on the device */
	uint64_t printf_bytes;	  /* the same for one that prints */
	int launches_elsewhere; /* whether a function may be launched in another context's stream */

	/* The processor. */
	int compute_major;
	int compute_minor;
	int sm_count;
	int cores_per_sm;
	int max_threads_per_sm;
	int max_blocks_per_sm;
	int registers_per_sm;
	int copy_engine_count;
	uint64_t shared_per_sm_bytes;
	uint64_t shared_optin_bytes; /* the most one block may ask for */
	uint64_t l2_bytes;
	int memory_bus_bits;
	int change_us; /* the device works for nobody for so long, when it comes to another process */
	int time_slice_us; /* the time slice of a process while others wait; 0: they run side by side */

	/* What only NVML tells. */
	int brand;	  /* nvmlBrandType_t */
	int architecture; /* nvmlDeviceArchitecture_t */
	int pci_device_id;
	int pci_subsystem_id;
	int pci_bus_first; /* device i is at 0000:<bus>:<slot>.0, bus = pci_bus_first + i * step */
	int pci_bus_step;
	int pci_slot_first; /* and slot = pci_slot_first + i * pci_slot_step */
	int pci_slot_step;
	int pcie_generation;
	int pcie_width;
	int pci_board_cards;  /* so many cards sit on one board */
	int pci_switch_cards; /* so many hang on one PCIe switch; sim/machine/topology.h */
	int pci_tree_cards; /* so many are joined by several switches, below one port of the host */
	int pci_bridge_cards; /* so many are below one host bridge */
	int pcie_has_peers;   /* cards of one socket reach each other by PCIe */
	int nvlink_count;     /* links of a card; 0: PCIe only */
	int nvlink_mesh; /* so many cards are joined to each other by their links; 0: all to switches */
	int nvlink_version;
	int numa_nodes;	 /* cards are spread evenly over so many */
	int minor_first; /* card i is /dev/nvidia<minor_first + i>, and behind the last comes 0 */
	char mig_family[16]; /* of sim/machine/mig_profile.def; "none" */
	int has_ecc;
	int power_idle_mw;
	int power_limit_mw;
	int clock_sm_idle_mhz;
	int clock_sm_mhz;
	int clock_memory_mhz;
	int clock_video_mhz;
	int temperature_idle_c;
	int temperature_busy_c;
	uint64_t bar1_bytes;
	char vbios[32];
	uint64_t
		uuid_seed; /* machines with different seeds have different UUIDs and serial numbers */
};

/*
 * Reads a board: NAME of a built-in one, or the path of a file (anything with a '/' in it or that
 * ends in ".board"). Returns 0 and fills *ret_board, or -errno and a sentence for a person in
 * ret_why (-ENOENT no such board, -EINVAL a line that is wrong: file, line, key, value and what
 * would be right are named). ret_why may be NULL when why_size is 0.
 */
int board_load(const char *name_or_path, struct board *ret_board, char *ret_why, size_t why_size);

/*
 * The same from a text in memory; `name` becomes the board's name and stands before complaints.
 */
int board_parse(const char *name, const char *text, struct board *ret_board, char *ret_why,
	size_t why_size);

/* The board when none is named. */
#define BOARD_DEFAULT "h200x2"

/* Name and text of the built-in board number i, or NULL after the last. The texts are static. */
const char *board_builtin_name(unsigned int i);
const char *board_builtin_text(unsigned int i);

/* The 16 bytes of the UUID of card `device`: a function of uuid_seed and device alone. */
void board_uuid(const struct board *board, int device, uint8_t ret_uuid[16]);

/* Where card `device` sits on the PCI bus; domain and function are 0. NVML counts in this order. */
void board_pci(
	const struct board *board, int device, unsigned int *ret_bus, unsigned int *ret_slot);

/* The number of card `device` in /dev, which is another than NVML's where the kernel has found it at another time. */
int board_minor(const struct board *board, int device);

/* The host's NUMA node that card `device` is on: cards are spread evenly. */
int board_numa_node(const struct board *board, int device);

/* The serial number of card `device`, 13 digits. */
uint64_t board_serial(const struct board *board, int device);
