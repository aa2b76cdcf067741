/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy a device is, and what follows from that: power, heat, clocks.
 *
 * The one input is the share of the last second in which kernels ran; the rest are straight lines
 * between the board's idle and busy figures.
 */
#include <stdbool.h>
#include <time.h>

#include "base/cleanup.h"
#include "sim/machine/event.h"
#include "sim/machine/mig.h"
#include "sim/nvml/entry.h"

/* A card writing memory without a pause drew 87 % of the way from idle to its limit (measured). */
#define BUSY_POWER_PERCENT 87

/* Of an H200 (measured); the other cards are near. */
#define SHUTDOWN_C	95u
#define SLOWDOWN_C	89u
#define MEMORY_MAX_C	95u
#define GPU_MAX_C	87u
#define CODEC_PERIOD_US 100000u

struct load {
	unsigned int busy_permille;
	int has_context; /* of any process: the card has left its idle clocks */
};

static nvmlReturn_t read_load(int index, struct load *ret_load)
{
	_cleanup_free_ struct machine_snapshot *snapshot = node_read_snapshot(NODE_WINDOW_NS);

	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	ret_load->busy_permille = snapshot->device[index].busy_permille;
	ret_load->has_context = 0;
	for (int i = 0; i < snapshot->process_count; i++)
		ret_load->has_context |= snapshot->process[i].device[index].has_context;
	return NVML_SUCCESS;
}

static int between(int idle, int busy, unsigned int permille)
{
	return idle + (int)((int64_t)(busy - idle) * permille / 1000);
}

/* The simulation does not tell reading memory from computing: both are the same share. */
ENTRY_DEVICE(nvmlDeviceGetUtilizationRates, (nvmlUtilization_t * utilization), (utilization))
{
	struct load load;
	struct mig_card card;
	nvmlReturn_t result;

	if (!utilization)
		return NVML_ERROR_INVALID_ARGUMENT;
	mig_read(node_machine(), index, &card);
	if (card.is_enabled)
		return NVML_ERROR_NOT_SUPPORTED;
	result = read_load(index, &load);
	if (result != NVML_SUCCESS)
		return result;
	utilization->gpu = load.busy_permille / 10;
	utilization->memory = load.busy_permille / 10;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetEncoderUtilization, (unsigned int *percent, unsigned int *period_us),
	(percent, period_us))
{
	if (!percent || !period_us)
		return NVML_ERROR_INVALID_ARGUMENT;
	*percent = 0;
	*period_us = CODEC_PERIOD_US;
	return NVML_SUCCESS;
}
ENTRY_DEVICE_ALIAS(nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization,
	(unsigned int *percent, unsigned int *period_us), (percent, period_us))
ENTRY_DEVICE_ALIAS(nvmlDeviceGetJpgUtilization, nvmlDeviceGetEncoderUtilization,
	(unsigned int *percent, unsigned int *period_us), (percent, period_us))
ENTRY_DEVICE_ALIAS(nvmlDeviceGetOfaUtilization, nvmlDeviceGetEncoderUtilization,
	(unsigned int *percent, unsigned int *period_us), (percent, period_us))

ENTRY_DEVICE(nvmlDeviceGetEncoderStats,
	(unsigned int *sessions, unsigned int *average_fps, unsigned int *average_latency_us),
	(sessions, average_fps, average_latency_us))
{
	if (!sessions || !average_fps || !average_latency_us)
		return NVML_ERROR_INVALID_ARGUMENT;
	*sessions = *average_fps = *average_latency_us = 0;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetTemperature, (nvmlTemperatureSensors_t sensor, unsigned int *celsius),
	(sensor, celsius))
{
	struct load load;
	nvmlReturn_t result;

	if (!celsius || sensor != NVML_TEMPERATURE_GPU)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_load(index, &load);
	if (result == NVML_SUCCESS)
		*celsius = (unsigned int)between(node_board()->temperature_idle_c,
			node_board()->temperature_busy_c, load.busy_permille);
	return result;
}

ENTRY_DEVICE(nvmlDeviceGetTemperatureV, (nvmlTemperature_t * temperature), (temperature))
{
	unsigned int celsius;
	nvmlReturn_t result;

	if (!temperature)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (temperature->version != nvmlTemperature_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = nvmlDeviceGetTemperature_body(index, temperature->sensorType, &celsius);
	if (result == NVML_SUCCESS)
		temperature->temperature = (int)celsius;
	return result;
}

ENTRY_DEVICE(nvmlDeviceGetTemperatureThreshold,
	(nvmlTemperatureThresholds_t threshold, unsigned int *celsius), (threshold, celsius))
{
	static const unsigned int thresholds[] = {
		[NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = SHUTDOWN_C,
		[NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = SLOWDOWN_C,
		[NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = MEMORY_MAX_C,
		[NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = GPU_MAX_C,
	};

	if (!celsius)
		return NVML_ERROR_INVALID_ARGUMENT;
	if ((unsigned int)threshold >= sizeof(thresholds) / sizeof(thresholds[0]))
		return NVML_ERROR_NOT_SUPPORTED;
	*celsius = thresholds[threshold];
	return NVML_SUCCESS;
}

/* Cards of servers have no fans of their own. */
ENTRY_NONE(nvmlDeviceGetFanSpeed, unsigned int, NVML_ERROR_NOT_SUPPORTED)
ENTRY_ANSWER(nvmlDeviceGetNumFans, unsigned int, 0)

ENTRY_DEVICE(nvmlDeviceGetPowerUsage, (unsigned int *milliwatts), (milliwatts))
{
	struct load load;
	nvmlReturn_t result;

	if (!milliwatts)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_load(index, &load);
	if (result == NVML_SUCCESS)
		*milliwatts = (unsigned int)between(node_board()->power_idle_mw,
			node_board()->power_limit_mw,
			load.busy_permille * BUSY_POWER_PERCENT / 100);
	return result;
}

ENTRY_ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, node_board()->power_limit_mw)
ENTRY_ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned int, node_board()->power_limit_mw)
ENTRY_ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, node_board()->power_limit_mw)
ENTRY_ANSWER(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)

static unsigned long long energy_mj(unsigned long long milliwatts, uint64_t time_ns)
{
	return milliwatts * (time_ns / 1000000) / 1000;
}

/* The idle draw since the host booted, and what work drew beside it. */
ENTRY_DEVICE(nvmlDeviceGetTotalEnergyConsumption, (unsigned long long *millijoules), (millijoules))
{
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;
	const struct board *board;
	int more_mw;

	if (!millijoules)
		return NVML_ERROR_INVALID_ARGUMENT;
	snapshot = node_read_snapshot(NODE_WINDOW_NS);
	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	board = node_board();
	more_mw = (board->power_limit_mw - board->power_idle_mw) * (BUSY_POWER_PERCENT / 100.0);
	*millijoules = energy_mj((unsigned)board->power_idle_mw, snapshot->time_ns) +
		       energy_mj((unsigned)more_mw, snapshot->device[index].busy_ns);
	return NVML_SUCCESS;
}

static unsigned int highest_clock(nvmlClockType_t type)
{
	switch (type) {
	case NVML_CLOCK_MEM:
		return (unsigned int)node_board()->clock_memory_mhz;
	case NVML_CLOCK_VIDEO:
		return (unsigned int)node_board()->clock_video_mhz;
	default:
		return (unsigned int)node_board()->clock_sm_mhz;
	}
}

ENTRY_DEVICE(nvmlDeviceGetClockInfo, (nvmlClockType_t type, unsigned int *mhz), (type, mhz))
{
	struct load load;
	nvmlReturn_t result;

	if (!mhz || (unsigned int)type >= NVML_CLOCK_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_load(index, &load);
	if (result != NVML_SUCCESS)
		return result;
	*mhz = highest_clock(type);
	if ((type == NVML_CLOCK_SM || type == NVML_CLOCK_GRAPHICS) && !load.has_context)
		*mhz = (unsigned int)node_board()->clock_sm_idle_mhz;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetMaxClockInfo, (nvmlClockType_t type, unsigned int *mhz), (type, mhz))
{
	if (!mhz || (unsigned int)type >= NVML_CLOCK_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = highest_clock(type);
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetClock, (nvmlClockType_t type, nvmlClockId_t id, unsigned int *mhz),
	(type, id, mhz))
{
	if ((unsigned int)id > NVML_CLOCK_ID_CUSTOMER_BOOST_MAX)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (id == NVML_CLOCK_ID_CURRENT)
		return nvmlDeviceGetClockInfo_body(index, type, mhz);
	return nvmlDeviceGetMaxClockInfo_body(index, type, mhz);
}

/* Also at idle (measured on H200). */
ENTRY_ANSWER(nvmlDeviceGetPerformanceState, nvmlPstates_t, NVML_PSTATE_0)
ENTRY_ANSWER(nvmlDeviceGetPowerState, nvmlPstates_t, NVML_PSTATE_0)

/* Clocks are low for one reason alone: nobody has work. */
ENTRY_DEVICE(nvmlDeviceGetCurrentClocksEventReasons, (unsigned long long *reasons), (reasons))
{
	struct load load;
	nvmlReturn_t result;

	if (!reasons)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_load(index, &load);
	if (result == NVML_SUCCESS)
		*reasons = load.busy_permille ? 0 : nvmlClocksEventReasonGpuIdle;
	return result;
}
ENTRY_DEVICE_ALIAS(nvmlDeviceGetCurrentClocksThrottleReasons,
	nvmlDeviceGetCurrentClocksEventReasons, (unsigned long long *reasons), (reasons))
ENTRY_ANSWER(
	nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, nvmlClocksEventReasonGpuIdle)
ENTRY_ANSWER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long,
	nvmlClocksEventReasonGpuIdle)

/* One value of `type`, as it is now. */
static nvmlReturn_t read_sample(int index, nvmlSamplingType_t type, unsigned int *ret_value)
{
	nvmlUtilization_t utilization;
	nvmlReturn_t result;

	switch (type) {
	case NVML_TOTAL_POWER_SAMPLES:
		return nvmlDeviceGetPowerUsage_body(index, ret_value);
	case NVML_GPU_UTILIZATION_SAMPLES:
	case NVML_MEMORY_UTILIZATION_SAMPLES:
		result = nvmlDeviceGetUtilizationRates_body(index, &utilization);
		if (result == NVML_SUCCESS)
			*ret_value = type == NVML_GPU_UTILIZATION_SAMPLES ? utilization.gpu
									  : utilization.memory;
		return result;
	case NVML_ENC_UTILIZATION_SAMPLES:
	case NVML_DEC_UTILIZATION_SAMPLES:
		*ret_value = 0;
		return NVML_SUCCESS;
	case NVML_PROCESSOR_CLK_SAMPLES:
		return nvmlDeviceGetClockInfo_body(index, NVML_CLOCK_SM, ret_value);
	case NVML_MEMORY_CLK_SAMPLES:
		return nvmlDeviceGetClockInfo_body(index, NVML_CLOCK_MEM, ret_value);
	default:
		return NVML_ERROR_INVALID_ARGUMENT;
	}
}

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* The card's buffer holds many samples; ours holds the one of now. */
ENTRY_DEVICE(nvmlDeviceGetSamples,
	(nvmlSamplingType_t type, unsigned long long last_seen_us, nvmlValueType_t *value_type,
		unsigned int *count, nvmlSample_t *samples),
	(type, last_seen_us, value_type, count, samples))
{
	unsigned int value;
	nvmlReturn_t result;

	if (!value_type || !count)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_sample(index, type, &value);
	if (result != NVML_SUCCESS)
		return result;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (samples && !*count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (samples && last_seen_us >= now_us())
		return NVML_ERROR_NOT_FOUND;
	*count = 1;
	if (samples)
		*samples = (nvmlSample_t){.timeStamp = now_us(), .sampleValue.uiVal = value};
	return NVML_SUCCESS;
}

static nvmlReturn_t read_field(int index, nvmlFieldValue_t *value)
{
	bool is_corrected = value->fieldId == NVML_FI_DEV_ECC_SBE_VOL_TOTAL ||
			    value->fieldId == NVML_FI_DEV_ECC_SBE_AGG_TOTAL;

	value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	switch (value->fieldId) {
	case NVML_FI_DEV_ECC_CURRENT:
	case NVML_FI_DEV_ECC_PENDING:
		value->value.uiVal = (unsigned int)node_board()->has_ecc;
		return NVML_SUCCESS;
	case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
	case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
	case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
	case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
		value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		value->value.ullVal = event_ecc_errors(node_machine(), index, is_corrected);
		return node_board()->has_ecc ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
	case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
		value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		return nvmlDeviceGetTotalEnergyConsumption_body(index, &value->value.ullVal);
	case NVML_FI_DEV_NVLINK_LINK_COUNT:
		value->value.uiVal = (unsigned int)node_board()->nvlink_count;
		return NVML_SUCCESS;
	case NVML_FI_DEV_POWER_AVERAGE:
	case NVML_FI_DEV_POWER_INSTANT:
		return nvmlDeviceGetPowerUsage_body(index, &value->value.uiVal);
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

/* Each field has a result of its own; the call itself succeeds. */
ENTRY_DEVICE(nvmlDeviceGetFieldValues, (int count, nvmlFieldValue_t *values), (count, values))
{
	if (count < 1 || !values)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < count; i++) {
		values[i].value.ullVal = 0;
		values[i].nvmlReturn = read_field(index, &values[i]);
		values[i].timestamp = (long long)now_us();
		values[i].latencyUsec = 0;
	}
	return NVML_SUCCESS;
}
