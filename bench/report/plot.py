"""The command `hmb bench plot`, which draws charts of the stored runs of benchmarks."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import BenchmarkError
from .charts import name_machine
from .origin import by_origin, file_suffixes, view_of


@click.command("plot")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--to", "folder", type=click.Path(path_type=Path), default=Path(), help="Folder for the pictures.  [default: .]"
)
def command(files: tuple[Path, ...], folder: Path) -> None:
    """Draw charts of stored benchmark results. Each chart becomes an SVG file and a PNG file.

    FILES are files with the results of benchmarks. Without FILES, the command takes the newest run of each
    benchmark from the folder hmb-bench. If this folder contains no runs, it takes the newest published runs. A chart
    shows only runs of the same machine and scale, and names the machine. The charts of `hmb bench thesis` also show the
    results in the bachelor thesis on which HMB is based. The command needs matplotlib: pip install 'hmb[docs]'.
    """
    groups = by_origin(files)
    suffixes = file_suffixes(groups)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for origin, samples in groups.items():
            for name, figure in view_of(origin.suite).charts(samples).items():
                name_machine(figure, str(origin))
                for kind in ("svg", "png"):
                    path = folder / f"{name}{suffixes[origin]}.{kind}"
                    figure.savefig(path, dpi=120)
                    click.echo(path)
    except ModuleNotFoundError as missing:
        raise BenchmarkError(f"{missing.name} is not installed: pip install 'hmb[docs]'") from missing
