"""The formats CSV, JSON, NPZ, Parquet and MPS."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sparse

from mechdesign.model._channel import EXPONENT
from mechdesign.model._problem import Problem
from mechdesign.solve._linear import LinearProgram, to_mps
from mechdesign.synthesis._bundle import describe_domains, label_names, to_csv
from mechdesign.synthesis._normal import LARGEST_ROW_EXPONENT, NormalForm, mark_irreducible, normalise
from mechdesign.synthesis._rows import RowReduction, list_all_rows
from mechdesign.synthesis.formats._format import Exported, Format


def _csv_contents(exported: Exported) -> Iterator[bytes]:
    yield to_csv(exported.channel).encode()


CSV = Format("csv", "the matrix with labels, as text", (".csv",), _csv_contents)


def _json_contents(exported: Exported) -> Iterator[bytes]:
    """Yield a JSON object.

    ``numerators`` are strings, because many readers lose digits of 62-bit JSON numbers. ``matrix`` contains the
    numerators divided by 2 to the power of ``exponent``, rounded to float64.
    """
    problem, channel = exported.problem, exported.channel
    arrays, metadata = describe_domains(problem, channel)
    secrets, observables = label_names(channel)
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


JSON = Format("json", "channel, labels, points, prior and certificate", (".json",), _json_contents)


# A cost between 2^-5 and 2^4 is not scaled, so that the objective of the program is the cost itself.
_NEAR_ONE_BITS = 4


def mps(problem: Problem) -> Iterator[str]:
    """Yield the lines of the program of `problem` in free MPS format.

    The program has the irreducible privacy rows. Pairs with exponents above `LARGEST_ROW_EXPONENT` get no rows. The
    objective is the cost. If the cost is far from 1, it is multiplied by a power of two. Without this factor, solvers
    with absolute tolerances would treat small costs as 0. Comments state this factor, and the factors of floors. Blocks
    are named as in `RowReduction`.
    """
    form = normalise(problem)
    triples = list_all_rows(
        mark_irreducible(form.exponents) & (form.exponents <= LARGEST_ROW_EXPONENT), form.observables
    )
    program, _ = RowReduction(triples, scaled=False).apply(form)
    scaled, comments = _scale(program, form)
    yield from to_mps(scaled, comments)


def _scale(program: LinearProgram, form: NormalForm) -> tuple[LinearProgram, list[str]]:
    """Scale the program so that its cost and the errors of its floors are about 1; return it with comments.

    All factors are powers of two, so nothing is rounded. The columns of floors and of the worst cost are in the scaled
    units.
    """
    rows, columns = np.ones(program.rows), np.ones(program.columns)
    cost = _choose_power(_estimate_cost(form))
    comments = [_describe_factor("the objective is the cost", cost)]
    if "theta" in program.column_blocks:
        rows[program.row_blocks["worst"]] = cost
        columns[program.column_blocks["theta"]] = 1 / cost
    for index, floor in enumerate(form.floors):
        unit = _choose_power(floor.minimum)
        rows[program.row_blocks[f"floor{index}"]] = unit
        columns[program.column_blocks[f"x{index}"]] = 1 / unit
        comments.append(_describe_factor(f"x{index} and floor{index} are errors of the adversary", unit))
    matrix = sparse.diags_array(rows) @ program.matrix @ sparse.diags_array(columns)
    changed = replace(
        program,
        cost=program.cost * columns * cost,
        matrix=sparse.csr_array(matrix),
        row_lower=program.row_lower * rows,
        row_upper=program.row_upper * rows,
    )
    return changed, comments


def _estimate_cost(form: NormalForm) -> float:
    """Estimate the optimal cost by the cost of the best constant answer, or by the mean cost of permitted answers."""
    problem = form.problem
    if problem.objective == "worst":
        return float(form.finite_cost.max())
    if form.forbidden.any():
        permitted = np.isfinite(problem.cost).sum(axis=1)
        return float(problem.prior @ (form.finite_cost.sum(axis=1) / permitted))
    return float((problem.prior @ problem.cost).min())


def _choose_power(magnitude: float) -> float:
    """Return the power of two that scales a magnitude into [1/2, 1); 1 if it is 0 or already close to 1."""
    exponent = math.frexp(magnitude)[1]
    return 1.0 if abs(exponent) <= _NEAR_ONE_BITS else 2.0 ** -min(max(exponent, -1000), 1000)


def _describe_factor(what: str, factor: float) -> str:
    return f"{what} times {factor:.17g} (2^{round(math.log2(factor))})"


def _mps_contents(exported: Exported) -> Iterator[bytes]:
    return (line.encode() for line in mps(exported.problem))


MPS = Format("mps", "the linear program that the channel solves", (".mps",), _mps_contents)


def _npz_contents(exported: Exported) -> Iterator[bytes]:
    """Yield an NPZ archive of ``numerators``, ``exponent``, ``matrix``, ``prior``, ``cost``, labels and points."""
    channel, problem = exported.channel, exported.problem
    arrays, _ = describe_domains(problem, channel)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        allow_pickle=False,
        numerators=channel.numerators,
        exponent=np.int64(EXPONENT),
        matrix=channel.matrix,
        prior=problem.prior,
        cost=problem.cost,
        **arrays,
    )
    yield content.getvalue()


NPZ = Format("npz", "arrays for NumPy, with the exact integers", (".npz",), _npz_contents, text=False)


def _parquet_contents(exported: Exported) -> Iterator[bytes]:
    """Yield a Parquet table of labels, indices, numerators and probabilities; its metadata contains the denominator."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    channel = exported.channel
    n, m = channel.numerators.shape
    secrets, observables = label_names(channel)
    secret, observable = np.repeat(np.arange(n, dtype=np.int32), m), np.tile(np.arange(m, dtype=np.int32), n)
    table = arrow.table(
        {
            "secret": arrow.DictionaryArray.from_arrays(secret, list(secrets)),
            "observable": arrow.DictionaryArray.from_arrays(observable, list(observables)),
            "secret_index": secret,
            "observable_index": observable,
            "numerator": channel.numerators.ravel(),
            "probability": channel.matrix.ravel(),
        }
    ).replace_schema_metadata({"denominator": str(channel.denominator)})
    target = arrow.BufferOutputStream()
    parquet.write_table(table, target)
    yield target.getvalue().to_pybytes()


PARQUET = Format(
    "parquet", "a line for each pair", (".parquet",), _parquet_contents, text=False, package="pyarrow", extra="parquet"
)
