"""Each head is its formula, for y of any shape, within its stated domain."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from explorer.expression import ExpressionError
from explorer.fields import FieldError
from explorer.heads import HEADS, Head, HeadsField, build

# Each formula again, entry by entry and without torch.
FORMULAS: dict[str, Callable[[list[float]], float]] = {
    "square": lambda y: sum(v * v for v in y),
    "sqrt": lambda y: sum(math.sqrt(v) for v in y),
    "log": lambda y: sum(math.log(v) for v in y),
    "exp": lambda y: sum(math.exp(v) for v in y),
    "sin": lambda y: sum(math.sin(v) for v in y),
    "norm": lambda y: math.hypot(*y),
    "mean": lambda y: math.fsum(y) / len(y),
    "logsumexp": lambda y: math.log(sum(math.exp(v) for v in y)),
}
every_head = pytest.mark.parametrize("name", HEADS)


def sample(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=dtype) + 0.2


def test_every_head_has_its_formula_here() -> None:
    assert list(HEADS) == list(FORMULAS)
    assert all(head.name == name and head.formula for name, head in HEADS.items())


@every_head
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_is_the_formula(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    y = sample(shape, dtype)
    z = HEADS[name](y)
    assert z.shape == () and z.dtype == dtype
    rel = 1e-6 if dtype == torch.float32 else 1e-13
    assert z.item() == pytest.approx(FORMULAS[name](y.flatten().tolist()), rel=rel)


@every_head
@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
def test_gradient_is_that_of_finite_differences(name: str, shape: tuple[int, ...]) -> None:
    assert torch.autograd.gradcheck(HEADS[name], sample(shape).requires_grad_())


@every_head
@pytest.mark.parametrize("y", [-2.0, -0.0, 0.0, 1e-300, 0.5, 300.0])
def test_value_is_finite_exactly_in_the_domain(name: str, y: float) -> None:
    head, at = HEADS[name], torch.tensor([y, 1.0], dtype=torch.float64)
    inside = head.inside is None or bool(head.inside(at).all())
    assert bool(head(at).isfinite()) == inside


@pytest.mark.parametrize("name, inside", [("sqrt", [0.0, 2.0]), ("log", [1e-9, 2.0])])
def test_domain_tells_each_entry(name: str, inside: list[float]) -> None:
    head = HEADS[name]
    assert head.inside is not None and head.domain != "every real y"
    y = torch.tensor([-1.0, *inside])
    assert head.inside(y).tolist() == [False, True, True]


def test_heads_without_a_test_of_the_domain_take_every_real_y() -> None:
    assert {name for name, head in HEADS.items() if head.domain != "every real y"} == {
        name for name, head in HEADS.items() if head.inside is not None
    }


def test_logsumexp_does_not_overflow() -> None:
    assert HEADS["logsumexp"](torch.tensor([1000.0, 1000.0])).item() == pytest.approx(
        1000 + math.log(2)
    )


# What a person names them by.

FIELD = HeadsField("heads", "choices", "Head", choices=tuple(HEADS))
Y = torch.tensor([0.5, -1.5], dtype=torch.float64)
X = torch.tensor([2.0, 3.0], dtype=torch.float64)


@pytest.mark.parametrize(
    "given, entries",
    [
        ("square", ("square",)),
        ("square, y[0]*2,max(y)", ("square", "y[0] * 2", "max(y)")),
        (("y+ x", " powers( 3 ) "), ("y + x", "powers(3)")),
        (("y", "sums(2)"), ("y", "sums(2)")),
    ],
)
def test_entries_are_names_sets_and_expressions(given: object, entries: tuple[str, ...]) -> None:
    assert FIELD.parse(given) == entries
    assert FIELD.parse(FIELD.text(entries)) == entries


@pytest.mark.parametrize(
    "given, words",
    [
        ("sqare", "Did you mean square? Allowed: one or more of square"),
        ("power(3)", "Column 1: power is not a known function"),
        ("powers", "Head powers is not known"),
        ("powers(0)", "a set has 1 to 1000 heads"),
        ("random(1001)", "a set has 1 to 1000 heads"),
        ("powers(-1)", "a set has 1 to 1000 heads, as in powers(16)"),
        ("random(K)", "a set has 1 to 1000 heads"),
        ("random(10000000000000000000000)", "random"),
        ("random(600),powers(600)", "These are 1200 heads. Allowed: at most 1000."),
        ("sums(3)", "sums(3) has nothing to sum"),
        ("sums(3),sums(4)", "has nothing to sum"),
        ("y**2,y ** 2", "chosen more than once"),
        ("random(3),random(5)", "The set random is chosen more than once"),
        (("y+",), "Head y+: "),
        ("x", "Head x"),
        ([3], "Head 3 is not known"),
    ],
)
def test_entries_that_are_none_are_told(given: object, words: str) -> None:
    with pytest.raises(FieldError) as error:
        FIELD.parse(given)
    assert words in str(error.value)


def test_members_of_sets_are_what_they_say() -> None:
    found = build(["y[1]", "powers(3)", "random(2)", "sums(2)"], {}, Y, X, seed=4)
    names = ["y[1]", *(f"{name} {k}" for name, most in (("powers", 3), ("random", 2), ("sums", 2))
                       for k in range(1, most + 1))]  # fmt: skip
    assert list(found) == names
    values = {name: head(Y, X).item() for name, head in found.items()}
    assert values["y[1]"] == -1.5
    assert [values[f"powers {k}"] for k in (1, 2, 3)] == pytest.approx([-1.0, 2.5, -3.25])
    others = torch.tensor([values[name] for name in names[:6]], dtype=torch.float64)
    weights = torch.randn(2, 6, generator=torch.Generator().manual_seed(4)).double()
    assert [values["sums 1"], values["sums 2"]] == pytest.approx((weights @ others).tolist())
    assert all(head.name == name and head.formula for name, head in found.items())


def test_sums_add_nothing_to_the_rank_of_the_cotangents() -> None:
    y = sample((6,))
    found = build(["sin", "exp", "norm", "sums(9)"], {}, y, X, seed=0)
    rows = [torch.autograd.functional.jacobian(head, y) for head in found.values()]
    assert torch.linalg.matrix_rank(torch.stack(rows), rtol=1e-12) == 3


def test_typed_head_is_summed_and_shown_so() -> None:
    found = build(["y**2", "y[0]*x[1]", "x*sum(y)"], {}, Y, X, seed=0)
    assert found["y**2"](Y, X).item() == 2.5
    assert found["y**2"].formula == "Σ(y²)" and not found["y**2"].takes_x
    assert found["y[0]*x[1]"](Y, X).item() == 1.5
    assert not found["y[0]*x[1]"].formula.startswith("Σ") and found["y[0]*x[1]"].takes_x
    assert found["x*sum(y)"](Y, X).item() == -5.0


def test_typed_head_that_does_not_fit_y_is_told() -> None:
    with pytest.raises(ExpressionError, match="y"):
        build(["y[7]"], {}, Y, X, seed=0)


def test_weights_of_a_set_are_the_same_in_every_dtype() -> None:
    wide = build(["random(3)", "sums(2)"], {}, Y, X, seed=1)
    narrow = build(["random(3)", "sums(2)"], {}, Y.float(), X.float(), seed=1)
    for name, head in wide.items():
        assert narrow[name](Y.float()).item() == pytest.approx(head(Y).item(), rel=1e-5)


def test_own_heads_come_before_those_of_the_registry() -> None:
    own = {"square": Head("square", "mine", lambda y: 7 * y.sum())}
    assert build(["square"], own, Y, X, seed=0)["square"](Y).item() == -7.0
