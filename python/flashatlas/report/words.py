"""What the report calls things: causes, percentiles, terms."""

CAUSES = {
    "host": ("host", "#4477aa"),
    "cache_evict": ("write cache", "#66ccee"),
    "rmw": ("partial units", "#228833"),
    "gc": ("collection", "#ee6677"),
    "map": ("map", "#aa3377"),
    "merge": ("merges", "#cc6611"),
    "idle": ("collection in idle time", "#ccbb44"),
    "wear": ("wear levelling", "#888888"),
    "recovery": ("recovery", "#333333"),
}
"""For each cause of flash operations its name and colour. Colours are told apart with the usual kinds of colour
blindness (P. Tol, "Colour Schemes", SRON/EPS/TN/09-002, the scheme "bright")."""

BACKGROUND = ("gc", "idle", "merge", "wear", "map")
"""Causes that are not the host's own writes."""

RUN_COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#888888",
    "#cc6611",
    "#117777",
    "#882255",
)
RUN_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 4], [1, 3], [6, 2, 2, 2, 2, 2], [3, 1], [12, 3])

PERCENTILES = (
    ("p50", "50 %"),
    ("p90", "90 %"),
    ("p99", "99 %"),
    ("p99_9", "99.9 %"),
    ("p99_99", "99.99 %"),
    ("max", "max"),
)

OPERATIONS = ("read", "write", "flush", "trim")

ROLES = {
    "free": "#d9dde3",
    "open": "#66ccee",
    "closed": "#4477aa",
    "leaving": "#ee6677",
    "bad": "#222222",
    "data": "#4477aa",
    "log": "#ccbb44",
    "map": "#aa3377",
}

GLOSSARY = (
    ("write amplification", "bytes programmed to flash over bytes that the host wrote; 1 would be every byte once"),
    ("collection", "making room: what is valid in a block is copied elsewhere, then the block is erased"),
    ("mapping unit", "what the map moves as one: a part of a page, a page, or several pages over several dies"),
    ("slot", "the place of one mapping unit on flash"),
    ("frame", "what one program operation writes: the same page of every plane, die and channel under it"),
    ("block", "what one erase operation erases, as the FTL sees it: the same block of everything under a frame"),
    ("lane", "blocks that share their dies; each lane is written and collected by itself"),
    ("valid", "holding the newest version of a logical page"),
    ("percentile", "99 %: one request in a hundred took longer"),
    ("cause", "why flash was read or programmed: for the host, from the write cache, for collection …"),
    ("unit checked", "a mapping unit whose content was compared with what was last written to it"),
)
