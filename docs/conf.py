"""The settings of Sphinx, which builds the pages of the documentation.

`make docs` builds the pages from the code in this repository, without network access.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import tones

import hmb

project = "HMB"
author = "the HMB developers"
release = version = hmb.__version__
project_copyright = "The HMB developers. Apache License 2.0"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "citations",
    "code_words",
    "command_session",
    "docstrings",
    "drawing",
    "labs",
    "links",
    "measurements",
    "meanings",
    "notebooks",
    "page_picture",
    "parts",
    "permissions",
    "protocol_pages",
    "settings",
    "states",
    "step_by_step",
]
exclude_patterns = ["_build", "_ext"]

html_theme = "furo"
html_title = f"HMB {release}"
html_static_path = ["_static"]
html_css_files = ["hmb.css"]
html_show_sphinx = False
# The e-book does not use hmb.css. This style sheet needs variables that only the theme of the website defines.
epub_css_files: list[str] = []
epub_show_urls = "no"  # An address inside a sentence would make the sentence hard to read.

html_theme_options = {
    "light_css_variables": tones.css_variables(tones.ON_LIGHT),
    "dark_css_variables": tones.css_variables(tones.ON_DARK),
}

default_role = "code"  # In docstrings, text in single backquotes is code.
highlight_language = "none"
smartquotes = False  # Options such as --listen keep their two hyphens.
# In a11y-light and a11y-dark, each text color has a contrast ratio of at least 4.5:1 to the background.
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 180  # seconds for one cell; the first cell of a notebook starts Spark
nb_execution_in_temp = True
nb_merge_streams = True
nb_output_stderr = "remove"  # Java prints warnings when it starts. An error still fails the build.

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
autodoc_default_options = {"members": True}

copybutton_prompt_text = "$ "  # The button copies the commands of a session, not their output.
copybutton_line_continuation_character = "\\"
