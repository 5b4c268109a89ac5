"""Modules of a crate do not depend on each other in circles."""

from __future__ import annotations

import pytest
from circles import Crate
from conftest import ROOT

CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))

KNOTS = {
    # a configuration has the registry of its parts, and every part is made from a configuration:
    # the types name each other
    "device": [
        "crate: blame, config, interface, layer, params, registry, ssd, stack",
        "crate::ssd: state, worn_out",
    ],
    # the parts of a flash model name the settings that choose them, and the settings name the parts
    "ftl": ["crate::schemes::page: lower_pages, refresh, settings"],
    "nand": ["crate: counters, errors, flash, medium, params, rules"],
}
"""Circles that are there, by crate. The list only gets shorter."""


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_modules_do_not_depend_on_each_other_in_circles(crate):
    assert Crate.read(crate / "src").circles() == KNOTS.get(crate.name, [])


PLANTED = {
    "a path in the code": ("fn a() { crate::b::b() }", "use super::a;"),
    "a use": ("use crate::b::B;", "use crate::a::{self, A};"),
    "a use of several": ("use crate::{c::C, b::{B, D as E}};", "fn b(a: crate::a::A) {}"),
    "a name that the root re-exports": ("use crate::B;", "use super::A;"),
}


@pytest.mark.parametrize("how", PLANTED)
def test_a_planted_circle_is_found(how):
    a, b = PLANTED[how]
    sources = {
        (): "mod a; mod b; mod c; pub use a::A; pub use b::{B, D};",
        ("a",): f"{a} pub struct A;",
        ("b",): f"{b} pub struct B;",
        ("c",): "use crate::a::A; pub struct C;" if "c::C" not in a else "pub struct C;",
    }
    assert Crate(sources).circles() == ["crate: a, b"]


def test_a_circle_of_three_deep_in_a_folder_is_found():
    sources = {
        (): "mod a;",
        ("a",): "mod x; mod y; mod z; pub use x::X;",
        ("a", "x"): "use super::y::Y; pub struct X;",
        ("a", "y"): "use crate::a::z; pub struct Y;",
        ("a", "z"): "use super::X;",
    }
    assert Crate(sources).circles() == ["crate::a: x, y, z"]


def test_parents_tests_comments_and_texts_make_no_circle():
    sources = {
        (): "mod a; mod b; pub struct Root;",
        ("a",): "mod own; use own::Own; use crate::Root; use crate::b::B; pub struct A;",
        ("a", "own"): "use super::A; pub struct Own;",
        ("b",): """
            // use crate::a::A;
            /// [`crate::a::A`]
            pub struct B;
            const TEXT: &str = "crate::a::A";
            #[cfg(test)]
            mod tests {
                use crate::a::A;
            }
        """,
    }
    assert Crate(sources).circles() == []
