"""Parses the options `--state`, `--ui` and `--metrics` of `hmb broker`, and opens their HTTP ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .errors import USAGE, CliError

if TYPE_CHECKING:
    from hmb.monitoring.ports import HttpAddress, MonitoringPorts, PublicAddressError


class HttpAddressParameter(click.ParamType["HttpAddress"]):
    """The type of an option with the value `[HOST:]PORT`."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> HttpAddress:
        from hmb.monitoring.ports import HttpAddress

        try:
            return HttpAddress.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@contextmanager
def monitoring_ports(
    state: HttpAddress | None,
    metrics: HttpAddress | None,
    ui: HttpAddress | None,
    properties: Mapping[str, str],
) -> Iterator[MonitoringPorts | None]:
    """Open the broker's HTTP ports (state, metrics, page), and close them at the end of the `with` block.

    If an address is None, its port is not opened. If all three addresses are None, yield None. `properties`
    contains the settings of the broker, for example the key file for TLS. Raises CliError if a port cannot be
    opened, or if an address is not allowed.
    """
    wanted = [address for address in (state, ui, metrics) if address is not None]
    if not wanted:
        yield None
        return
    from hmb.monitoring.ports import MonitoringPorts, PublicAddressError

    try:
        ports = MonitoringPorts(state, metrics, ui, properties)
    except PublicAddressError as error:
        raise _refused(error) from error
    except OSError as error:
        places = " and ".join(f"{it.host}:{it.port}" for it in wanted)
        raise CliError(f"cannot open the port of --state, --ui or --metrics ({places}): {error.strerror}") from error
    try:
        yield ports
    except PublicAddressError as error:  # In the `with` block, `ports.start` found that no user has a password.
        raise _refused(error) from error
    finally:
        ports.stop()


def _refused(error: PublicAddressError) -> CliError:
    return CliError(f"the broker cannot protect the address of --state or --ui: {error}", USAGE)
