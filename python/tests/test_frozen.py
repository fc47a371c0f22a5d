"""Frozen classes behave as frozen dataclasses do, and a short run needs neither `dataclasses` nor `inspect`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from schedlab.frozen import Frozen, hidden, made


class Ours(Frozen):
    name: str
    size: int = 3
    parts: Mapping[str, int] = made(default_factory=dict)
    origin: Any = hidden(default=None)


@dataclasses.dataclass(frozen=True)
class Theirs:
    name: str
    size: int = 3
    parts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    origin: Any = dataclasses.field(default=None, repr=False, compare=False)


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 4), {"origin": 7}),
    ((), {"parts": {"x": 1}, "name": "b", "size": 5}),
    (("a", 4, {}, None), {}),
    ((), {}),
    (("a",), {"name": "b"}),
    (("a",), {"shape": 1}),
    (("a", 1, {}, None, 2), {}),
]


def outcome(kind: type, values: tuple[Any, ...], named: dict[str, Any]) -> object:
    try:
        one = kind(*values, **named)
    except TypeError:
        return TypeError
    return repr(one).replace(kind.__name__, ""), dataclasses.asdict(one), one == kind(*values, **named)


@pytest.mark.parametrize(("values", "named"), GIVEN)
def test_made_as_a_dataclass_is(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert outcome(Ours, values, named) == outcome(Theirs, values, named)


def test_what_differs_is_unequal_and_what_is_hidden_does_not_count() -> None:
    assert Ours("a") != Ours("b")
    assert Ours("a") != Theirs("a")
    assert Ours("a", origin=1) == Ours("a", origin=2)
    assert Ours("a", 1).parts is not Ours("a", 1).parts


def test_functions_of_dataclasses_accept_it() -> None:
    one = Ours("a", 1, {"x": 2}, "here")
    other = dataclasses.replace(one, size=9)
    assert (other.name, other.size, other.parts, other.origin) == ("a", 9, {"x": 2}, "here")
    assert [field.name for field in dataclasses.fields(Ours)] == ["name", "size", "parts", "origin"]
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_it_cannot_be_changed() -> None:
    one = Ours("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.size = 4  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.size


def test_a_run_imports_neither_dataclasses_nor_inspect() -> None:
    modules = "schedlab.cli, schedlab.cli.run, schedlab.cli.console"
    code = f"import sys, {modules}, schedlab.cli.parser; schedlab.cli.parser.build_parser('run'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"dataclasses", "inspect", "shutil", "datetime"} & set(done.stdout.split())
