"""The devices that torch finds here. Imports torch: the page asks the worker for them."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from explorer.events import Device
from explorer.experiment import InvalidExperiment, missing


def devices() -> tuple[Device, ...]:
    """The CPU, then every accelerator."""
    found = [Device("cpu", _cpu())]
    if torch.accelerator.is_available():
        accelerator = torch.accelerator.current_accelerator()
        assert accelerator is not None  # is_available has said so
        kind = accelerator.type
        if kind == "mps":
            found.append(Device("mps", "Apple GPU"))
        else:
            found.extend(
                Device(f"{kind}:{index}", title(f"{kind}:{index}"))
                for index in range(torch.accelerator.device_count())
            )
    return tuple(found)


def title(device: str) -> str:
    """The maker's name of a device that is there."""
    kind = device.partition(":")[0]
    if kind == "cuda":
        return torch.cuda.get_device_name(device)
    return _cpu() if kind == "cpu" else f"{device} accelerator"


def require(device: str) -> None:
    """Raises InvalidExperiment, with the devices there are, if `device` is not one of them."""
    problem = missing(device, [found.name for found in devices()])
    if problem:
        raise InvalidExperiment({"device": problem})


def _cpu() -> str:
    """The processor's name, from Linux's /proc/cpuinfo where there is one."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
