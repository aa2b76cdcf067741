#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD: shows a GPU that is split between tenants, from a build folder, on this machine's
# GPU or else on the simulated node. Leaves nothing behind. The last line says whether the quota
# held; so does the exit status.
set -eu
build=$(cd "${1:?the build folder is missing: tools/demo.sh build/demo}" && pwd)
quota=2g
quota_mib=2048
# one device, on which the tenants meet
device=0

PATH=$build/src/cli:$build/sim/tool:$build/examples:$PATH
# A container's own root drops the locks of the simulated machine's file; /dev/shm keeps them.
own=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
mkdir -m 700 "$own/slices"
export VGPU_STATE="$own/slices" VGPU_SIM_STATE="$own/machine"
worst_mib=0
refused=0

clear_up() {
	# only what was started here, and what is left of it
	for started in $(jobs -p); do
		kill "$started" 2>/dev/null || true
	done
	wait
	rm -rf "$own"
}
trap clear_up EXIT
trap 'exit 1' INT TERM

say() {
	printf '\n\033[1m%s\033[0m\n' "$*"
}

[ -t 1 ] || say() {
	printf '\n== %s\n' "$*"
}

# Shows a command as one would type it, then runs it.
try() {
	echo "\$ $*"
	"$@"
}

if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
	sim=
	smi=nvidia-smi
	where="this machine's GPU"
else
	sim=--sim
	# another simulated machine has devices of the same names
	export VGPU_TURNS="$own/turns"
	smi='vgpu-sim smi'
	where='the simulated node: no GPU is here'
fi

# in_slice NAME COMMAND...: under a tag of the same name the simulated node counts what it really
# holds.
in_slice() {
	name=$1
	shift
	printf '$ vgpu run --memory %s --device %s --name %s%s --' $quota $device "$name" "${sim:+ $sim}"
	for word in "$@"; do
		case $word in
		*' '*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	VGPU_SIM_TAG=$name vgpu run --memory $quota --device $device --name "$name" $sim -- "$@" ||
		echo "  (exit status $?)"
}

# await FILE WORD N: waits until N lines with the word are in the file; 30 s at most.
await() {
	tries=0
	while [ $tries -lt 600 ]; do
		lines=$(grep -c "$2" "$1" 2>/dev/null || true)
		[ "${lines:-0}" -lt "$3" ] || break
		sleep 0.05
		tries=$((tries + 1))
	done
}

# What the driver itself says that a slice holds, whatever the library says: MiB.
held_mib() {
	if [ -n "$sim" ]; then
		vgpu-sim truth --tag "$1" --json | grep -o '"peak_held_bytes":[0-9]*' |
			cut -d : -f 2 | sort -n | tail -n 1 | awk '{ print int($1 / 1048576) }'
	else
		pids=$(vgpu list --json | grep -o '"pid": [0-9]*' | cut -d ' ' -f 2 | tr '\n' ' ')
		nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits |
			awk -F ', *' -v pids=" $pids" \
				'index(pids, " " $1 " ") { sum += $2 } END { print sum + 0 }'
	fi
}

judge() {
	mib=$(held_mib "$1")
	echo "  the driver says that '$1' held ${mib:-0} MiB at most; its quota is $quota_mib MiB"
	[ "${mib:-0}" -le $worst_mib ] || worst_mib=$mib
	refused=$((refused + $(grep -c OUT_OF_MEMORY "$2" || true)))
}

say "The machine ($where)"
if [ -n "$sim" ]; then
	try vgpu-sim describe
else
	try nvidia-smi -L
fi

say "A tenant with a quota of $quota takes all that it gets"
in_slice alone tenant --hold 1200 >"$own/alone" &
await "$own/alone" holding 1
cat "$own/alone"

say 'The same moment, seen from outside'
try vgpu list $sim
try vgpu list --processes $sim
judge alone "$own/alone"
wait

say 'NVML inside a slice: a smaller device'
in_slice view $smi

say 'Two tenants in one slice share its quota'
both="tenant --blocks 2 --hold 2000 & sleep 0.5; tenant --hold 1000; wait"
in_slice both sh -c "$both" >"$own/both" &
await "$own/both" holding 2
cat "$own/both"
try vgpu list --processes $sim
judge both "$own/both"
wait

say 'The result'
if [ "$worst_mib" -gt 0 ] && [ "$worst_mib" -le $quota_mib ] && [ "$refused" -gt 0 ]; then
	echo "The quota held: $quota_mib MiB allowed, $worst_mib MiB held at most, $refused refusals."
else
	echo "The quota did NOT hold: $quota_mib MiB allowed, $worst_mib MiB held, $refused refusals."
	exit 1
fi
