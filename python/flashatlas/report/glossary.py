"""The terms of reports and of ``explain``, with their meaning in ``docs``."""

from __future__ import annotations

from flashatlas.report.html import text

TERMS = {
    "area": "A part of the log that takes pages of one kind, such as hot ones; it has a budget of "
    "log blocks.",
    "associated data blocks": "The logical blocks that have a valid page in a log block. All of "
    "them must be merged before the log block can be erased.",
    "block": "The unit of an erase. The translation layer's block covers all dies and planes of "
    "its lane.",
    "cell": "The part of a page that keeps one bit (SLC), two (MLC) or three (TLC).",
    "channel": "The bus that some dies share; one die transfers at a time.",
    "closed block": "A block whose frames are all programmed. It can be collected.",
    "collection": "Copying the valid pages out of a block and erasing it (garbage collection). In "
    "the foreground it happens because a write needs room; in idle time, because the drive has "
    "nothing else to do.",
    "data block": "A block that holds one logical block, each page at its offset.",
    "dead": "A log block without a valid page: it is erased without a merge.",
    "die": "The part of a chip that senses, programs or erases on its own.",
    "dirty": "Data in the write cache that is not yet on flash.",
    "FLUSH": "The host's command to bring all earlier writes to flash.",
    "fold": "Copying the valid data of an SLC-mode block to native blocks, and erasing the block.",
    "foreground collection": "See collection.",
    "frame": "The unit of a program of the translation layer: one page, the same page of several "
    "planes, or pages on several dies. It has 1 to 64 slots.",
    "FUA": "Force unit access: a write that completes only when it is on flash.",
    "in flight": "A command that was submitted to the drive and is not complete.",
    "IOPS": "Requests completed in a second of simulated time.",
    "lane": "The dies and planes that one frame covers. Lanes work in parallel, each with its own "
    "free blocks.",
    "latency": "Time from the arrival of a request to its completion: the wait in the host's queue "
    "and the time in the drive.",
    "leaving block": "A collected block whose last copies are not programmed yet; then it is "
    "erased.",
    "log block": "A block that takes updates of pages whose place in their data block is used, "
    "until they are merged.",
    "mapping unit": "The data that one entry of the map stands for, mostly 4 KiB.",
    "merge": "Bringing a data block up to date. Switch: a log block holds all its pages in order "
    "and takes its place. Partial: a log block holds some pages at their offsets, and the others "
    "are copied in. Full: all pages are copied to a new block.",
    "miss": "A lookup for which the entry of the map was not in memory.",
    "moved": "A log block that gave its valid pages to other log blocks, and was erased.",
    "numbers are steady": "The numbers would stay as they are if the measured part were longer. "
    "If not, lines under the table of a run give the reason and advice.",
    "open block": "A block that is being filled.",
    "oracle": "The check of every read: the data read is compared with the data last written "
    "there.",
    "over-provisioning": "(physical − logical) / logical capacity.",
    "padding": "Slots of a frame that were programmed without data, because the frame had to go "
    "out early.",
    "page": "The unit that a plane senses or programs as a whole.",
    "percentile": "p99 is the latency that 99 of 100 requests do not exceed.",
    "plane": "A part of a die. The planes of a die carry out the same operation together.",
    "preconditioning": "The preparation of the drive before the run: none, filled once in order, "
    "brought to its steady state, or written by another trace.",
    "role": "The use of a block: free, open, closed, leaving, bad, data, log, map, or slc (full, "
    "in SLC mode, and to be folded).",
    "simulated time": "Time on the drive's clock, not of the computer that simulates it.",
    "slot": "The place of one mapping unit in a frame.",
    "SMART log": "What an NVMe drive reports of its own wear, spare blocks, commands and errors. "
    "SATA drives have attributes instead, whose values and units differ by vendor.",
    "stream": "Writes that are kept together in blocks of their own, apart from others "
    "(multi-stream).",
    "throughput": "Bytes that the host moved in a second of simulated time.",
    "TRIM": "The host's command that names the data that it no longer needs.",
    "untimed": "A run that counts operations and does not measure time.",
    "utilisation": "The share of the time in which a resource is busy.",
    "valid": "A slot that the map points to. After a rewrite or a trim the old slot is invalid.",
    "victim": "The block that is collected next; the victim policy chooses it.",
    "WAF": "Write amplification factor: bytes of all pages programmed over bytes that the host "
    "wrote.",
    "warm-up": "Requests at the start that are carried out but not measured.",
    "wear levelling": "Moving data so that all blocks age at the same rate.",
    "write cache": "Memory that takes writes before they go to flash.",
}


def glossary() -> str:
    """Return the glossary section, as HTML."""
    entries = sorted(TERMS.items(), key=lambda item: item[0].lower())
    listed = "".join(
        f"<div><dt>{text(term)}</dt><dd>{text(meaning)}</dd></div>" for term, meaning in entries
    )
    return (
        '<section id="glossary" aria-labelledby="glossary-title"><h2 '
        'id="glossary-title">Glossary</h2>'
        f'<dl class="glossary">{listed}</dl></section>'
    )
