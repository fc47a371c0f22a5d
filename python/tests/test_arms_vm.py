"""The vm arm with stand-ins for QEMU and the agent: what goes into a guest, what comes out, what is refused."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import arm_stand_ins as made_up
import fake_engine
from schedlab import api, render
from schedlab.arms import accelerator, doctor, feasible, guest, images, topology
from schedlab.arms.vm import VmArm
from schedlab.compare_variants import compare_variants
from schedlab.engine import Engine
from schedlab.errors import ArmError, InputError, RunError, UnsafeError
from schedlab.guests import debian, identity, kernels
from schedlab.guests.digests import digest
from schedlab.guests.emulation import COUNTED, EMULATED
from schedlab.render.document import run_document
from schedlab.scenario import Scenario

# A guest that does as its init would: unpacks what it got, runs the agent, sends a report.
QEMU = """\
#!/bin/sh
[ "$1" = --version ] && { echo "QEMU emulator version 7.2.0"; exit; }
while [ $# -gt 0 ]; do
    case $1 in file:*) raw=${1#file:} ;; -initrd) initrd=$2 ;; -kernel) kernel=$2 ;; esac
    echo "$1" >>"$HERE/words"
    shift
done
say() { echo "schedlab: $*"; }
say setting up
guest=$HERE/guest-$$; mkdir -p "$guest/out"
python3 "$HERE/unpack.py" "$initrd" "$guest"
cat "$guest/schedlab/settings" >>"$HERE/settings"
say running the workload
sed "s|/bin/schedlab-agent|$guest/bin/schedlab-agent|; s|/out/|$guest/out/|g" "$guest/schedlab/command" >"$guest/run"
(cd "$guest/work" && sh ../run >"$guest/out/stdout" 2>"$guest/out/stderr")
code=$?
{ echo "release $(cat "$kernel")"; cat "$HERE/topology"; } >"$guest/out/state"
tar -c -C "$guest/out" . | gzip >"$raw"
say "workload ended with $code"
say sent
"""
UNPACK = """\
import gzip, sys
from pathlib import Path
data, at = gzip.open(sys.argv[1]).read(), 0
while at < len(data):
    if data[at:at + 6] != b"070701":
        at += 4
        continue
    field = [int(data[at + 6 + 8 * n:at + 14 + 8 * n], 16) for n in range(13)]
    name = data[at + 110:at + 109 + field[11]].decode()
    start = (at + 110 + field[11] + 3) & ~3
    path = Path(sys.argv[2]) / name
    if field[1] & 0o170000 == 0o100000:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data[start:start + field[6]])
        path.chmod(0o755)
    at = (start + field[6] + 3) & ~3
"""
USUAL = {"images": {}, "memory_mb": 256, "cgroup": "v2", "append": "", "time_limit_s": 60.0}
ONE = {"cores": ["0"], "llcs": ["0"], "sockets": ["0"], "nodes": ["0"]}
FOUR = {"cores": ["0-1", "2-3"], "llcs": ["0-3"], "sockets": ["0-3"], "nodes": ["0-3"]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in (("qemu-system-x86_64", QEMU), ("busybox", "#!/bin/sh\necho sh\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "unpack.py").write_text(UNPACK)
    (tmp_path / "topology").write_text("cores 0\nsockets 0\nnodes 0\n")
    (tmp_path / "toy.toml").write_text('name = "toy"\n[[workload]]\nrt-app = "load.json"\n')
    (tmp_path / "load.json").write_text("{}")
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(tmp_path))
    monkeypatch.setenv("SCHEDLAB_AGENT", str(made_up.agent(tmp_path)))
    monkeypatch.setattr(accelerator, "DEVICE", tmp_path / "no-kvm")
    for release in ("6.1.7", "6.1.192", "6.12.107"):
        image = debian.cache() / f"linux-image-{release}-cloud-amd64_{release}-1/boot/vmlinuz-{release}"
        image.parent.mkdir(parents=True)
        image.write_text(release)
    return tmp_path


def scenario(*variants: dict[str, Any], cpus: int = 1, groups: Any = None, **vm: Any) -> Scenario:
    usual = {**USUAL, "repeatable": True}
    machine = {"name": "m", "summary": "", "cpus": cpus, "calibrated": False, "topology": groups or ONE}
    described = fake_engine.describe(
        variants=list(variants), seeds=[1, 2], arm="vm", machine=machine, arms={"vm": {**usual, **vm}}
    )
    return Scenario.from_description(described)


def measured(compared: Scenario) -> Any:
    arm = VmArm(Engine(fake_engine))
    arm.prepare(compared)
    return api.run_all(Engine(fake_engine), compared, arm=arm, jobs=1)[0]


def test_each_variant_boots_its_kernel_with_its_settings(here: Path) -> None:
    result = measured(scenario(made_up.variant("old"), made_up.variant("new", "6.12.107", files=[[made_up.KNOB, "0"]])))
    assert not result.failures
    assert (here / "settings").read_text() == f"{made_up.KNOB} 0\n" * 2
    words = (here / "words").read_text().split()
    assert "-icount" in words
    # A seed gives the guest its random numbers, and no host's date gets in.
    assert sorted(words[at + 1] for at, word in enumerate(words) if word == "-seed") == ["1", "1", "2", "2"]
    assert words.count("base=2026-01-01T00:00:00,clock=vm") == 4
    guest = next(here.glob("guest-*"))
    assert guest.joinpath("schedlab", "cgroup").read_text() == "v2\n"
    comparison = compare_variants(result)
    assert comparison.machine == "TCG -icount, 1 CPU"
    assert "differs: release: old 6.1.192, new 6.12.107" in comparison.remarks
    assert any("image_sha256" in remark for remark in comparison.remarks)
    state = next(iter(result.runs.values())).record["place"]["state"]
    assert (state["qemu"], len(state["agent_sha256"])) == ("7.2.0", 64)
    assert {row["verdict"] for row in comparison.table()} != {"undecided, order only"}


SMT = {"cores": ["0-1", "2-3"], "llcs": ["0-3"], "sockets": ["0-3"], "nodes": ["0-3"]}


@pytest.mark.parametrize(
    ("kernel", "release", "in_debian", "groups", "images", "says"),
    [
        ("6.1", "6.1.192", True, ONE, {}, None),
        ("6.12.0", "6.12", False, ONE, {}, "Debian has no image of 6.12.0 (`image` of [arm.vm] can name one)"),
        ("6.12.0", "6.12", False, ONE, {"v": "bzImage"}, None),
        ("6.1", "6.1.192", True, SMT, {}, "6.1 cannot see the SMT threads of emulated CPUs"),
        ("6.1", "6.1.192", True, SMT, {"v": "bzImage"}, None),
        ("6.12.107", "6.12.107", True, SMT, {}, None),
        ("6.1", "6.1.192", True, {**SMT, "clusters": ["0-3"]}, {}, "QEMU's x86 guests have no clusters of cores"),
        ("6.1", "", None, ONE, {}, None),
    ],
)
def test_only_what_guests_can_run_is_suggested(
    kernel: str, release: str, in_debian: bool | None, groups: Any, images: Any, says: str | None
) -> None:
    known = {"release": release, "in_debian": in_debian} if release else {}
    asked = scenario({**made_up.variant("v", kernel), **known}, cpus=1 if groups is ONE else 4, groups=groups,
                     repeatable=False, images=images)  # fmt: skip
    assert feasible.why_not(asked) == says


def test_smt_is_refused_before_a_guest_boots_that_would_not_see_it(here: Path) -> None:
    old = {**made_up.variant("v", "6.1"), "release": "6.1.192", "in_debian": True}
    with pytest.raises(ArmError, match=r"6\.1 cannot see the SMT threads") as refused:
        VmArm(Engine(fake_engine)).prepare(scenario(old, cpus=4, groups=SMT, repeatable=False))
    assert "threads-per-core = 1" in str(refused.value)


@pytest.mark.parametrize(
    ("file", "value", "says"),
    [
        # A plain file shows what was written; debugfs shows the model in force in brackets.
        ("sched/preempt", "lazy", "failed: HERE/sched/preempt is lazy after lazy was written"),
        ("sched/preempt", "(lazy", "failed: HERE/sched/preempt is (lazy after (lazy was written"),
        ("sched/features", "NO_X", "ready"),
        ("sched/none", "1", "failed: this kernel has no HERE/sched/none"),
    ],
)
def test_a_guest_reads_its_preemption_model_back(tmp_path: Path, file: str, value: str, says: str) -> None:
    init = (Path(guest.__file__).parent / "guest.sh").read_text()
    loop = init[init.index("while read -r file value") : init.index("</schedlab/settings\n")]
    (tmp_path / "sched").mkdir()
    for name in ("preempt", "features"):
        (tmp_path / "sched" / name).write_text("none (full)\n")
    (tmp_path / "settings").write_text(f"{tmp_path / file} {value}\n")
    script = f'fail() {{ echo "failed: $*"; exit 1; }}\n{loop}<{tmp_path / "settings"}\necho ready\n'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
    assert said.strip().replace(str(tmp_path), "HERE") == says


def test_the_scenario_goes_along_with_the_files_it_names(here: Path) -> None:
    measured(scenario(made_up.variant("old")))
    guest = next(here.glob("guest-*"))
    assert guest.joinpath("work", "load.json").read_text() == "{}"
    assert guest.joinpath("work", "toy.toml").exists()


def test_no_file_of_elsewhere_goes_into_a_guest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "sub/load.json").write_text("{}")
    (tmp_path / "secret.txt").write_text("x")
    (home / "link.txt").symlink_to(tmp_path / "secret.txt")
    names = [
        "sub/load.json",
        "../secret.txt",
        "sub/../../secret.txt",
        "link.txt",
        str(tmp_path / "secret.txt"),
        "a.\\u0000b",
    ]
    (home / "s.toml").write_text("names = [" + ", ".join(f'"{name}"' for name in names) + "]\n")
    assert [name for name, _ in guest.scenario_files(home / "s.toml")] == ["s.toml", "sub/load.json"]


def test_an_image_that_changed_in_the_cache_is_refused(here: Path) -> None:
    engine = Engine(fake_engine)
    image = images.for_row(engine, "6.1").image
    assert images.for_row(engine, "6.1").sha256 == (image.parents[1] / "image.sha256").read_text().split()[0]
    image.write_text("another kernel")
    with pytest.raises(UnsafeError, match="has changed since it was unpacked"):
        images.for_row(engine, "6.1")


def test_a_cache_that_others_can_write_is_refused(here: Path) -> None:
    debian.cache_directory().chmod(0o777)
    with pytest.raises(UnsafeError, match="other users can write"):
        VmArm(Engine(fake_engine)).prepare(scenario(made_up.variant("old")))
    found = {finding.name: finding for finding in doctor.examine(Engine(fake_engine))}
    assert "other users can write" in found["images"].says


def test_several_emulated_cpus_tell_counts_and_orders_only(here: Path) -> None:
    (here / "topology").write_text("cores 0-1\ncores 2-3\nsockets 0-3\nllcs 0-3\nnodes 0-3\n")
    result = measured(scenario(made_up.variant("old"), made_up.variant("b"), cpus=4, groups=FOUR, repeatable=False))
    assert not result.failures
    assert "4,sockets=1,dies=1,cores=2,threads=2" in (here / "words").read_text()
    verdicts = {row["metric"]: row["verdict"] for row in compare_variants(result).table()}
    assert verdicts["probe.latency.p50"].endswith("order only")
    assert not verdicts["sched.switches"].endswith("order only")


def test_no_duration_of_several_emulated_cpus_is_in_any_document(here: Path) -> None:
    (here / "topology").write_text("cores 0-1\ncores 2-3\nsockets 0-3\nllcs 0-3\nnodes 0-3\n")
    compared = scenario(made_up.variant("old"), made_up.variant("b"), cpus=4, groups=FOUR, repeatable=False)
    result = measured(compared)
    comparison = compare_variants(result)
    of_compare = render.json_document(comparison)
    run = next(iter(result.runs.values()))
    assert run.metrics["probe.latency.p50"] == run.seed + 0.5  # kept, for the order of variants
    of_run = run_document(compared, "vm", run)
    for document in (of_compare, of_run):
        samples = {m["metric"]: {x for values in m["samples"].values() for x in values} for m in document["metrics"]}
        assert samples["probe.latency.p50"] == {None}
        assert None not in samples["sched.switches"]
        assert any("durations are not" in remark for remark in document["remarks"])
    assert of_run["sim_s"] is None
    assert not [key for task in of_run["tasks"] for key in task if "_ns" in key]
    assert of_run["tasks"][0]["switches"] == 3
    shown = [run.metrics["probe.latency.p50"] for column in comparison.columns for run in column.runs.values()]
    assert {*shown} == {None}
    command = next(here.glob("guest-*")).joinpath("schedlab", "command").read_text()
    assert "--remark 'no durations: the speed of emulated CPUs" in command


def test_a_guest_with_other_cpus_gives_no_number(here: Path) -> None:
    (here / "topology").write_text("cores 0\ncores 1\ncores 2\ncores 3\nsockets 0-3\n")
    result = measured(scenario(made_up.variant("old"), cpus=4, groups=FOUR, repeatable=False))
    assert (
        "cores differ from those of the scenario's machine: 4 of 1 CPU instead of 2 of 2 CPUs"
        in result.failures[0].message
    )


def test_an_agent_s_words_come_home(here: Path) -> None:
    result = measured(scenario(made_up.variant("broken")))
    assert result.failures[0].message == "no futex left"


REFUSED = [
    # variants, further keys, words of message, words of hint
    ([made_up.variant("a", "7.2")], {}, "no kernel image of 7.2", "rows with an image: 6.1, 6.12.107"),
    ([made_up.variant("a")], {"cpus": 4, "groups": FOUR}, "repeatable = true needs one CPU", "topology"),
    ([made_up.variant("a")], {"cpus": 480, "repeatable": False}, "480 CPUs is too large", ""),
]


@pytest.mark.parametrize(("variants", "keys", "message", "hint"), REFUSED)
def test_what_cannot_be_had_is_refused_first(
    here: Path, monkeypatch: pytest.MonkeyPatch, variants: Any, keys: Any, message: str, hint: str
) -> None:
    def out_of_reach(*_: object) -> None:
        raise ArmError("no archive")

    monkeypatch.setattr(debian.Apt, "__init__", out_of_reach)
    with pytest.raises(ArmError) as refused:
        VmArm(Engine(fake_engine)).prepare(scenario(*variants, **keys))
    assert message in refused.value.message
    assert hint in str(refused.value.hint)


def test_an_image_that_is_not_there_is_bad_input_as_it_is_for_record(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    for path, hint in (("no/such", f"relative to the current directory, here {here}"), ("/no/such", "None")):
        with pytest.raises(InputError) as refused:
            VmArm(Engine(fake_engine)).prepare(scenario(made_up.variant("a"), images={"a": path}))
        assert (refused.value.message, refused.value.exit_code) == ("there is no such kernel image", 2)
        assert hint in str(refused.value.hint)


def test_everything_that_guests_lack_is_named_at_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here))
    with pytest.raises(ArmError) as refused:
        VmArm(Engine(fake_engine)).prepare(scenario(made_up.variant("a")))
    assert refused.value.message == "guests need qemu-system-x86_64 and busybox"
    assert refused.value.hint == "apt-get install qemu-system-x86 busybox-static"
    found = {finding.name: finding for finding in doctor.examine(Engine(fake_engine))}
    lacking = {name: f.command for name, f in found.items() if not f.there}
    assert lacking["QEMU"] == "apt-get install qemu-system-x86"
    assert lacking["busybox"] == "apt-get install busybox-static"
    assert lacking["sysbench"] == "apt-get install sysbench"
    assert "SCHEDLAB_SCHBENCH=PATH" in str(lacking["schbench"])
    assert "apt-get" in found["apt"].says


def test_a_variant_boots_the_image_the_scenario_names_for_it(here: Path) -> None:
    (here / "bzImage").write_text("6.1.99-mine")
    variants = (made_up.variant("distribution"), made_up.variant("patched"))
    result = measured(scenario(*variants, images={"patched": str(here / "bzImage")}))
    booted = {(name, run.record["place"]["state"]["image"]) for (name, _), run in result.runs.items()}
    assert booted == {("distribution", "linux-image-6.1.192-cloud-amd64 6.1.192-1"), ("patched", "bzImage")}


def test_a_kernel_without_a_row_boots_for_the_row_that_it_was_identified_as(here: Path) -> None:
    image = debian.cache() / "linux-image-6.17.8-cloud-amd64_6.17.8-1/boot/vmlinuz-6.17.8"
    image.parent.mkdir(parents=True)
    image.write_text("6.17.8")
    with pytest.raises(ArmError, match=r"no kernel image of 6\.18\.2"):
        images.for_row(Engine(fake_engine), "6.18.2")
    identity.keep(digest(image), identity.Identity(("6.17", "6.18.2"), "all picks"))
    arm = VmArm(Engine(fake_engine))
    compared = scenario(made_up.variant("a", "6.18.2"))
    arm.prepare(compared)
    words = "identified as 6.17 or 6.18.2: all picks"
    assert f"linux-image-6.17.8-cloud-amd64 6.17.8-1 is {words}" in arm.remarks()
    result = api.run_all(Engine(fake_engine), compared, arm=arm, jobs=1)[0]
    assert {run.record["place"]["state"]["row"] for run in result.runs.values()} == {words}


def test_an_image_that_nobody_identified_says_so(here: Path) -> None:
    (here / "bzImage").write_text("mine")
    arm = VmArm(Engine(fake_engine))
    arm.prepare(scenario(made_up.variant("a"), images={"a": str(here / "bzImage")}))
    assert "bzImage is not identified: schedlab identify says whether the row fits" in arm.remarks()
    (debian.cache() / identity.NAME).write_text("[]")
    with pytest.raises(InputError, match="not what schedlab identify writes"):
        identity.find("a")


def test_of_several_images_the_newest(here: Path) -> None:
    assert images.for_row(Engine(fake_engine), "6.1").source.endswith(" 6.1.192-1")
    assert images.for_row(Engine(fake_engine), "6.12").source.endswith(" 6.12.107-1")


def test_a_sublevel_means_the_image_of_that_sublevel(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, said = Engine(fake_engine), list[str]()
    assert images.for_row(engine, "6.1.7").source.endswith(" 6.1.7-1")
    doctor.fetch(engine, "6.1.7", said.append)
    assert said[0].startswith("6.1.7 (row 6.1): linux-image-6.1.7-cloud-amd64 6.1.7-1, sha256 ")
    fetched = kernels.Kernel(here / "vmlinuz", "0", "linux-image-6.12.117-cloud-amd64 6.12.117-1")
    monkeypatch.setattr(kernels, "find", lambda name: {"6.12.117": fetched}[name])
    assert images.for_row(engine, "6.12.117") is fetched, "not the image of 6.12.107 in the cache"


def test_a_sublevel_without_an_image_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here / "bin"))
    with pytest.raises(ArmError, match=r"there is no kernel image of 6\.1\.19 \(apt-get is not installed") as e:
        images.for_row(Engine(fake_engine), "6.1.19")
    row = "6.1 asks for any image of the row that has the rules of 6.1.19"
    assert e.value.hint == f"images of 6.1: 6.1.7-1, 6.1.192-1; {row}"


def test_a_torn_report_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(gzip.compress(b"no archive at all")[:-4])
    with pytest.raises(RunError, match="report is incomplete"):
        guest.received(tmp_path / "raw")


def test_repeatable_guests_may_be_several(here: Path) -> None:
    arm = VmArm(Engine(fake_engine))
    arm.prepare(scenario(made_up.variant("a")))
    assert arm.threads(None, 2) == 2
    assert accelerator.words(COUNTED) == "TCG -icount"
    arm.prepare(scenario(made_up.variant("a"), repeatable=False))
    assert arm.threads(None, 2) == 1
    with pytest.raises(ArmError, match="one at a time"):
        arm.threads(2, 2)
    assert "by TCG" in arm.remarks()[-1]
    assert accelerator.words(EMULATED) == "TCG"


ARRANGED = [
    # groups, CPUs, QEMU's words
    (ONE, 1, None),
    (FOUR, 4, "sockets=1,dies=1,cores=2,threads=2"),
    ({**FOUR, "llcs": ["0-1", "2-3"]}, 4, "sockets=1,dies=2,cores=1,threads=2"),
    ({**FOUR, "sockets": ["0-1", "2-3"], "llcs": ["0-1", "2-3"]}, 4, "sockets=2,dies=1,cores=1,threads=2"),
]


@pytest.mark.parametrize(("groups", "count", "words"), ARRANGED)
def test_cpus_are_arranged_as_declared(groups: Any, count: int, words: str | None) -> None:
    assert topology.smp(groups, count) == (words, ())


def test_nodes_share_the_cpus() -> None:
    groups = {**FOUR, "sockets": ["0-1", "2-3"], "llcs": ["0-1", "2-3"], "nodes": ["0-1", "2-3"]}
    assert topology.smp(groups, 4, 1001)[1] == (
        *("-object", "memory-backend-ram,id=m0,size=501M", "-numa", "node,nodeid=0,memdev=m0,cpus=0-1"),
        *("-object", "memory-backend-ram,id=m1,size=500M", "-numa", "node,nodeid=1,memdev=m1,cpus=2-3"),
    )


def test_what_is_no_regular_machine_is_refused() -> None:
    with pytest.raises(ArmError, match="parts differ in size"):
        topology.smp({**FOUR, "cores": ["0-1", "2", "3"]}, 4)


Cli = Callable[..., tuple[int, str, str]]


def test_the_commands_say_where_a_run_was(here: Path, schedlab: Cli) -> None:
    described = {
        "variants": [made_up.variant("old"), made_up.variant("new", "6.12.107")],
        "machine": {"name": "m", "summary": "", "cpus": 1, "calibrated": False, "topology": ONE},
        "arms": {"vm": {**USUAL, "repeatable": True}},
    }
    import json

    (here / "toy.toml").write_text(json.dumps(described))
    (here / "work.toml").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest, "scenario_files", lambda path: iter([(path.name, path)]))
        code, out, err = schedlab("compare", "toy.toml", "--arm", "vm", "--seeds", "6", "--jobs", "2")
        assert (code, err.count("boots")) == (0, 2)
        assert out.startswith("toy: measured in QEMU on TCG -icount, 1 CPU, 6 seeds; old = 6.1, new = 6.12.107\n")
        code, out, err = schedlab("run", "toy.toml", "--arm", "vm", "--variant", "new")
        assert "6.12.107 boots linux-image-6.12.107-cloud-amd64" in err
    assert code == 0
    assert "measured in QEMU on TCG -icount, 1 CPU; new = 6.1, seed 1" in out
