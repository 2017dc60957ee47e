"""What is generated is not stale: the reference page, and the stubs of the compiled part."""

import ast
import inspect
import sys

import didact
from didact import _core


def test_the_reference_page_is_fresh(root):
    sys.path.insert(0, str(root / "python/tools"))
    import reference

    assert (root / "docs/python-reference.md").read_text(encoding="utf-8") == reference.reference()
    assert sorted(name for names in reference.GROUPS.values() for name in names) == sorted(didact.__all__)


def test_the_stubs_say_what_the_compiled_part_has(root):
    """Names and parameters, as far as the interpreter knows them; `.ci/python` makes the stubs anew and compares all."""
    stubs = ast.parse((root / "python/didact/_core.pyi").read_text(encoding="utf-8"))
    functions = {node.name: node for node in stubs.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in stubs.body if isinstance(node, ast.ClassDef)}
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert set(functions) | set(classes) == public
    for name, node in functions.items():
        assert list(inspect.signature(getattr(_core, name)).parameters) == [argument.arg for argument in _arguments(node)]
    for name, node in classes.items():
        methods = {entry.name for entry in node.body if isinstance(entry, ast.FunctionDef)}
        assert methods == {entry for entry in vars(getattr(_core, name)) if not entry.startswith("_")}, name


def _arguments(node):
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
