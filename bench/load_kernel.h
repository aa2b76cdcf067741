/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel of bench/compute_load.c: busy for a time, or for a count of turns through a loop, which
 * also takes as long as it should where the device leaves the kernel for a while. Its first block
 * notes when it began and ended.
 */
#pragma once

#include <stdint.h>

/* What the kernel writes to: a head, then as many records as a power of two says. */
struct load_head {
	uint32_t count; /* kernels that have ended; the ring's place is its lower bits */
	uint32_t unused;
	uint32_t scratch; /* keeps the assembler from dropping the loop */
	uint32_t pad[13];
};
_Static_assert(sizeof(struct load_head) == 64, "as the kernel has it");

struct load_record {
	uint64_t start_ns, end_ns; /* of the device's %globaltimer */
};

static const char load_kernel[] = ".version 7.0\n"
				  ".target sm_75\n"
				  ".address_size 64\n"
				  ".visible .entry spin(\n"
				  "	.param .u64 duration_ns,\n"
				  "	.param .u64 loops,\n"
				  "	.param .u64 records,\n"
				  "	.param .u32 mask\n"
				  ")\n"
				  "{\n"
				  "	.reg .pred %p<6>;\n"
				  "	.reg .b32 %r<6>;\n"
				  "	.reg .b64 %rd<12>;\n"
				  "	mov.u64 %rd1, %globaltimer;\n"
				  "	ld.param.u64 %rd2, [duration_ns];\n"
				  "	ld.param.u64 %rd3, [loops];\n"
				  "	ld.param.u64 %rd10, [records];\n"
				  "	ld.param.u32 %r1, [mask];\n"
				  "	cvta.to.global.u64 %rd4, %rd10;\n"
				  "	mov.u32 %r2, 1;\n"
				  "	setp.ne.s64 %p1, %rd3, 0;\n"
				  "	@%p1 bra WORK;\n"
				  "	add.s64 %rd5, %rd1, %rd2;\n"
				  "SPIN:\n"
				  "	mov.u64 %rd6, %globaltimer;\n"
				  "	setp.lt.u64 %p2, %rd6, %rd5;\n"
				  "	@%p2 bra SPIN;\n"
				  "	bra END;\n"
				  "WORK:\n"
				  "	mad.lo.s32 %r2, %r2, 1664525, 1013904223;\n"
				  "	sub.s64 %rd3, %rd3, 1;\n"
				  "	setp.ne.s64 %p3, %rd3, 0;\n"
				  "	@%p3 bra WORK;\n"
				  "	setp.eq.s32 %p4, %r2, 0;\n"
				  "	@%p4 st.global.u32 [%rd4+8], %r2;\n"
				  "END:\n"
				  "	mov.u32 %r3, %ctaid.x;\n"
				  "	setp.ne.s32 %p5, %r3, 0;\n"
				  "	@%p5 bra DONE;\n"
				  "	mov.u64 %rd7, %globaltimer;\n"
				  "	atom.global.add.u32 %r4, [%rd4], 1;\n"
				  "	and.b32 %r5, %r4, %r1;\n"
				  "	mul.wide.u32 %rd8, %r5, 16;\n"
				  "	add.s64 %rd9, %rd4, %rd8;\n"
				  "	st.global.u64 [%rd9+64], %rd1;\n"
				  "	st.global.u64 [%rd9+72], %rd7;\n"
				  "DONE:\n"
				  "	ret;\n"
				  "}\n"
				  ".visible .entry nothing()\n"
				  "{\n"
				  "	ret;\n"
				  "}\n";
