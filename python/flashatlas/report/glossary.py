"""The terms of reports and ``explain``, as ``docs/DESIGN.md`` and ``docs/FORMATS.md`` mean them."""

from __future__ import annotations

from flashatlas.report.html import text

TERMS = {
    "area": "A part of the log that takes pages of one kind, such as hot ones; it has a budget of "
    "log blocks.",
    "associated data blocks": "The logical blocks that have a valid page in a log block. All of "
    "them must be merged before it can be erased.",
    "block": "What is erased at once. The translation layer's block covers all dies and planes of "
    "its lane.",
    "cell": "What a bit is kept in; it holds one bit (SLC), two (MLC) or three (TLC).",
    "channel": "The bus that some dies share; one transfers at a time.",
    "closed block": "Every frame of it is programmed. It can be collected.",
    "collection": "Copying what is still valid out of a block and erasing it (garbage collection). "
    "In the foreground it happens because a write needs room; in idle time because "
    "nothing else is to do.",
    "data block": "Holds a logical block, each page at its offset.",
    "dead": "A log block in which nothing is valid any more: it is erased without a merge.",
    "die": "The part of a chip that senses, programs or erases on its own.",
    "dirty": "In the write cache, and not yet on flash.",
    "FLUSH": "The host's command to bring everything written before to flash.",
    "foreground collection": "See collection.",
    "frame": "What one program of the translation layer writes: one page, the same page of several "
    "planes, or pages on several dies. It has 1 to 64 slots.",
    "FUA": "Force unit access: a write that is done only when it is on flash.",
    "in flight": "Submitted to the drive and not completed.",
    "IOPS": "Requests completed in a second of simulated time.",
    "lane": "The dies and planes that one frame covers. Lanes work in parallel, each with its own "
    "free blocks.",
    "latency": "Time from the arrival of a request to its completion: waiting in the host's queue "
    "and the time in the drive.",
    "leaving block": "Collected, but its last copies wait to be programmed; then it is erased.",
    "log block": "Takes updates of pages whose place in their data block is used, until they are "
    "merged.",
    "mapping unit": "What one entry of the map stands for, mostly 4 KiB.",
    "merge": "Bringing a data block up to date. Switch: a log block holds all of it in order and "
    "takes its place. Partial: it holds some pages at their offsets, and the others are "
    "copied in. Full: everything is copied to a new block.",
    "miss": "A lookup for which the entry of the map was not in memory.",
    "moved": "A log block that gave its valid pages to other log blocks, and was erased.",
    "numbers are steady": "They would stay as they are if the measured part were longer. Under the "
    "table of a run stands what speaks against it, and what to do.",
    "open block": "It is being filled.",
    "oracle": "The check of every read: what comes back is compared with what was last written "
    "there.",
    "over-provisioning": "(physical − logical) / logical capacity.",
    "padding": "Slots of a frame that were programmed without data, because it had to go out "
    "early.",
    "page": "What a plane senses or programs at once.",
    "percentile": "p99 is the latency that 99 of 100 requests do not exceed.",
    "plane": "A part of a die. The planes of a die work on the same operation together.",
    "preconditioning": "What was done to the drive before the run: nothing, filled once in order, "
    "brought to its steady state, or written by another trace.",
    "role": "What a block is used for: free, open, closed, leaving, bad, data or log.",
    "simulated time": "Time on the drive's clock, not of the computer that simulates it.",
    "slot": "The place of one mapping unit in a frame.",
    "stream": "Writes that are kept together in blocks of their own, apart from others "
    "(multi-stream).",
    "throughput": "Bytes that the host moved in a second of simulated time.",
    "TRIM": "The host's command that says what it no longer needs.",
    "untimed": "A run that counts what happens, and not how long it takes.",
    "utilisation": "The share of the time in which something is busy.",
    "valid": "A slot that the map points to. What was written again or trimmed is invalid.",
    "victim": "The block that is collected next; the victim policy chooses it.",
    "WAF": "Write amplification factor: bytes of all pages programmed over bytes that the host "
    "wrote.",
    "warm-up": "Requests at the start that are carried out but not measured.",
    "wear levelling": "Moving data so that blocks age alike.",
    "write cache": "Memory that takes writes before they go to flash.",
}


def glossary() -> str:
    """The section, as HTML."""
    entries = sorted(TERMS.items(), key=lambda item: item[0].lower())
    listed = "".join(
        f"<div><dt>{text(term)}</dt><dd>{text(meaning)}</dd></div>" for term, meaning in entries
    )
    return (
        '<section id="glossary" aria-labelledby="glossary-title"><h2 '
        'id="glossary-title">Glossary</h2>'
        f'<dl class="glossary">{listed}</dl></section>'
    )
