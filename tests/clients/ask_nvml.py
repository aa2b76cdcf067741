# SPDX-License-Identifier: Apache-2.0
"""What nvidia-ml-py sees: each question that takes a device alone, and the memory."""

import json

import pynvml

# Whatever a tool asks of a card answers or says that it is not supported; nothing is missing or unknown.
ALLOWED = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT)
QUESTIONS = """Name UUID Serial BoardId Brand Architecture PciInfo MinorNumber PowerUsage
    EnforcedPowerLimit TotalEnergyConsumption UtilizationRates EncoderUtilization
    DecoderUtilization EncoderStats FanSpeed PerformanceState PowerState EccMode ComputeMode
    PersistenceMode MigMode CurrPcieLinkGeneration CurrPcieLinkWidth MaxPcieLinkGeneration
    PcieReplayCounter BAR1MemoryInfo RemappedRows CurrentClocksEventReasons VirtualizationMode
    ComputeRunningProcesses GraphicsRunningProcesses MPSComputeRunningProcesses
    SupportedEventTypes BoardPartNumber GpuOperationMode""".split()


def main():
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    for question in QUESTIONS:
        try:
            getattr(pynvml, "nvmlDeviceGet" + question)(device)
        except pynvml.NVMLError as error:
            if error.value not in ALLOWED:
                raise RuntimeError("%s: %s" % (question, error)) from error
    fields = pynvml.nvmlDeviceGetFieldValues(device, [pynvml.NVML_FI_DEV_POWER_INSTANT])
    if fields[0].nvmlReturn != pynvml.NVML_SUCCESS:
        raise RuntimeError("no power among the fields")
    pynvml.nvmlDeviceGetPcieThroughput(device, pynvml.NVML_PCIE_UTIL_TX_BYTES)
    pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)
    pynvml.nvmlDeviceGetSamples(device, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    print(json.dumps({"total_mib": memory.total // 1048576}))


main()
