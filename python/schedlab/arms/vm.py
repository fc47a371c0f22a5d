"""The vm arm: each run boots the kernel of its variant in QEMU with the variant's settings and returns its report."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from schedlab import files
from schedlab.arms import accelerator, agent, feasible, guest, images, topology
from schedlab.arms.arm import Flag, Place, check_real, is_cancelled
from schedlab.arms.order import to_and_fro
from schedlab.engine import Cancel, Engine
from schedlab.errors import ArmError, not_written
from schedlab.guests.digests import digest
from schedlab.guests.emulation import COUNTED, EMULATED, VIRTUAL
from schedlab.guests.kernels import Kernel
from schedlab.guests.qemu import Machine, boot, version
from schedlab.outcome import Run
from schedlab.runner import Job
from schedlab.scenario import Scenario

UNTIMED = (
    "the speed of emulated CPUs depends on the host: counts and the order of variants are valid, durations are not"
)


class VmArm:
    """Other kernels in QEMU."""

    name = "vm"

    def __init__(self, engine: Engine, log: Callable[[str], None] = lambda _: None) -> None:
        self._engine, self._log = engine, log
        self._kernels: dict[str, Kernel] = {}
        self._rows: dict[str, str] = {}
        """The answer of `schedlab identify` about a kernel that no row models, or that there is none."""
        self._accel: tuple[str, ...] = COUNTED
        self._base = b""
        self._tools: dict[str, str] = {}

    def prepare(self, scenario: Scenario) -> None:
        options = scenario.arms["vm"]
        agent.find()
        check_real(scenario)
        guest.check_tools()
        if options["repeatable"] and scenario.machine.cpus != 1:
            raise ArmError(
                f"repeatable = true needs one CPU, and {scenario.machine.name} has {scenario.machine.cpus}",
                hint="machine = { base = ..., topology = { cores-per-llc = 1 } } has one",
                file=scenario.file,
            )
        own: dict[str, str] = options["images"]
        for variant in scenario.variants:
            path = own.get(variant.name)
            key = path or variant.kernel
            if key not in self._kernels:
                self._kernels[key] = images.of_file(path) if path else images.for_row(self._engine, variant.kernel)
                said = images.row_words(self._engine, self._kernels[key], variant.kernel)
                self._rows |= {key: said} if said else {}
        first = next(iter(self._kernels.values()))
        self._accel = accelerator.choose(first.image, self._log, repeatable=options["repeatable"])
        if self._accel != VIRTUAL:
            feasible.check_threads(scenario)
        self._base = guest.base(agent.programs(scenario) if scenario.arms["driver"] != "agent" else [])
        self._tools = {"qemu": version(), "agent_sha256": digest(agent.find())}
        topology.smp(scenario.machine.topology, scenario.machine.cpus)

    def plan(self, scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
        return to_and_fro(scenario, seeds, traces)

    def threads(self, asked: int | None, usual: int) -> int:
        """Guests that count instructions do not disturb each other; all others do."""
        if self._accel == COUNTED:
            return asked or usual
        if asked not in (None, 1):
            raise ArmError(
                "guests run one at a time because two would disturb each other",
                hint="guests with repeatable = true may run in parallel",
            )
        return 1

    def remarks(self) -> list[str]:
        used = [f"{name} boots {k.source}, sha256 {k.sha256[:16]}" for name, k in self._kernels.items()]
        used += [f"{self._kernels[name].source} is {said}" for name, said in self._rows.items()]
        return [*used, f"QEMU runs them by {accelerator.words(self._accel)}"]

    def cancel(self) -> Cancel:
        return Flag()

    def close(self) -> None:
        pass

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run:
        chosen = scenario.variant(variant)
        assert chosen is not None  # the caller took it from the scenario
        key = scenario.arms["vm"]["images"].get(variant, chosen.kernel)
        kernel = self._kernels[key]
        name = f"trace{Path(trace).suffix}" if trace else None
        words = agent.arguments(
            scenario,
            Path(scenario.file).name,
            variant,
            seed,
            "/out/report.json",
            f"/out/{name}" if name else None,
            self._untimed(),
        )
        options = scenario.arms["vm"]
        own = guest.own(scenario.file, words, chosen.settings, options["cgroup"])
        limit = options["time_limit_s"]
        machine = self._machine(scenario, kernel, seed)
        code, sent, wall = booted(machine, self._base + own, limit, self._log, lambda: is_cancelled(cancel))
        if code != 0:
            raise agent.run_failure(code, sent.text("stderr"), variant, seed)
        topology.verify(scenario.machine.topology, sent.topology)
        if trace and name:
            _keep(Path(trace), sent.files.get(name, b""))
        return agent.report(sent.text("report.json"), self._place(scenario, key, sent).to_record(), wall)

    def _machine(self, scenario: Scenario, kernel: Kernel, seed: int) -> Machine:
        options, cpus = scenario.arms["vm"], scenario.machine.cpus
        arrangement, numa = topology.smp(scenario.machine.topology, cpus, options["memory_mb"])
        return Machine(
            kernel.image,
            cpus,
            options["memory_mb"],
            options["append"],
            accel=self._accel,
            smp=arrangement,
            numa=numa,
            seed=seed,
        )

    def _place(self, scenario: Scenario, key: str, sent: guest.Sent) -> Place:
        cpus, kernel = scenario.machine.cpus, self._kernels[key]
        machine = f"{accelerator.words(self._accel)}, {cpus} CPU{'s' * (cpus > 1)}"
        state = {**sent.state, **self._tools, "image": kernel.source, "image_sha256": kernel.sha256}
        state |= {"row": self._rows[key]} if key in self._rows else {}
        return Place(machine, state, untimed=self._untimed())

    def _untimed(self) -> str | None:
        return UNTIMED if self._accel == EMULATED else None


def booted(
    machine: Machine,
    files: bytes,
    limit_s: float,
    log: Callable[[str], None],
    stop: Callable[[], bool] = lambda: False,
) -> tuple[int, guest.Sent, float]:
    """The exit code of the guest's command, what it sent, and the duration."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="schedlab-vm-") as folder:
        archive, raw = Path(folder) / "initramfs", Path(folder) / "report"
        archive.write_bytes(files)
        ended = boot(machine, archive, raw, limit_s, log, stop)
        return ended.exit_code, guest.received(raw), time.monotonic() - began


def _keep(trace: Path, content: bytes) -> None:
    try:
        files.replace(trace, content)
    except OSError as e:
        raise not_written("cannot write the trace", e, file=str(trace)) from None
