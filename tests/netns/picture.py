"""Compares the screen on standard input with a picture in a page, or writes the picture.

picture.py PAGE NAME WRITE

The picture is the block of text behind the line `<!-- picture: NAME -->`. Of the screen's blank
lines that follow each other, it has one. Words with digits differ from run to run, so lines are
compared without them. A line that the terminal may have cut is compared without its end.
"""

import re
import sys

WIDTH = 80


def shape(text):
    """Returns the words of each line that have no digits, without bars and blank lines."""
    lines = [line.split()[:-1] if len(line) >= WIDTH - 2 else line.split()
             for line in text.splitlines()]
    lines = [[word for word in line if not re.search(r"[0-9█▏▎▍▌▋▊▉]", word)] for line in lines]
    return [words for words in lines if words]


def alike(line, other):
    """True if two lines have the same words; the last one may be cut off."""
    length = min(len(line), len(other))
    return line[:length] == other[:length] and max(len(line), len(other)) <= length + 1


def main():
    path, name, write = sys.argv[1:]
    screen = "\n".join(line.rstrip() for line in sys.stdin.read().splitlines()).rstrip() + "\n"
    screen = re.sub(r"\n{3,}", "\n\n", screen)
    page = open(path, encoding="utf-8").read()
    block = re.compile(rf"(<!-- picture: {name} -->\n+```\n)(.*?)(```\n)", re.DOTALL)
    found = block.search(page)
    if not found:
        sys.exit(f"{path} has no picture {name}")
    if write:
        page = block.sub(lambda match: match[1] + screen + match[3], page)
        open(path, "w", encoding="utf-8").write(page)
    new, old = shape(screen), shape(found[2])
    if not write and (len(new) != len(old) or not all(map(alike, new, old))):
        sys.exit(f"the picture {name} is stale: UPDATE=1 in front of the test writes it\n{screen}")


main()
