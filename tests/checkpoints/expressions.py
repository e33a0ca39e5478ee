"""Python expressions as hypothesis strategies: a grammar in which every form can contain every other form."""

import json

from hypothesis import strategies as st

from tests.checkpoints.marker import OPEN

# Names that fairseq's modules can resolve when they evaluate text, and that have an effect when called.
NAMES = st.sampled_from(["open", "utils", "torch", "os", "x", "eval", "__import__", "print", "nn", "list", "dict"])

LEAVES = (
    NAMES
    | st.integers().map(str)
    | st.floats().map(repr)
    | st.text(max_size=6).map(repr)
    | st.binary(max_size=6).map(repr)
    | st.sampled_from(["None", "True", "...", "1j"])
)


def larger(inner):
    pair = st.tuples(inner, inner)
    operators = st.sampled_from("+ - * / // % @ ** << >> & | ^ < > == != in is and or".split())
    return st.one_of(
        pair.map("{0[0]}({0[1]})".format),
        pair.map("{0[0]}(*{0[1]}, **{0[1]})".format),
        pair.map("{0[0]}[{0[1]}]".format),
        pair.map("{0[0]}[{0[1]}:{0[1]}]".format),
        pair.map("[{0[0]}, {0[1]}]".format),
        pair.map("({0[0]}, {0[1]})".format),
        pair.map("{{{0[0]}: {0[1]}}}".format),
        pair.map("{{{0[0]}, {0[1]}}}".format),
        pair.map("[0 for ({0[0]}).y in [{0[1]}]]".format),
        pair.map("[0 for ({0[0]})[{0[1]}] in [1]]".format),
        pair.map("[{0[0]} for y in {0[1]} if y]".format),
        pair.map("{{y: {0[0]} for y in [{0[1]}]}}".format),
        pair.map("({0[0]} for y in {0[1]})".format),
        pair.map("({0[0]} if {0[1]} else 0)".format),
        st.tuples(inner, operators, inner).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(inner, operators, inner).map("{0[0]} {0[1]} {0[2]}".format),
        inner.map("({}).__class__".format),
        inner.map("lambda: {}".format),
        inner.map("(lambda y={0}: {0})()".format),
        inner.map("(y := {})".format),
        inner.map("[*{}]".format),
        inner.map("{{**{}}}".format),
        inner.map("not {}".format),
        inner.map("-{}".format),
        inner.map(lambda text: "f" + repr("{" + text + "}")),
        inner.map(repr),
        inner.map(lambda text: json.dumps({"beam": text})),
    )


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=8)
CALLED = st.recursive(st.just(OPEN), larger, max_leaves=4)
