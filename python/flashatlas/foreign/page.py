"""The page ``docs/IMPORTERS.md``: every key of every importer with its class.

``python -m flashatlas.foreign.page`` prints it.
"""

from __future__ import annotations

from flashatlas.foreign import conzone, femu, mqsim, mqsim_flows, nvmevirt, simplessd
from flashatlas.foreign.keys import rows

HEAD = """\
# Keys of other simulators

This page lists every key of a drive or a workload that another program describes, and its
treatment ([how to name a description](howto/describe-a-drive.md#from-another-simulator)).
`python -m flashatlas.foreign.page` makes this page from the importers' own tables
(`python/flashatlas/foreign/`), and a test compares them.

| Class | |
|---|---|
| used | it sets the keys of FlashAtlas that the row names |
| refused | an error names the key, and what to do instead |
| left out, with a note | it has an effect there and no counterpart here: a note before the run \
names it, and so does the drive's `summary` in every record |
| without influence | it changes no measured number, there or here |

After "unless" stand values that are accepted without a note, because FlashAtlas does the same. An
unknown key is an error that names the most similar key.
"""

SECTIONS = (
    (
        "ConZone: macros of the model `CONZONE_PROTOTYPE`, DingcuiYu/ConZone at commit 9983bca",
        conzone.KEYS,
    ),
    ("FEMU: properties of the device, MoatLab/FEMU at commit 99ce4fb", femu.KEYS),
    ("MQSim: `ssdconfig.xml`, CMU-SAFARI/MQSim at commit 7ec40e3", mqsim.KEYS),
    ("MQSim: a synthetic flow of `workload.xml`", mqsim_flows.KEYS),
    ("MQSim: a flow of `workload.xml` that plays a trace", mqsim_flows.TRACE_KEYS),
    ("NVMeVirt: macros of a conventional model, snu-csl/nvmevirt at commit 61c90f7", nvmevirt.KEYS),
    (
        "SimpleSSD: sections and options of a drive, SimpleSSD/SimpleSSD at commit 2be3716",
        simplessd.KEYS,
    ),
)


def page() -> str:
    """Return the whole page, in Markdown."""
    parts = [f"## {title}\n\n{rows(keys.values())}\n" for title, keys in SECTIONS]
    return "\n".join([HEAD, *parts])


if __name__ == "__main__":
    print(page(), end="")
