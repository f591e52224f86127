"""JSON: everything that a program needs in order to use the channel."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mechdesign.export.description import described
from mechdesign.export.table import names
from mechdesign.formats.format import Exported
from mechdesign.formats.format import Format
from mechdesign.model._channel import EXPONENT

__all__ = ["JSON"]


def _contents(exported: Exported) -> Iterator[bytes]:
    """Yield a JSON object.

    ``numerators`` are texts, since many readers lose digits of JSON numbers of 62 bits; ``matrix`` holds numerators
    over 2 to the power of ``exponent``, rounded to float64.
    """
    problem, channel = exported.problem, exported.channel
    arrays, metadata = described(problem, channel)
    secrets, observables = names(channel)
    document = {
        **metadata,
        "labels": {"secrets": secrets, "observables": observables},
        "points": {
            name: arrays[f"{name}_points"].tolist() for name in ("secrets", "observables") if f"{name}_points" in arrays
        },
        "prior": problem.prior.tolist(),
        "exponent": EXPONENT,
        "numerators": [[str(number) for number in row] for row in channel.numerators.tolist()],
        "matrix": channel.matrix.tolist(),
        "certificate": exported.certificate.to_json(),
    }
    yield json.dumps(document, indent=1).encode() + b"\n"


JSON = Format("json", "channel, labels, points, prior and certificate", (".json",), _contents)
