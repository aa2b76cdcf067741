# SPDX-License-Identifier: Apache-2.0
"""The layers: which module may use which. check_layers.py holds includes against this table,
check_links.py calls and data. The arrows point down only (docs/architecture.md)."""

_SLICE = ["base", "policy", "region", "gpu", "tenant/driver"]
_TENANT = [*_SLICE, "tenant/slice"]
_NODE_SIDE = ["base", "policy", "gpu", "node", "net", "kube"]

MAY_USE = {
    "base": [],
    "policy": ["base"],
    "region": ["base", "policy"],
    "gpu": ["base", "policy"],
    "tenant/driver": ["base", "gpu"],
    "tenant/slice": _SLICE,
    "tenant/memory": _TENANT,
    "tenant/compute": _TENANT,
    "tenant/hooks": [*_TENANT, "tenant/memory", "tenant/compute"],
    "tenant/door": ["base", "policy", "gpu", "tenant/driver", "tenant/slice", "tenant/hooks"],
    "node": ["base", "policy", "region", "gpu"],
    "mps": ["base", "policy", "node"],
    "probe": ["base", "node"],
    "net": ["base"],
    "web": ["base", "net"],
    "kube": ["base", "net"],
    "plugin/config": ["base", "policy", "gpu"],
    "plugin/host": ["base", "policy", "gpu", "node"],
    "plugin/devices": ["base", "policy", "gpu", "node", "net"],
    "plugin/grant": ["base", "policy", "gpu", "kube", "plugin/config", "plugin/host"],
    "plugin/cluster": [*_NODE_SIDE, "plugin/config", "plugin/host", "plugin/devices", "plugin/grant"],
    "plugin/mig": [*_NODE_SIDE, "plugin/config", "plugin/host", "plugin/cluster"],
    "plugin": [*_NODE_SIDE, "mps", "plugin/config", "plugin/host", "plugin/devices", "plugin/grant", "plugin/cluster", "plugin/mig"],
    "scheduler": ["base", "policy", "net", "web", "kube"],
    "plan": ["base", "policy", "net", "kube", "scheduler"],
    "monitor": ["base", "policy", "region", "gpu", "node", "net", "web", "kube", "probe"],
    "cli": ["base", "policy", "region", "gpu", "node", "mps", "probe"],
}

_MODEL = ["sim/machine", "sim/cuda/model"]
_TIMED = [*_MODEL, "sim/cuda/model/time", "sim/cuda/model/memory"]

# The simulated node, which shares only headers with the product.
SIM_MAY_USE = {
    "sim/machine": [],
    "sim/cuda/model": ["sim/machine"],
    "sim/cuda/model/time": _MODEL,
    "sim/cuda/model/memory": [*_MODEL, "sim/cuda/model/time"],
    "sim/cuda/model/code": _TIMED,
    "sim/cuda/model/graph": [*_TIMED, "sim/cuda/model/code"],
    "sim/cuda/model/context": [*_TIMED, "sim/cuda/model/code", "sim/cuda/model/graph"],
    "sim/cuda/api": [*_TIMED, "sim/cuda/model/code", "sim/cuda/model/graph", "sim/cuda/model/context"],
    "sim/cudart": [],
    "sim/nvml": ["sim/machine"],
    "sim/mps": [],
    "sim/tool": ["sim/machine"],
}


def module_of(path):
    """The module that a file belongs to, as the tables name it; without a row, its folder."""
    name = path[4:] if path.startswith("src/") else path
    parts = name.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        module = "/".join(parts[:length])
        if module in MAY_USE or module in SIM_MAY_USE:
            return module
    return "/".join(parts)


def used_by(user):
    return MAY_USE.get(user, SIM_MAY_USE.get(user, []))


def may_use(user, used):
    """Whether a file of the one module may use what is in the other."""
    return user == used or used in used_by(user)


def allowed(user):
    """What a module may use, in words."""
    return ", ".join(used_by(user)) or "libc alone"
