"""How Sphinx builds these pages: `make docs`, from the code as it stands, with nothing fetched from anywhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

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
    "command_session",
    "docstrings",
    "measurements",
    "meanings",
    "notebooks",
    "protocol_pages",
    "states",
]
exclude_patterns = ["_build", "_ext"]

html_theme = "furo"
html_title = f"HMB {release}"
html_static_path = ["_static"]
html_css_files = ["hmb.css"]
html_show_sphinx = False

default_role = "code"  # `name` in docstrings
highlight_language = "none"
smartquotes = False  # --listen is no dash
pygments_style = "friendly"
pygments_dark_style = "native"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 180  # seconds a cell: the first one starts Spark
nb_execution_in_temp = True
nb_merge_streams = True
nb_output_stderr = "remove"  # what Java says when it starts; an error fails the build

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
autodoc_default_options = {"members": True}

copybutton_prompt_text = "$ "  # of a session only what was typed
copybutton_line_continuation_character = "\\"
