/* SPDX-License-Identifier: Apache-2.0 */
/* The driver as bench/compute_load.c uses it. */
#include "bench/load_device.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/load_options.h"

extern cuInit_fn cuInit;
extern cuDeviceGetAttribute_fn cuDeviceGetAttribute;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemcpyHtoD_v2_fn cuMemcpyHtoD_v2;
extern cuMemcpyDtoH_v2_fn cuMemcpyDtoH_v2;
extern cuModuleLoadData_fn cuModuleLoadData;
extern cuModuleGetFunction_fn cuModuleGetFunction;
extern cuLaunchKernel_fn cuLaunchKernel;
extern cuLaunchCooperativeKernel_fn cuLaunchCooperativeKernel;
extern cuStreamCreate_fn cuStreamCreate;
extern cuStreamSynchronize_fn cuStreamSynchronize;
extern cuStreamBeginCapture_v2_fn cuStreamBeginCapture_v2;
extern cuStreamEndCapture_fn cuStreamEndCapture;
extern cuGraphInstantiateWithFlags_fn cuGraphInstantiateWithFlags;
extern cuGraphLaunch_fn cuGraphLaunch;

#define NS_PER_US 1000u
#define RECORDS	  (1u << 21) /* 10 s of four streams with kernels of 20 µs */

CUstream load_stream[LOAD_STREAMS];
CUfunction load_nothing;

static CUfunction spin;
static CUdeviceptr records;
static CUgraphExec graph;

void load_need(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "compute-load: %s: error %d\n", what, (int)r);
	exit(1);
}

void load_launch(CUstream stream, uint64_t duration_ns, uint64_t loops, unsigned blocks)
{
	uint32_t mask = RECORDS - 1;
	void *params[] = {&duration_ns, &loops, &records, &mask};

	if (load_option.shape == LOAD_COOP)
		load_need(cuLaunchCooperativeKernel(spin, blocks, 1, 1, 1, 1, 1, 0, stream, params),
			"cuLaunchCooperativeKernel");
	else
		load_need(cuLaunchKernel(spin, blocks, 1, 1, 1, 1, 1, 0, stream, params, NULL),
			"cuLaunchKernel");
}

static void launch_one(CUstream stream)
{
	load_launch(stream, load_option.duration_us * NS_PER_US,
		(uint64_t)(load_option.rate * (double)load_option.duration_us),
		(unsigned)load_option.blocks);
}

unsigned load_launch_shape(CUstream stream)
{
	if (load_option.shape != LOAD_GRAPH) {
		launch_one(stream);
		return 1;
	}
	load_need(cuGraphLaunch(graph, stream), "cuGraphLaunch");
	return (unsigned)load_option.graph;
}

static void prepare_graph(void)
{
	CUgraph captured;

	load_need(cuStreamBeginCapture_v2(load_stream[0], CU_STREAM_CAPTURE_MODE_GLOBAL),
		"cuStreamBeginCapture");
	for (uint64_t i = 0; i < load_option.graph; i++)
		launch_one(load_stream[0]);
	load_need(cuStreamEndCapture(load_stream[0], &captured), "cuStreamEndCapture");
	load_need(cuGraphInstantiateWithFlags(&graph, captured, 0), "cuGraphInstantiate");
}

void load_prepare(void)
{
	static const struct load_head head;
	CUcontext context;
	CUmodule module;
	int blocks;

	load_need(cuInit(0), "cuInit");
	load_need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	load_need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	load_need(cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
		"cuDeviceGetAttribute");
	if (load_option.blocks == 0)
		load_option.blocks = (uint64_t)blocks;
	load_need(cuModuleLoadData(&module, load_kernel), "cuModuleLoadData");
	load_need(cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
	load_need(cuModuleGetFunction(&load_nothing, module, "nothing"), "cuModuleGetFunction");
	load_need(cuMemAlloc_v2(&records,
			  sizeof(struct load_head) + RECORDS * sizeof(struct load_record)),
		"cuMemAlloc");
	load_need(cuMemcpyHtoD_v2(records, &head, sizeof(head)), "cuMemcpyHtoD");
	for (unsigned i = 0; i < LOAD_STREAMS; i++)
		load_need(
			cuStreamCreate(&load_stream[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	if (load_option.shape == LOAD_GRAPH)
		prepare_graph();
}

uint32_t load_count_records(void)
{
	uint32_t count;

	load_need(cuMemcpyDtoH_v2(&count, records, sizeof(count)), "cuMemcpyDtoH");
	return count;
}

struct load_record load_read_record(uint32_t index)
{
	struct load_record record;

	load_need(cuMemcpyDtoH_v2(&record,
			  records + sizeof(struct load_head) + index * sizeof(record),
			  sizeof(record)),
		"cuMemcpyDtoH");
	return record;
}

/* Of blocks that no load has, so that what they take is nobody's guess for a load's. */
#define COMPARE_BLOCKS 3

bool load_compare_clocks(int64_t *ret_offset_ns)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < LOAD_TRIES; i++) {
		uint64_t before_ns = clock_now_ns(), around_ns;
		struct load_record record;

		load_launch(load_stream[0], 0, 0, COMPARE_BLOCKS);
		load_need(cuStreamSynchronize(load_stream[0]), "cuStreamSynchronize");
		around_ns = clock_now_ns() - before_ns;
		if (load_count_records() == 0)
			return false;
		record = load_read_record(i);
		if (around_ns < least_ns) {
			least_ns = around_ns;
			*ret_offset_ns = (int64_t)(before_ns + around_ns / 2 - record.start_ns);
		}
	}
	return true;
}

uint32_t load_read_spans(int64_t offset_ns, struct load_spans *spans)
{
	uint32_t count = load_count_records(), kept = count < RECORDS ? count : RECORDS;
	size_t bytes = kept * sizeof(struct load_record);
	struct load_record *record = malloc(bytes + 1);

	if (record == NULL)
		exit(1);
	load_need(
		cuMemcpyDtoH_v2(record, records + sizeof(struct load_head), bytes), "cuMemcpyDtoH");
	spans->count = 0;
	/* the first are of compare_clocks(), unless others came to lie there */
	for (uint32_t i = count > RECORDS ? 0 : LOAD_TRIES; i < kept; i++)
		load_spans_add(spans, record[i].start_ns + (uint64_t)offset_ns,
			record[i].end_ns + (uint64_t)offset_ns, 1);
	free(record);
	return count - kept;
}
