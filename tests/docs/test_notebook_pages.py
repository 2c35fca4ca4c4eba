"""On a machine without Spark, the build does not execute notebooks. The page then contains a note with the reason."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from tests.docs.test_command_session import load

NOTEBOOK = "---\nfile_format: mystnb\n---\n\n# Events\n\nText.\n\n```{code-cell}\n# no heading\n```\n"


def noted(problem: str | None, name: str, text: str) -> str:
    source = [text]
    load("notebooks").add_note(SimpleNamespace(config=SimpleNamespace(notebooks_problem=problem)), name, source)
    return source[0]


def test_a_notebook_that_did_not_run_has_a_note_below_its_heading() -> None:
    text = noted("no Java was found", "labs/lab-03-events", NOTEBOOK)
    heading, note, rest = text.index("# Events"), text.index("no Java was found"), text.index("Text.")
    assert heading < note < rest


def test_other_pages_and_notebooks_that_ran_stay_as_they_are() -> None:
    assert noted(None, "labs/lab-03-events", NOTEBOOK) == NOTEBOOK
    assert noted("no Java was found", "labs/index", "# Labs\n") == "# Labs\n"
    assert noted("no Java was found", "labs/lab-03", NOTEBOOK) == NOTEBOOK


def test_without_spark_notebooks_are_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    notebooks = load("notebooks")
    added = {}
    app = SimpleNamespace(add_config_value=lambda name, value, _: added.update({name: value}))
    for problem, excluded in ((None, ["other"]), ("no Java was found", ["other", "labs/lab-??-*.md"])):
        monkeypatch.setattr(notebooks, "problem", lambda problem=problem: problem)
        config = SimpleNamespace(nb_execution_excludepatterns=["other"], notebooks_problem=problem)
        notebooks.configure(app, config)
        assert config.nb_execution_excludepatterns == excluded
        assert added == {"notebooks_problem": problem}


def test_a_plot_has_the_sentences_about_it_as_its_text_alternative() -> None:
    nodes = pytest.importorskip("docutils.nodes")
    document = nodes.container()
    texts = ("It saves each plot. The plot shows sizes.", None, None, "Each point of the plot is a click.", None)
    for text in texts:
        document += nodes.paragraph(text=text) if text else nodes.image(uri="image.png")
    app = SimpleNamespace(env=SimpleNamespace(docname="labs/lab-03"))
    load("notebooks").describe_plots(app, document)
    found = [image.get("alt") for image in document.findall(nodes.image)]
    assert found == ["The plot shows sizes.", "Each point of the plot is a click.", None]
