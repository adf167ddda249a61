"""Measure how easy the source is to navigate: `make house`.

With a commit as its argument, print that commit's figures beside the current ones.
"""

import ast
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMALL_LINES = 60
# A small file is fine if it is a plug-in behind a contract, or a migration.
PLUG_INS = ("/formats/", "/engines/", "/routes/", "/notify/", "/cli/", "/migrations/", "/sensors/")
COMMANDS = "/cli/__init__.py"
# Base classes that never call the methods of a subclass.
PLAIN_BASES = frozenset({"NamedTuple", "Struct", "StrEnum", "TypedDict", "Generic", "ABC"})
FORBIDDEN_NAMES = frozenset({"one", "found", "place", "number", "told", "said", "made"})
FORBIDDEN_MODULES = frozenset({"saying", "telling", "standing", "letting_go", "kept", "shown"})
FORBIDDEN_FUNCTIONS = frozenset({"_bury", "_mourn", "bury", "mourn"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """A source file: its size, its syntax tree, and the names it uses."""

    path: str
    lines: int
    tree: ast.Module
    names: Counter[str] = field(default_factory=Counter)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))


def read_modules(folder: Path) -> list[Module]:
    """Parse every Python file below a folder."""
    modules = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        module = Module(f"/{path.relative_to(folder)}", text.count("\n"), ast.parse(text))
        module.names.update(_mentioned(module.tree))
        modules.append(module)
    return modules


def _mentioned(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2]


def house(root: Path) -> dict[str, str]:
    """Return the figures of a checkout, by name."""
    source, tests = read_modules(root / "src" / "floe"), read_modules(root / "tests")
    # A migration is written once and never edited, so its length bothers nobody.
    lines = [module.lines for module in source if "/migrations/" not in module.path]
    functions = [
        1 + (node.end_lineno or node.lineno) - node.lineno
        for module in source
        for node in module.functions
    ]
    small = list(fragments(source))
    names = list(forbidden_names(source))
    return {
        "source files": str(len(source)),
        "file lines without migrations, median / p90 / max": _spread(lines),
        "function lines, median / p90 / max": _spread(functions),
        "classes": str(sum(len(list(module.classes)) for module in source)),
        f"fragments: under {SMALL_LINES} lines, imported once": str(len(small)),
        "functions that only tests call": str(len(list(called_by_tests_only(source, tests)))),
        "names on the forbidden list": str(len(names)),
        "modules that share their name": str(len(list(shared_names(source)))),
    }


def _spread(values: list[int]) -> str:
    ordered = sorted(values)
    p90 = ordered[int(len(ordered) * 0.9)]
    return f"{statistics.median(ordered):.0f} / {p90} / {ordered[-1]}"


def fragments(source: list[Module]) -> Iterator[str]:
    """Find small helpers that exactly one other module imports."""
    importers = Counter(name for module in source for name in _imported(module.tree))
    for module in source:
        plug_in = any(folder in module.path for folder in PLUG_INS)
        if module.is_package or plug_in or module.lines >= SMALL_LINES:
            continue
        dotted = "floe" + module.path.removesuffix(".py").replace("/", ".")
        if importers[dotted] == 1:
            yield module.path


def _imported(tree: ast.AST) -> set[str]:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules


def called_by_tests_only(source: list[Module], tests: list[Module]) -> Iterator[str]:
    """Find functions whose name is used in the tests and nowhere in the source."""
    in_source: Counter[str] = Counter()
    for module in source:
        # The __init__ of a package lists its exports, which is not a use; that of the command
        # line registers the commands, which is.
        if not module.is_package or module.path == COMMANDS:
            in_source += module.names
    in_tests = sum((module.names for module in tests), Counter())
    ours = {node.name for module in source for node in module.classes}
    for module in source:
        called_by_others = set(_overrides(module, ours))
        for node in module.functions:
            plain = not node.decorator_list and not node.name.startswith("__")
            used = in_source[node.name] or node in called_by_others
            if plain and not used and in_tests[node.name]:
                yield f"{module.path}:{node.lineno} {node.name}"


def _overrides(module: Module, ours: set[str]) -> Iterator[ast.AST]:
    """Find functions that a library calls: methods of its subclasses, and Alembic's hooks."""
    if "/migrations/" in module.path:
        yield from module.functions
    for node in module.classes:
        bases = {_mentioned_last(base) for base in node.bases} - PLAIN_BASES
        if bases - ours:
            yield from node.body


def _mentioned_last(base: ast.expr) -> str:
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def forbidden_names(source: list[Module]) -> Iterator[str]:
    """Find modules, functions, arguments and variables with a forbidden name."""
    for module in source:
        if Path(module.path).stem in FORBIDDEN_MODULES:
            yield module.path
        for node in ast.walk(module.tree):
            name = _defined_name(node)
            function = isinstance(node, Function) and node.name in FORBIDDEN_FUNCTIONS
            if name in FORBIDDEN_NAMES or function:
                line = getattr(node, "lineno", 0)
                yield f"{module.path}:{line} {name or getattr(node, 'name', '')}"


def _defined_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, Function) else None


def shared_names(source: list[Module]) -> Iterator[str]:
    """Find file names that several modules share."""
    stems = Counter(Path(module.path).stem for module in source if not module.is_package)
    yield from (f"{stem} ({count})" for stem, count in stems.items() if count > 1)


def ignored_keys() -> list[str]:
    """List the keys of floe.yaml and platform.yaml that no code acts on, beyond the known ones."""
    # Imported here, because it needs floe's own packages; everything else only parses files.
    sys.path.insert(0, str(ROOT))
    from tests.spec.consumers import ignored_keys as find

    return find()


def main() -> int:
    """Print the figures; with --list also the lines they come from."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    now = {**house(ROOT), "keys without a consumer": str(len(ignored_keys()))}
    before = _house_of_commit(arguments[0]) if arguments else {}
    for name, value in now.items():
        print(f"{name:<50} {before.get(name, ''):>18} {value:>18}")
    if "--list" in sys.argv:
        source, tests = read_modules(ROOT / "src" / "floe"), read_modules(ROOT / "tests")
        print(*called_by_tests_only(source, tests), *shared_names(source), sep="\n")
        print(*fragments(source), sep="\n")
    return 0


def _house_of_commit(commit: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tree.tar"
        command = ["git", "archive", "-o", str(archive), commit, "src", "tests"]
        subprocess.run(command, check=True, cwd=ROOT)
        with tarfile.open(archive) as tree:
            tree.extractall(folder, filter="data")
        return house(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
