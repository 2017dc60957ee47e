"""Writes docs/python-reference.md from the signatures, types and docstrings of the package, without importing it.

python python/tools/reference.py > docs/python-reference.md
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "didact"

GROUPS = {
    "Experiments": ["Experiment", "Job", "Result", "open_result", "run_many", "run_sweep"],
    "Without a folder": ["solve", "compute"],
    "What comes back": ["Table", "Figure", "Claim", "Measure", "Scan"],
    "Functions of NumPy": ["sampled", "Sampled"],
    "What there is": ["families", "engines", "activations", "functions", "observables", "quantities", "schema"],
    "Errors": ["DescriptionError", "RunError", "Interrupted"],
}


def definitions() -> dict[str, ast.AST]:
    """Every class and function at the top of a module of the package."""
    found = {}
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[node.name] = node
    return found


def signature(node: ast.FunctionDef, name: str, method: bool) -> str:
    """The call with its types."""
    arguments = node.args
    if method:
        kept = ast.arguments(**{field: getattr(arguments, field) for field in arguments._fields})
        kept.args = arguments.args[1:]
        arguments = kept
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"{name}({ast.unparse(arguments)}){returns}"


def text(node: ast.AST) -> str:
    return inspect.cleandoc(ast.get_docstring(node) or "")


def paragraph(doc: str) -> str:
    """Lists of attributes become lists, programs become blocks."""
    lines, out, code = doc.splitlines(), [], False
    for i, line in enumerate(lines):
        if line.startswith(">>>") and not code:
            out.append("```python")
            code = True
        elif code and not line.strip():
            out.append("```")
            code = False
        if set(line) == {"-"}:
            continue
        if i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {"-"}:
            out.append(f"*{line}*\n")
            continue
        name, colon, rest = line.partition(": ")
        entry = not code and bool(colon) and all(part.strip().isidentifier() for part in name.split(","))
        out.append(f"- `{name}`: {rest}" if entry else line)
    return "\n".join([*out, "```"] if code else out)


def described(name: str, node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [f"### `{name}`\n", f"```python\n{signature(node, name, False)}\n```\n", paragraph(text(node)) + "\n"]
    assert isinstance(node, ast.ClassDef)
    out = [f"### `{name}`\n", paragraph(text(node)) + "\n"]
    body = node.body
    for i, entry in enumerate(body):
        if isinstance(entry, ast.AnnAssign) and i + 1 < len(body) and isinstance(body[i + 1], ast.Expr):
            about = body[i + 1].value
            if isinstance(about, ast.Constant) and isinstance(about.value, str):
                out.append(f"- `{entry.target.id}: {ast.unparse(entry.annotation)}`: {about.value}")
        if not isinstance(entry, ast.FunctionDef) or entry.name.startswith("_") and entry.name != "__call__":
            continue
        kinds = [decorator.id for decorator in entry.decorator_list if isinstance(decorator, ast.Name)]
        about = text(entry).replace("\n", " ").replace("  ", " ")
        if "property" in kinds:
            out.append(f"- `.{entry.name}: {ast.unparse(entry.returns)}`: {about}")
        else:
            call = signature(entry, f".{entry.name}" if entry.name != "__call__" else "", True)
            out.append(f"- `{call}`: {about}")
    return [*out, ""]


def reference() -> str:
    """The page."""
    known = definitions()
    out = [
        "# Python reference\n",
        "Generated from the package (`python python/tools/reference.py`); do not edit. "
        "The [guide](guides/python.md) shows how it is used.\n",
    ]
    for title, names in GROUPS.items():
        out.append(f"## {title}\n")
        for name in names:
            out += described(name, known[name])
    return "\n".join(out).rstrip() + "\n"


if __name__ == "__main__":
    print(reference(), end="")
