"""Parsing of literals without evaluating them."""

import ast
import json
import sys
from typing import Any, Optional

# Longer texts are refused, because Python's parser takes seconds for them.
LONGEST = 100_000
LONGEST_LIST = 10_000


def literal(text: str) -> Any:
    """Return the value of a Python or JSON literal: None, bools, numbers, strings, and lists, tuples and dicts of them.

    Sums of lists and products of a list and a number are allowed too. The layers of fairseq's convolutional models are
    written this way: `[(512, 3)] * 9 + [(1024, 3)] * 4`.

    Raises:
        TypeError: `text` is not a string. fairseq's `eval_bool` expects this error from `eval`.
        ValueError: `text` is not such a literal.
    """
    if not isinstance(text, str):
        raise TypeError(f"a literal must be a string, not {type(text).__name__}")
    if len(text) > LONGEST:
        raise ValueError(f"not a literal: it has {len(text)} characters, more than {LONGEST}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ValueError(f"not a literal: {shown!r}") from None


def _value(node: Optional[ast.expr]) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (type(None), bool, int, float, str):
        return node.value
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Dict):  # the key of `**other` is None, which is not a node
        return {_value(key): _value(item) for key, item in zip(node.keys, node.values)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        number = _value(node.operand)
        if type(number) in (int, float):
            return +number if isinstance(node.op, ast.UAdd) else -number
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        return _joined(_value(node.left), node.op, _value(node.right))
    raise ValueError(f"{type(node).__name__} is not allowed in a literal")


def _joined(left: Any, operator: ast.operator, right: Any) -> list:
    if isinstance(operator, ast.Add) and type(left) is type(right) is list:
        length = len(left) + len(right)
    elif isinstance(operator, ast.Mult) and type(left) is list and type(right) is int:
        length = len(left) * right
    elif isinstance(operator, ast.Mult) and type(left) is int and type(right) is list:
        return _joined(right, operator, left)
    else:
        raise ValueError("a literal may only add lists, or multiply a list by a whole number")
    if length > LONGEST_LIST:
        raise ValueError(f"a list of {length} items is too long; at most {LONGEST_LIST} are allowed")
    return left + right if isinstance(operator, ast.Add) else left * right


def install() -> None:
    """Make all modules of fairseq parse a literal where they would evaluate an expression.

    It gives each module its own `eval`, which hides Python's. This covers `utils.eval_str_list`, `eval_str_dict` and
    `eval_bool`, under any name they were imported by, and models that evaluate an option themselves.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "fairseq":
            vars(module)["eval"] = literal
