"""Texts that stand for values, read without evaluating them."""

import ast
import json
import sys
from typing import Any, Optional

# Longer texts are no values: Python's parser takes seconds for them.
LONGEST = 100_000
LONGEST_LIST = 10_000


def literal(text: str) -> Any:
    """The value of a Python literal or of JSON: None, bools, numbers, texts, and lists, tuples and dicts of them.

    Sums of lists and lists times a number are taken too: fairseq's convolutional models write their layers so,
    `[(512, 3)] * 9 + [(1024, 3)] * 4`.

    Raises:
        TypeError: no text. fairseq's `eval_bool` expects that of `eval`.
        ValueError: anything else.
    """
    if not isinstance(text, str):
        raise TypeError(f"no text, but {type(text).__name__}")
    if len(text) > LONGEST:
        raise ValueError(f"no literal: {len(text)} characters are too many")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ValueError(f"no literal: {shown!r}") from None


def _value(node: Optional[ast.expr]) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (type(None), bool, int, float, str):
        return node.value
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Dict):  # the key of `**other` is None, which is no node
        return {_value(key): _value(item) for key, item in zip(node.keys, node.values)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        number = _value(node.operand)
        if type(number) in (int, float):
            return +number if isinstance(node.op, ast.UAdd) else -number
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        return _joined(_value(node.left), node.op, _value(node.right))
    raise ValueError(f"{type(node).__name__} is no part of a literal")


def _joined(left: Any, operator: ast.operator, right: Any) -> list:
    if isinstance(operator, ast.Add) and type(left) is type(right) is list:
        length = len(left) + len(right)
    elif isinstance(operator, ast.Mult) and type(left) is list and type(right) is int:
        length = len(left) * right
    elif isinstance(operator, ast.Mult) and type(left) is int and type(right) is list:
        return _joined(right, operator, left)
    else:
        raise ValueError("only lists are added, and multiplied by a whole number")
    if length > LONGEST_LIST:
        raise ValueError(f"a list of {length} items is too long")
    return left + right if isinstance(operator, ast.Add) else left * right


def install() -> None:
    """Let every module of fairseq's read a literal where it would evaluate an expression.

    A module's own `eval` stands before Python's: for `utils.eval_str_list`, `eval_str_dict` and `eval_bool`, by
    whatever name they were taken over, and for the models that evaluate an option themselves.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "fairseq":
            vars(module)["eval"] = literal
