"""No file of a crate imports one that imports it, and no folder one that imports it.

An import of a name that a `mod.rs` exports for one of its files is an import of that file, and so is a path in the code
that begins with `crate::`. A file may import from the module that it is part of. Tests inside files are left out: they
may import what imports them.
"""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CRATES = sorted(path.parent for path in (Path(__file__).parents[2] / "crates").glob("*/Cargo.toml"))
USE = re.compile(r"^(pub(?:\([a-z]+\))? )?use ([^;]+);", re.MULTILINE)
NO_CODE = re.compile(r"//.*|^\s*(?:pub(?:\([a-z]+\))? )?use [^;]+;", re.MULTILINE)
INLINE = re.compile(r"\bcrate(?:::\w+)+")
Module = tuple[str, ...]


def modules(crate: Path) -> dict[Module, str]:
    """The text of each module outside its tests, by the module's path."""
    source = crate / "src"
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        name = () if parts in (("lib",), ("main",)) else parts[:-1] if parts[-1] == "mod" else parts
        found[name] = re.split(r"^#\[cfg\(test\)\]$", file.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[
            0
        ]
    return found


def leaves(tree: str) -> Iterator[str]:
    """The paths of a use tree: `a::{b, c::d as e}` is `a::b` and `a::c::d`."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        yield tree.split(" as ")[0].strip()
        return
    depth, start = 0, brace + 1
    for at in range(brace, len(tree)):
        if tree[at] in ",}" and depth == 1:
            part = tree[start:at].strip()
            if part:
                yield from (tree[:brace] + leaf for leaf in leaves(part))
            start = at + 1
        depth += {"{": 1, "}": -1}.get(tree[at], 0)


def absolute(path: str, module: Module, known: dict[Module, str]) -> Module | None:
    """A path from the root of the crate; None: it is another crate's."""
    words = path.split("::")
    if words[0] == "crate":
        return tuple(words[1:])
    if words[0] == "super":
        ups = next(at for at, word in enumerate([*words, ""]) if word != "super")
        return (*module[: len(module) - ups], *words[ups:])
    if words[0] == "self":
        return (*module, *words[1:])
    return (*module, *words) if (*module, words[0]) in known else None


def inline(text: str) -> list[str]:
    """The paths in the code that begin with `crate::`."""
    return INLINE.findall(NO_CODE.sub("", text))


def resolve(path: Module, known: dict[Module, str], exports: dict[Module, dict[str, Module]]) -> Module | None:
    """The module that defines what a path names."""
    for length in range(len(path), -1, -1):
        module = path[:length]
        if module in known:
            name = path[length] if length < len(path) else "self"
            target = exports[module].get(name)
            return resolve(target, known, exports) if target else module
    return None


def graph(crate: Path) -> dict[Module, set[Module]]:
    known = modules(crate)
    imports = {
        module: [(bool(use[1]), path) for use in USE.finditer(text) for leaf in leaves(use[2])
                 if (path := absolute(leaf, module, known)) is not None]
        for module, text in known.items()
    }  # fmt: skip
    exports = {
        module: {path[-1]: path for public, path in found if public and path[: len(module)] == module}
        for module, found in imports.items()
    }
    edges = {}
    for module, found in imports.items():
        paths = {path for _, path in found if path not in exports[module].values()}
        paths |= {path for found_path in inline(known[module]) if (path := absolute(found_path, module, known))}
        targets = {resolve(path, known, exports) for path in paths}
        above = {module[:length] for length in range(len(module) + 1)}
        edges[module] = {target for target in targets if target is not None} - above
    return edges


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_imports_have_no_circle(crate: Path) -> None:
    graphlib.TopologicalSorter(graph(crate)).prepare()  # raises CycleError, which names the circle


def between_folders(edges: dict[Module, set[Module]]) -> dict[Module, set[Module]]:
    """The imports between the modules of each folder, whichever of their files makes them."""
    found: dict[Module, set[Module]] = {}
    for module, targets in edges.items():
        for target in targets:
            pairs = zip(module, target, strict=False)
            common = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(module), len(target)))
            if common < len(module) and common < len(target):
                found.setdefault(module[: common + 1], set()).add(target[: common + 1])
    return found


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_imports_between_folders_have_no_circle(crate: Path) -> None:
    graphlib.TopologicalSorter(between_folders(graph(crate))).prepare()


def test_two_folders_that_import_each_other_are_found() -> None:
    a, b, c, d = ("x", "a"), ("y", "b"), ("y", "c"), ("x", "d")
    assert between_folders({a: {b}, c: {d}, d: {a}}) == {("x",): {("y",)}, ("y",): {("x",)}, d: {a}}


def test_what_a_module_exports_is_found_where_it_is_defined() -> None:
    edges = graph(Path(__file__).parents[2] / "crates" / "schedlab-sim")
    assert ("kernel", "state") in edges["kernel", "wake"]
    assert ("machine", "state") in edges["kernel", "wake"], "crate::machine::Machine"
    assert ("kernel", "state") in edges["programs", "running"]


def test_paths_in_the_code() -> None:
    text = "use crate::a::{\n    B,\n};\n/// crate::c::D\nfn f(a: crate::e::F, b: crate::g::H) {} // crate::i::J\n"
    assert inline(text) == ["crate::e::F", "crate::g::H"]


def test_use_trees() -> None:
    assert list(leaves("a::{b, c::{d, e as f}, self}")) == ["a::b", "a::c::d", "a::c::e", "a::self"]


def test_every_file_of_a_joint_test_binary_is_a_module_of_it() -> None:
    joint = {crate: text for crate in CRATES if "autotests = false" in (text := (crate / "Cargo.toml").read_text())}
    assert {crate.name for crate in joint} == {"schedlab-lab", "schedlab-sim"}
    for crate, manifest in joint.items():
        roots = {crate / path for path in re.findall(r'^path = "(tests/.+)"$', manifest, re.M)}
        modules = {module for root in roots for module in re.findall(r"^mod (\w+);$", root.read_text(), re.M)}
        files = {path.stem for path in {*crate.glob("tests/*.rs")} - roots}
        assert files <= modules, f"{crate.name}: no test binary has {sorted(files - modules)}"
