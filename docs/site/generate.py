"""The reference pages, from the registries: settings, parts, the command line, the record."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from flashatlas.cli.commands import ENTRIES
from flashatlas.cli.root import app, load
from flashatlas.files import write_whole
from flashatlas.names import registries

PARTS = {
    "schemes": "Mapping schemes (`ftl.scheme`)",
    "maps": "Map stores (`map.store`)",
    "victims": "Victim policies (`ftl.victim`)",
    "classifiers": "Classifiers of streams (`ftl.classifier`)",
    "caching": "Policies of the map's cache (`map.policy`)",
    "layers": "Host layers (`layers`)",
    "hashes": "Hash functions (`lookup.hash`)",
    "policies": "Orders of banks (`lookup.policy`)",
}
"""Registries of parts that have their own parameters, with their headings."""


def reference(folder: Path) -> None:
    """Write every page of the reference."""
    folder.mkdir(exist_ok=True)
    known = registries()
    pages = {
        "settings": settings(known),
        "parts": parts(known),
        "workloads": workloads(known),
        "drives": drives(known),
        "command-line": command_line(),
        "options": options(known),
        "record": record(),
        "python": PYTHON,
    }
    for name, text in pages.items():
        write_whole(folder / f"{name}.md", text)


def cell(text: object) -> str:
    """Return text for a cell of a table."""
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def table(head: list[str], rows: list[list[object]]) -> str:
    """Return a table of Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n\n"


def default(of: dict[str, Any]) -> str:
    """Return the default of a parameter or an option; empty if it has none."""
    return "" if of["default"] in (None, "") else f"`{of['default']}`"


def parameters(params: list[dict[str, Any]]) -> str:
    """Return parameters as a table."""
    rows: list[list[object]] = [[f"`{p['key']}`", p["range"], default(p), p["doc"]] for p in params]
    return table(["key", "range", "default", "meaning"], rows)


def settings(known: dict[str, Any]) -> str:
    """Return every key that every drive has."""
    text = (
        "# Settings of a drive\n\nThese are the keys that `--set`, `--vary`, a drive file and "
        "`set=` take. `flashatlas explain KEY` prints the same, with each preset's value and its "
        "source. Keys of schemes, map stores, policies and layers are in [their "
        "reference](parts.md).\n\n"
    )
    sections: dict[str, list[dict[str, Any]]] = {}
    for param in known["params"]:
        sections.setdefault(param["key"].partition(".")[0], []).append(param)
    for name, params in sections.items():
        text += f"## `{name}`\n\n{parameters(params)}"
    return text


def parts(known: dict[str, Any]) -> str:
    """Return every scheme, store, policy and layer, with its parameters and mechanisms."""
    text = "# Schemes, map stores, policies, layers\n\n"
    for registry, heading in PARTS.items():
        text += f"## {heading}\n\n"
        for part in known[registry]:
            text += f"### `{part['name']}`\n\n{cell(part['summary'])}.\n\n"
            if part.get("paper", "-") not in ("", "-"):
                text += f"Source: {cell(part['paper'])}\n\n"
            if part["params"]:
                text += parameters(part["params"])
            if part.get("mechanisms"):
                names = ", ".join(cell(m["name"]) for m in part["mechanisms"])
                text += f"Mechanisms that a run counts: {names}.\n\n"
    return text


def workloads(known: dict[str, Any]) -> str:
    """Return the generators and the trace formats."""
    text = "# Workloads and trace formats\n\n## Generators\n\n"
    for generator in known["generators"]:
        text += f"### `{generator['name']}`\n\n{cell(generator['summary'])}.\n\n"
        text += parameters(generator["params"])
    text += "## Trace formats\n\n"
    for form in known["formats"]:
        text += f"### `{form['name']}`\n\n{cell(form['summary'])}. {cell(form['quirks'])}\n\n"
        text += f"Source: {cell(form['source'])} Terms: {cell(form['licence'])}\n\n"
        if form["params"]:
            text += parameters(form["params"])
    return text


def drives(known: dict[str, Any]) -> str:
    """Return the presets as they are written, with their sources."""
    text = "# Presets of drives\n\n"
    for drive in known["drives"]:
        text += f"## `{drive['name']}`\n\n{cell(drive['summary'])}.\n\n"
        text += f"```toml\n{drive['toml'].strip()}\n```\n\n"
    return text


def options(known: dict[str, Any]) -> str:
    """Return the options of a run, as Python takes them."""
    text = (
        "# Options of a run\n\nThese are the arguments of [`flashatlas.run`](python.md) and of a "
        "case of `compare`; `device_map` is `--device-map` on the command line.\n\n"
    )
    titles = dict.fromkeys(option["title"] for option in known["options"])
    for title in titles:
        rows: list[list[object]] = [
            [
                f"`{o['name']}`",
                o["kind"],
                default(o),
                o["doc"],
            ]
            for o in known["options"]
            if o["title"] == title
        ]
        text += f"## {title}\n\n" + table(["option", "kind", "default", "meaning"], rows)
    return text


def record() -> str:
    """Return the run record, from its JSON Schema."""
    schema = json.loads((files("flashatlas") / "record.schema.json").read_text(encoding="utf-8"))
    text = (
        "# The run record\n\n" + schema["description"] + "\n\nThe "
        "[formats](../FORMATS.md#the-run-record) explain each key; these are the types from "
        "`flashatlas/record.schema.json`.\n\n"
    )
    rows: list[list[object]] = []
    leaves("", schema, schema.get("required", []), rows)
    return text + table(["key", "type", "always"], rows)


def leaves(
    prefix: str, node: dict[str, Any], required: list[str], rows: list[list[object]]
) -> None:
    """Append the keys below an object of a schema to ``rows``."""
    for name, below in node.get("properties", {}).items():
        kind = below.get("type", "any")
        kind = " or ".join(kind) if isinstance(kind, list) else kind
        rows.append([f"`{prefix}{name}`", kind, "yes" if name in required else ""])
        leaves(f"{prefix}{name}.", below, below.get("required", []), rows)


def command_line() -> str:
    """Return every command with its options, from the program itself."""
    text = f"# Command line\n\n{plain(app.info.help or '')}\n\n"
    for heading in dict.fromkeys(entry.heading for entry in ENTRIES):
        below = [entry.name for entry in ENTRIES if entry.heading == heading]
        text += f"## {heading}\n\n"
        text += "".join(command(f"flashatlas {name}", load(name)) for name in below)
    return text


def command(name: str, of: Any) -> str:
    """Return the page of a command, or of a group of commands."""
    if hasattr(of, "commands"):
        inner = "".join(command(f"{name} {sub}", of.commands[sub]) for sub in of.commands)
        return f"### {name}\n\n{plain(of.help or '')}\n\n{inner}"
    text = f"### {name}\n\n{plain(of.help or '')}\n\n"
    rows: list[list[object]] = []
    for param in of.params:
        if getattr(param, "hidden", False):
            continue
        if param.param_type_name == "argument":
            names = param.metavar or (param.name or "").upper()
        else:
            names = ", ".join(f"`{opt}`" for opt in [*param.opts, *param.secondary_opts])
        rows.append([names, param.metavar or "", plain(param.help or "")])
    return text + (table(["option", "value", "meaning"], rows) if rows else "")


def plain(text: str) -> str:
    """Return help text as Markdown, without its signs for paragraphs."""
    return re.sub(r"\x08|\f", "", text).strip()


PYTHON = """# Python

```{eval-rst}
.. automodule:: flashatlas
   :members: run, compare, save_checkpoint, lookup, rerun, bundle, frame, figure, significance,
      specification, registries
   :imported-members:

.. autoclass:: flashatlas.Result
   :members:

.. autoclass:: flashatlas.Trace
   :members:

.. autoclass:: flashatlas.Drive
   :members:

.. autoclass:: flashatlas.Job
   :members:

.. autoclass:: flashatlas.Frame
   :members:

.. autoexception:: flashatlas.FlashAtlasError
.. autoexception:: flashatlas.InputError
.. autoexception:: flashatlas.DriveError
.. autoexception:: flashatlas.InternalError
```
"""


def links_to_pages(text: str, page: Path, root: Path) -> str:
    """Return a page whose links lead to pages only; other targets become names of files."""

    def plain_name(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        path = target.partition("#")[0]
        if "://" in target or not path or path.endswith((".svg", ".png")):
            return match[0]
        there = (page.parent / path).resolve()
        if there.suffix == ".md" and there.exists():
            return match[0]
        if there.is_dir() and (there / "README.md").exists():
            return f"[{label}]({path.rstrip('/')}/README.md)"
        if not there.exists():
            return match[0]  # broken: the build says so
        return f"{label} (`{there.relative_to(root)}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", plain_name, text)
