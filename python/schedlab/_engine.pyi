"""The Rust engine: documents go in and out as JSON text; `engine.py` gives them types."""

ENGINE: str

class EngineError(Exception):
    message: str
    hint: str | None
    file: str | None
    line: int | None
    column: int | None
    key: str | None
    exit_code: int

class ScenarioError(EngineError): ...
class TraceFileError(EngineError): ...
class RunError(EngineError): ...
class Cancelled(EngineError): ...

class Cancel:
    """Stops the runs that were given it, at their next event batch."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    def of_run(self) -> Cancel: ...
    @property
    def now_ns(self) -> int: ...

class Scenario:
    """A validated scenario; immutable, usable from any thread."""

    def describe(self) -> str: ...
    def spec(self, variant: str) -> str: ...

def load(path: str, overrides: str | None = None) -> Scenario: ...
def loads(text: str, name: str = "<scenario>", overrides: str | None = None) -> Scenario: ...

class Study:
    """A validated study and the scenarios of its cases."""

    def describe(self) -> str: ...
    def scenario(self, number: int) -> Scenario: ...

def load_study(name: str, short: bool = False, units: int | None = None) -> Study: ...

class Kept:
    """What is kept of a run besides its report."""

    def tail(self, metric: str, bands: list[tuple[int, int]]) -> str | None: ...

def run_keeping(
    scenario: Scenario, variant: str, seed: int, metrics: list[str], *, cancel: Cancel | None = None
) -> tuple[str, Kept | None]: ...
def tail(
    scenario: Scenario,
    variant: str,
    seed: int,
    metric: str,
    bands: list[tuple[int, int]],
    *,
    cancel: Cancel | None = None,
) -> str: ...
def timeline(
    scenario: Scenario,
    variant: str,
    seed: int,
    *,
    around: tuple[list[int], int] | None = None,
    cancel: Cancel | None = None,
) -> str: ...
def run(
    scenario: Scenario,
    variant: str,
    seed: int,
    *,
    trace: str | None = None,
    cancel: Cancel | None = None,
    check_determinism: bool = False,
) -> str: ...
def changes(a: str, b: str) -> str: ...
def listing(kind: str, kernel: str | None = None) -> str: ...
def ablation(scenario: Scenario, a: str, b: str) -> str: ...
def run_hybrid(
    scenario: Scenario, a: str, b: str, names: list[str], seed: int, *, cancel: Cancel | None = None
) -> str: ...
def explain(scenario: Scenario, a: str, b: str, seed: int, *, cancel: Cancel | None = None) -> str: ...
def explain_metric(
    scenario: Scenario, a: str, b: str, seed: int, metric: str, *, cancel: Cancel | None = None
) -> str: ...
def why(scenario: Scenario, variant: str, seed: int, task: str, at_ns: int, *, cancel: Cancel | None = None) -> str: ...
def convert(source: str, target: str, *, buffer: str | None = None, cancel: Cancel | None = None) -> str: ...
def replay(
    trace: str,
    kernel: str | None = None,
    *,
    matrix: bool = False,
    first: int | None = None,
    warm_up_ms: int | None = None,
    explain: tuple[str, int] | None = None,
    cancel: Cancel | None = None,
) -> str: ...
def waits(trace: str, *, keep: int = 1, only: str | None = None, cancel: Cancel | None = None) -> str: ...

class TraceSample:
    """Parts of a trace, on which every row is tried within bounds."""

    def __init__(self, trace: str, *, first: int = 1, cancel: Cancel | None = None) -> None: ...
    def rows(self) -> list[str]: ...
    def replay(self, row: str, *, cancel: Cancel | None = None) -> str | None: ...

def whatif(trace: str, kernel: str | None = None, *, cancel: Cancel | None = None) -> str: ...
def whatif_run(
    scenario: Scenario,
    variant: str,
    seed: int,
    pools: dict[str, str],
    *,
    cancel: Cancel | None = None,
) -> str: ...
def row_of(release: str) -> str | None: ...
def kernel_btf(path: str) -> bytes: ...
def scx_check(object: str, kernels: list[str]) -> str: ...
def scx_stress(
    object: str,
    kernel: str,
    seeds: list[int],
    *,
    cpus: int,
    tasks: int,
    duration_ns: int,
    variables: list[tuple[str, int]],
) -> str: ...
