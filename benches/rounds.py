"""`make bench ROUNDS=5`: run a benchmark in rounds, and print the least and median numbers.

    benches/rounds.py --rounds 5 -- target/dist/bench engine setup

With a single round, the output of the benchmark is printed directly. The outputs of several rounds
may differ only in numbers. A number that is equal in all rounds is printed once; other numbers are
printed as least and median, `1.02/1.31`. This is not a test: the reader judges the numbers.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys

from flashatlas.progress import Bars

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


def summary(rounds: list[str]) -> str:
    """Return the common text of all rounds, with the least and the median of each number.

    Raises ``ValueError`` if two rounds printed different words.
    """
    texts = [[" ".join(line.split()) for line in text.splitlines()] for text in rounds]
    shapes = [[NUMBER.sub("#", line) for line in lines] for lines in texts]
    for number, shape in enumerate(shapes[1:], 2):
        if shape != shapes[0]:
            odd = next(
                (a for a, b in zip(shape, shapes[0], strict=False) if a != b),
                "another number of lines",
            )
            raise ValueError(f"round {number} printed other words than the first: {odd}")
    lines = []
    for same in zip(*texts, strict=True):
        columns = iter(list(zip(*(NUMBER.findall(line) for line in same), strict=True)))
        lines.append(NUMBER.sub(lambda _, columns=columns: merged(next(columns)), same[0]))
    return "\n".join(lines)


def merged(numbers: tuple[str, ...]) -> str:
    """Return the least and the median of a number, with the same number of decimals."""
    if len(set(numbers)) == 1:
        return numbers[0]
    decimals = max(len(number.partition(".")[2]) for number in numbers)
    values = [float(number) for number in numbers]
    return f"{min(values):.{decimals}f}/{statistics.median(values):.{decimals}f}"


def main() -> None:
    """Run the command once in each round, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds (1)")
    parser.add_argument("command", nargs="+", help="the command that prints the numbers, after --")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: at least 1")
    if given.rounds == 1:
        sys.exit(subprocess.run(given.command, check=False).returncode)
    texts = []
    with Bars(["rounds"]) as bars:
        for number in range(1, given.rounds + 1):
            ran = subprocess.run(given.command, stdout=subprocess.PIPE, text=True, check=False)
            if ran.returncode:
                sys.exit(f"round {number}: {given.command[0]} ended with {ran.returncode}")
            texts.append(ran.stdout)
            bars.update(0, "bench", number, number / given.rounds, "rounds")
    try:
        print(summary(texts))
    except ValueError as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
