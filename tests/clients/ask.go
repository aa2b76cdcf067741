// SPDX-License-Identifier: Apache-2.0

// What go-nvml and go-nvlib see: the libraries under NVIDIA's device plugin and container toolkit.
package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func right(what string, result nvml.Return) {
	if result != nvml.SUCCESS {
		fmt.Println(what+":", nvml.ErrorString(result))
		os.Exit(1)
	}
}

func check(what string, err error) {
	if err != nil {
		fmt.Println(what+":", err)
		os.Exit(1)
	}
}

func main() {
	library := nvml.New()
	right("init", library.Init())
	defer library.Shutdown()
	devices := device.New(library)
	all, err := devices.GetDevices()
	check("devices", err)
	_, err = devices.GetMigProfiles()
	check("MIG profiles", err)
	for _, each := range all {
		_, err = each.GetArchitectureAsString()
		check("architecture", err)
		_, err = each.IsMigCapable()
		check("MIG", err)
	}
	set, result := library.EventSetCreate()
	right("event set", result)
	right("events", all[0].RegisterEvents(nvml.EventTypeXidCriticalError, set))
	if _, result = set.Wait(10); result != nvml.ERROR_TIMEOUT {
		right("wait", result)
	}
	right("event set", set.Free())
	memory, result := all[0].GetMemoryInfo()
	right("memory", result)
	fmt.Printf("{\"total_mib\": %d}\n", memory.Total>>20)
}
