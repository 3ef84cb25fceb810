"""Comparison → a table behind each figure, and one of passes and memory, of gradients, and of what
differs."""

from __future__ import annotations

from explorer import units
from explorer.comparing import sentences
from explorer.comparing.comparison import Comparison
from explorer.experiment import Along
from explorer.scaling_sentences import ALONG
from explorer.sentences import MANY
from explorer.tables import NONE, Table


def tables(comparison: Comparison) -> dict[str, Table]:
    """The tables: those of the figures by their names, `counts`, `gradients` where gradients were
    compared, `experiments` and `environments`."""
    found = {"ratio": _ratio(comparison), "time": _time(comparison)}
    for along in scalings(comparison):
        found[f"scaling-{along}"] = _scaling(comparison, along)
    found["counts"] = _counts(comparison)
    if comparison.gradients:
        found["gradients"] = _gradients(comparison)
    found["experiments"] = _experiments(comparison)
    found["environments"] = _environments(comparison)
    return found


def scalings(comparison: Comparison) -> tuple[Along, ...]:
    """The scalings that at least two of the Results have."""
    having = [along for each in comparison.results.values() for along in each.scaling]
    return tuple(along for along in dict.fromkeys(having) if having.count(along) > 1)


def _ratio(comparison: Comparison) -> Table:
    rows = [
        (
            path,
            name,
            ratio.against,
            units.number(ratio.value),
            sentences.interval(ratio) or NONE,
            units.number(ratio.p, 2),
            sentences.standing(ratio),
        )
        for path, found in comparison.ratios.items()
        for name, ratio in found.items()
    ]
    columns = ("Path", "Result", "Against", "Ratio", "95% interval", "p", "Standing")
    return Table("Ratio of the times", columns, tuple(rows))


def _time(comparison: Comparison) -> Table:
    rows = []
    for path in comparison.paths:
        for name, result in comparison.results.items():
            if path not in result.paths:
                continue
            seconds = result.paths[path].seconds
            if seconds is None:
                rows.append((path, name, NONE, NONE, NONE, "0", NONE))
                continue
            runs = len(seconds.runs)
            spread = units.seconds(seconds.iqr) if runs > 1 else NONE
            times = units.seconds(seconds.median), spread, units.seconds(seconds.minimum)
            wrong = "wrong" if path in comparison.wrong.get(name, ()) else NONE
            rows.append((path, name, *times, str(runs), wrong))
    columns = (
        "Path", "Result", "Median time", "Interquartile range", "Minimum", "Runs", "Gradients"
    )  # fmt: skip
    return Table("Time per path and Result", columns, tuple(rows))


def _counts(comparison: Comparison) -> Table:
    rows = [
        (
            path,
            name,
            str(found.forward_passes),
            str(found.backward_passes),
            str(found.forward_mode_passes),
            units.size(found.saved_bytes),
            units.peak(found.peak_memory_bytes),
        )
        for path in comparison.paths
        for name, result in comparison.results.items()
        if (found := result.paths.get(path)) is not None
    ]
    columns = (
        "Path", "Result", "Forward", "Backward", "Forward mode", "Saved for backward",
        "Peak memory",
    )  # fmt: skip
    return Table("Passes through f, and memory", columns, tuple(rows))


def _gradients(comparison: Comparison) -> Table:
    """The heads whose gradients lie farthest apart, at most as many as are shown elsewhere."""
    found = comparison.gradients
    farthest = sorted(found, key=lambda head: -max(each.value for each in found[head].values()))
    rows = [
        (
            head,
            name,
            each.against,
            each.path,
            "exactly 0" if each.value == 0 else units.number(each.value),
        )
        for head in found
        if head in farthest[:MANY]
        for name, each in found[head].items()
    ]
    columns = ("Head", "Result", "Against", "Path", "Difference (relative)")
    return Table("Largest difference of the gradients", columns, tuple(rows))


def _experiments(comparison: Comparison) -> Table:
    names = list(comparison.results)
    rows = [
        (label, *(values.get(name, NONE) for name in names), _same([*values.values()], len(names)))
        for label, values in sentences.fields(comparison).items()
    ]
    return Table("Experiments", ("Field", *names, "Same"), tuple(rows))


def _environments(comparison: Comparison) -> Table:
    kept = {**sentences.ENVIRONMENT, "started": "Started (UTC)"}
    results = comparison.results.values()
    rows = []
    for name, label in kept.items():
        values = [str(getattr(each.environment, name)) for each in results]
        rows.append((label, *values, _same(values, len(values))))
    return Table("Environments", ("What", *comparison.results, "Same"), tuple(rows))


def _same(values: list[str], count: int) -> str:
    return "yes" if len(values) == count and len(set(values)) == 1 else "no"


def _scaling(comparison: Comparison, along: Along) -> Table:
    """A row a count, and a column a path and Result."""
    columns: dict[tuple[str, str], dict[int, str]] = {}
    for path in comparison.paths:
        for name, result in comparison.results.items():
            scaling = result.scaling.get(along)
            if scaling is not None and path in scaling.paths:
                columns[path, name] = {
                    point.count: units.seconds(point.seconds.median)
                    for point in scaling.paths[path].measured
                }
    counts = sorted({count for cells in columns.values() for count in cells})
    rows = [
        (str(count), *(cells.get(count, NONE) for cells in columns.values())) for count in counts
    ]
    counted = ALONG[along]
    return Table(
        f"Time against the number of {counted}",
        (f"{counted[0].upper()}{counted[1:]}", *(f"{path}, {name}" for path, name in columns)),
        tuple(rows),
    )
