"""Sweep files: what they may say, the points that they make, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.errors import InputError
from schedlab.sweeping import definition
from schedlab.sweeping.axes import Axis, Span, latin_hypercube, level_of
from schedlab.sweeping.definition import Sweep

HEAD = 'scenario = "s.toml"\n'


def read(tmp_path: Path, text: str, **how: Any) -> Sweep:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    return definition.read(file, lambda _path, sets: 8 if sets.get("machine") == "laptop-8" else 224, **how)


AXES = [
    # what the axis says, its labels, what the first level sets
    ('key = "knobs.base_slice_ns"\nvalues = ["0.5ms", "3ms"]', ["0.5ms", "3ms"], {"knobs.base_slice_ns": "0.5ms"}),
    ('key = "workload.a.pipe"\nvalues = [false, true]', ["false", "true"], {"workload.a.pipe": False}),
    ('key = "w.groups"\npercent-of-cpus = [25, 50]\ntasks = 14', ["25%", "50%"], {"w.groups": 4}),
    ('key = "k"\nfrom = 1\nto = 9\nsteps = 3', ["1", "5", "9"], {"k": 1}),
    ('key = "k"\nfrom = "1ms"\nto = "16ms"\nsteps = 3\nscale = "log"', ["1ms", "4ms", "16ms"], {"k": "1ms"}),
    ('key = "k"\nfrom = "500us"\nto = "2ms"\nsteps = 2', ["0.5ms", "2ms"], {"k": "0.5ms"}),
    (
        'name = "n"\n[[axis.level]]\nlabel = "a"\nset = { "x.y" = 1, z = true }\n[[axis.level]]\nlabel = "b"',
        ["a", "b"],
        {"x.y": 1, "z": True},
    ),
    ('name = "n"\n[[axis.level]]\nlabel = "a"\nset.x.y = 1', ["a"], {"x.y": 1}),
]


@pytest.mark.parametrize(("axis", "labels", "sets"), AXES)
def test_axes(tmp_path: Path, axis: str, labels: list[str], sets: dict[str, Any]) -> None:
    found = read(tmp_path, f"{HEAD}[[axis]]\n{axis}\n")
    assert [level.label for level in found.axes[0].levels] == labels
    assert found.axes[0].levels[0].sets == sets


def test_a_full_grid_has_every_combination(tmp_path: Path) -> None:
    text = HEAD + '[[axis]]\nkey = "a"\nvalues = [1, 2]\n[[axis]]\nkey = "b"\nvalues = ["x", "y", "z"]\n'
    points = read(tmp_path, text).points
    assert [point.label for point in points] == ["1, x", "1, y", "1, z", "2, x", "2, y", "2, z"]
    assert [point.index for point in points] == list(range(6))
    short = read(tmp_path, text + "[short]\nlevels = 2\nseeds = 1\nset.duration = '5ms'\n", short=True)
    assert [point.label for point in short.points] == ["1, x", "1, z", "2, x", "2, z"]
    assert (short.seeds, short.sets) == (1, {"duration": "5ms"})


def test_loads_follow_the_machine_that_is_set(tmp_path: Path) -> None:
    text = HEAD + 'set.machine = "laptop-8"\n[[axis]]\nkey = "groups"\npercent-of-cpus = [100]\ntasks = 4\n'
    assert read(tmp_path, text).points[0].sets == {"groups": 2}


@settings(max_examples=30)
@given(st.integers(2, 20), st.integers(0, 2**32), st.booleans())
def test_a_latin_hypercube_has_one_point_in_each_part_of_each_axis(points: int, seed: int, log: bool) -> None:
    span = Span("a", 1000, 100_000, "ns", log, whole=False)
    axes = [Axis("a", (), span), Axis("b", tuple(level_of("b", i) for i in range(points)))]
    found = latin_hypercube(axes, points, seed)
    assert found == latin_hypercube(axes, points, seed)
    assert sorted(point.levels[1].number for point in found) == list(range(points))
    drawn = sorted(point.levels[0].number for point in found)
    ratio = span.high / span.low
    ends = [span.low * ratio ** (i / points) if log else span.low + i * (span.high - span.low) / points
            for i in range(points + 1)]  # fmt: skip
    for number, low, high in zip(drawn, ends, ends[1:], strict=False):
        assert low * 0.99 <= number <= high * 1.01, "rounded to three digits"


REFUSED = [
    # the file, what the message says, the line
    ("", "`scenario` is missing", None),
    ('scenario = "s"', "there is no axis", None),
    ('scenario = "s"\nseeds = 0\n[[axis]]\nkey="a"\nvalues=[1]', "0 is not valid here", 2),
    ('scenario = "s"\nsede = 0\n[[axis]]\nkey="a"\nvalues=[1]', "unknown key `sede`", 2),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalue=[1]', "unknown key `axis.value`", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[]', "expected at least one value", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[[1]]', "[1] is not a value", 4),
    ('scenario = "s"\n[[axis]]\nvalues=[1]', "`key` is missing", None),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[1]\nfrom=1\nto=2', "an axis with values and from", 5),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[1]\nsteps=3', "`steps` does not go with `values`", 5),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[1, 1]', "two levels are called 1", 2),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[1]\n[[axis]]\nname="b"\nkey="a"\nvalues=[2]', "two axes set a", None),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=2\nto=1\nsteps=2', "is empty or not positive", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom="1ms"\nto=3\nsteps=2', "are not a range", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=1\nto=2', "a full grid needs a number of steps", None),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=0\nto=2\nscale="log"\nsteps=2', "is empty or not positive", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=1\nto=2\nscale="cubic"\nsteps=2', "expected linear or log", 6),
    ('scenario = "s"\ndesign="random"\n[[axis]]\nkey="a"\nvalues=[1]', "expected full or latin-hypercube", 2),
    ('scenario = "s"\npoints=3\n[[axis]]\nkey="a"\nvalues=[1]', "`points` belongs to a Latin hypercube", 2),
    ('scenario = "s"\ndesign="latin-hypercube"\n[[axis]]\nkey="a"\nvalues=[1]', "nothing is not valid", None),
    ('scenario = "s"\n[[axis]]\nkey="g"\npercent-of-cpus=[30]\ntasks=40', "for example 17.86 or 35.71", 4),
    ('scenario = "s"\n[[axis]]\nkey="g"\npercent-of-cpus=[true]', "True is not a load", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nvalues=[1', "not valid TOML", None),
    ('scenario = "s"\n' + "".join(f'[[axis]]\nkey="{k}"\nvalues=[{",".join(map(str, range(400)))}]\n' for k in "ab"),
     "make 160,000 points", 2),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=1\nto=2.5\nsteps=1000000000', "a whole number from 2 to 100,000", 6),
    ('scenario = "s"\ndesign="latin-hypercube"\npoints=100000000\n[[axis]]\nkey="a"\nfrom=1\nto=2.5',
     "a whole number from 2 to 100,000", 3),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=1\nto=inf\nsteps=3', "expected a range of finite numbers", 4),
    ('scenario = "s"\n[[axis]]\nkey="a"\nfrom=nan\nto=2\nsteps=3', "expected a range of finite numbers", 4),
    ('scenario = "s"\n[[axis]]\nname="a"\nlevel=[]', "there is no level", 4),
    ('scenario = "s"\nset.a.b=1\n[[axis]]\nkey="a.b"\nvalues=[1]', "a.b is the same at every point", None),
    ('scenario = "s"\nset.a=1\ndesign="latin-hypercube"\npoints=2\n[[axis]]\nkey="a"\nfrom=1\nto=2.5',
     "a is the same at every point", None),
]  # fmt: skip


def test_a_scenario_in_the_place_of_a_sweep_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, 'machine = "laptop-8"\n[[workload]]\nuse = "hog"\n')
    assert "a sweep is a file of its own" in (caught.value.hint or "")


@pytest.mark.parametrize(("text", "message", "line"), REFUSED)
def test_what_is_refused(tmp_path: Path, text: str, message: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert message in caught.value.message
    assert caught.value.file == str(tmp_path / "sweep.toml")
    if line is not None:
        assert caught.value.line == line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the sweep: No such file"):
        definition.read(tmp_path / "none.toml", lambda *_: 1)
