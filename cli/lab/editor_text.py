"""Convert the page of a lab to a text that is easy to read in an editor. Students get this text as the file lab.md.

The page of a lab is MyST Markdown. A browser or Jupyter hides each answer (`<details>`) until the student opens
it. An editor cannot hide answers, so the file for an editor has all answers in a section at its end. This file
has no header for Sphinx, and its paragraphs have lines of at most 100 characters.
"""

from __future__ import annotations

import re
import textwrap

from .jupyter import FRONT_MATTER

WIDTH = 100  # characters
FOLDED = re.compile(r"<details><summary>(.+?)</summary>\n\n(.*?)\n\n</details>\n", re.DOTALL)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
QUESTION = re.compile(r"^(\d+)\. ", re.MULTILINE)
CODE_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r" *(?:- |\d+\. )?")


def editor_text(page: str) -> str:
    """Return a version of a lab page that is easy to read in an editor, with all answers at the end.

    The parameter `page` contains the original page in MyST Markdown.
    """
    text = FRONT_MATTER.sub("", page).replace("```{code-cell} python", "```python").lstrip("\n")
    parts = CODE_BLOCK.split(_answers_last(text))  # Prose and code alternate in this list.
    return "".join(part if number % 2 else _wrapped(part) for number, part in enumerate(parts))


def _answers_last(text: str) -> str:
    """Move the hidden texts of a page, such as answers, to a section at the end of the page.

    For example, the function moves the answer to question 2 to this section, under the heading "Question 2". At the
    old place of the answer, it writes a line: "(The end of this file contains: Question 2.)".
    """
    answers = ["\n## Answers\n"]

    def move(folded: re.Match[str]) -> str:
        before, (kind, answer) = text[: folded.start()], folded.groups()
        section = SECTION.findall(before)[-1]
        title = f"Question {QUESTION.findall(before)[-1]}" if kind == "Answer" else f"{section}: {kind.lower()}"
        answers.append(f"\n### {title}\n\n{answer}\n")
        return f"(The end of this file contains: {title}.)\n"

    return FOLDED.sub(move, text) + "".join(answers)


def _wrapped(prose: str) -> str:
    """Divide a text into lines of at most WIDTH characters.

    First join the lines of each paragraph, and the lines of each list item, to one line.
    """
    blocks: list[str] = []
    for line in prose.split("\n"):
        is_new = not line or line[0] in "#|" or ITEM.match(line)[0].strip() or not blocks or not blocks[-1]  # type: ignore[index]
        if is_new or blocks[-1][0] in "#|":
            blocks.append(line)
        else:
            blocks[-1] += " " + line.strip()
    return "\n".join(_filled(block) for block in blocks)


def _filled(block: str) -> str:
    if not block or block[0] in "#|":
        return block
    start = ITEM.match(block)
    indent = " " * len(start[0]) if start else ""
    return textwrap.fill(block, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
