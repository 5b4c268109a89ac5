"""Does the victim policy matter when the map is paged? Write a figure, a table and a sentence.

Run this program in the folder for the figure and the table. Its traces come with the package.
"""

import itertools
from pathlib import Path

import flashatlas
from flashatlas.fetch import fetch

demo = flashatlas.Trace(fetch("demo", Path()))
demo.convert("first.fatr", count=10_000)
demo.convert("second.fatr", skip=10_000)

axes = itertools.product(
    ("greedy", "fifo", "d-choices"),
    ("8KiB", "32KiB", "128KiB"),
    ("first.fatr", "second.fatr"),
    (1, 2, 3),
)
results = flashatlas.compare(
    (
        {"set": {"ftl.victim": victim, "map.cache_bytes": cache}, "trace": trace, "seed": seed}
        for victim, cache, trace, seed in axes
    ),
    drive="tlc-small",
    set={"drive.channels": 1, "drive.ways": 1, "drive.logical_pages": 90_112, "map.store": "dftl"},
    fit="compact",
    precondition="steady",
    until="steady",
    mode="untimed",
)
flashatlas.figure(
    results, "study.pdf", x="map.cache_bytes", y="waf", by="ftl.victim", panel="trace"
)
flashatlas.frame(results).to_pandas().to_csv("study.csv", index=False)
print(*flashatlas.significance(results, "waf", "ftl.victim"), sep="\n")
