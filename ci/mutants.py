#!/usr/bin/env python3
"""Builds many mutants of a crate at once, each as a copy of its module; runs their tests one by one.

    ci/mutants.py CRATE MODULES...     called by ci/mutants.sh

A mutant costs the compilation of a module instead of a crate and a link: a tenth. Only the tests of the
mutated module count, and of modules that need it or that it needs; tests of other modules may catch
what this reports as missed.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

BATCH = 60
TIMEOUT_S = 60


def cargo(crate, *arguments, **options):
    return subprocess.run(
        ["cargo", *arguments], cwd=crate, capture_output=True, text=True, check=False, **options
    )


def mutants(crate, modules):
    """Returns the mutants of cargo-mutants for these files and the folders of the same name."""
    globs = [pattern for m in modules for pattern in ("-f", f"src/{m}.rs", "-f", f"src/{m}/**/*.rs")]
    listed = cargo(crate, "mutants", "--list", "--json", "--diff", *globs)
    if listed.returncode:
        sys.exit(listed.stderr)
    return json.loads(listed.stdout)


def circle(original):
    """Returns the module with those that it needs or that need it, because they share types."""

    def needs(name):
        return re.findall(r"\bsuper::(\w+)", original.with_name(name + ".rs").read_text())

    beside = [n for n in needs(original.name) if original.with_name(n + ".rs").exists()]
    return [original.name, *{n for n in beside if original.name in needs(n)}]


def plant(crate, number, mutant, modules):
    """Writes the mutated copy as the module m<number>."""
    source = crate / "src"
    file = pathlib.Path(mutant["file"]).relative_to("src")
    stem = file.with_suffix("").as_posix()
    module = next(m for m in modules if stem == m or stem.startswith(m + "/"))
    copy = source / f"m{number}"
    original = source / module
    copy.mkdir()
    names = circle(original)
    for name in names:
        for beside in original.parent.glob(f"{name}*.rs"):
            shutil.copy(beside, copy)
        if (original.parent / name).is_dir():
            shutil.copytree(original.parent / name, copy / name)
    target = copy / file.relative_to(pathlib.Path(module).parent)
    if mutant["diff"]:
        patch = ["patch", "--quiet", "--no-backup-if-mismatch", str(target)]
        subprocess.run(patch, input=mutant["diff"], text=True, check=True)
    siblings = f"pub use crate::{'::'.join(pathlib.Path(module).parent.parts)}::*;"
    if "/" not in module:
        siblings = ""
    text = siblings + "".join(f"\npub mod {name};\n" for name in names)
    (source / f"m{number}.rs").write_text(text)


def uproot(crate, number):
    shutil.rmtree(crate / f"src/m{number}")
    (crate / f"src/m{number}.rs").unlink()


def control(crate, root, modules):
    """Checks that the unmutated copy has tests and passes them."""
    for number, module in enumerate(modules):
        plant(crate, number, {"file": f"src/{module}.rs", "diff": ""}, modules)
    binary, broken = build(crate, root, list(range(len(modules))))
    for number, module in enumerate(modules):
        listed = subprocess.run(
            [binary, "--list", f"m{number}::"], capture_output=True, text=True, check=True
        )
        verdict = "does not compile" if number in broken else judge(binary, number)
        if verdict != "missed" or ": test" not in listed.stdout:
            sys.exit(f"{module}: its copy does not pass its own tests, or has none: {verdict}")
        uproot(crate, number)


def build(crate, root, numbers):
    """Returns the test binary, and the mutants that do not compile."""
    broken = set()
    while True:
        names = [f"mod m{n};" for n in numbers if n not in broken]
        (crate / "src/lib.rs").write_text(root + "\n".join(names) + "\n")
        built = cargo(crate, "test", "--lib", "--no-run", "--message-format=json")
        messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
        if built.returncode == 0:
            return next(m["executable"] for m in messages if m.get("executable")), broken
        found = set()
        for message in messages:
            if message.get("message", {}).get("level") == "error":
                for span in message["message"]["spans"]:
                    hit = re.match(r"src/m(\d+)[./]", span["file_name"])
                    found |= {int(hit[1])} if hit else set()
        if not found - broken:
            sys.exit(built.stderr)
        broken |= found


def judge(binary, number):
    try:
        run = subprocess.run(
            [binary, "--quiet", f"m{number}::"], capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return "caught" if run.returncode else "missed"


def main():
    crate, modules = pathlib.Path(sys.argv[1]), sys.argv[2:]
    root = (crate / "src/lib.rs").read_text()
    found = {"caught": [], "missed": [], "timeout": [], "unviable": []}
    control(crate, root, modules)
    every = mutants(crate, modules)
    for begin in range(0, len(every), BATCH):
        batch = dict(enumerate(every[begin : begin + BATCH], begin))
        for number, mutant in batch.items():
            plant(crate, number, mutant, modules)
        binary, broken = build(crate, root, list(batch))
        for number, mutant in batch.items():
            verdict = "unviable" if number in broken else judge(binary, number)
            found[verdict].append(mutant["name"])
            if verdict in ("missed", "timeout"):
                print(verdict, mutant["name"], flush=True)
            uproot(crate, number)
        print(min(begin + BATCH, len(every)), "of", len(every), flush=True)
    (crate / "src/lib.rs").write_text(root)
    for verdict, names in found.items():
        (crate / f"{verdict}.txt").write_text("".join(name + "\n" for name in names))
    print("module:", ", ".join(found))
    for module in modules:
        own = re.compile(rf"src/{module}[./]")
        counts = (sum(own.match(name) is not None for name in names) for names in found.values())
        print(f"{module}:", ", ".join(map(str, counts)))


if __name__ == "__main__":
    main()
