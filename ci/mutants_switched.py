#!/usr/bin/env python3
"""Builds all mutants of a part of the emulator into one build, each behind a switch.

    ci/mutants_switched.py TREE PATTERN [CARGO-MUTANTS-OPTIONS...]   called by ci/mutants.sh

TREE is a copy of the workspace, which the script changes. Each mutant of a function whose name matches
PATTERN becomes an arm of that function's body, selected when `SMALT_MUTANT` is its number: one build
for all of them. The library's tests of the mutant's part run first, then the cases of the wire, then
whole services, and last the harness.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

TIMEOUT_S = 300
SWITCH = """
/// Which mutant this process is.
pub(crate) fn mutant() -> usize {
    static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("SMALT_MUTANT").map_or(0, |n| n.parse().unwrap_or(0)))
}
"""


def cargo(tree, *arguments):
    command = ["cargo", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def place(text, point):
    """Returns the offset of a line and column, both from 1."""
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: point["line"] - 1]) + point["column"] - 1


def body(text, begin):
    """Returns the start of a function's body; patterns in its parameters may contain braces too."""
    depth = 0
    for match in re.finditer(r"->|[(\[<{}>\])]", text[begin:]):
        sign = match[0]
        if sign == "{" and depth == 0:
            return begin + match.start()
        depth += (sign in "([<{") - (sign in ")]>}")
    sys.exit(f"found no function body at {begin}")


class Function:
    """A function of a file, and its mutants."""

    def __init__(self, text, span):
        self.begin, self.end = place(text, span["start"]), place(text, span["end"])
        self.body = body(text, text.index("fn ", self.begin))
        self.is_const = "const fn" in text[self.begin : self.body]
        self.bodies = {}

    def add(self, number, text, mutant):
        begin, end = (place(text, mutant["span"][edge]) for edge in ("start", "end"))
        if begin < self.body:
            return False
        changed = text[:begin] + mutant["replacement"] + text[end : self.end]
        self.bodies[number] = changed[self.body :]
        return True


def switched(text, functions, broken):
    """Returns the file with its switches, and the lines of each arm."""
    out, done, lines = "", 0, {}
    for function in sorted(functions, key=lambda f: f.begin):
        out += text[done : function.body] + "{ match crate::mutant() {\n"
        for number, body in function.bodies.items():
            if number not in broken:
                first = out.count("\n") + 1
                out += f"{number} => {body}\n"
                lines[number] = range(first, out.count("\n") + 1)
        out += "_ => " + text[function.body : function.end] + "\n} }"
        done = function.end
    return out + text[done:], lines


def build(tree, files, broken):
    """Returns the test programs by name, without the mutants that do not compile."""
    while True:
        where = {}
        for file, (text, functions) in files.items():
            changed, where[file] = switched(text, functions, broken)
            (tree / file).write_text(changed)
        built = cargo(
            tree, "test", "--no-run", "--message-format=json", "-p", "smalt",
            "-p", "smalt-harness", "--lib", "--tests",
        )
        messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
        if built.returncode == 0:
            programs = [m for m in messages if m.get("executable") and m["profile"]["test"]]
            return {
                (m["manifest_path"].split("/")[-2], m["target"]["name"]): m["executable"]
                for m in programs
            }
        found = set()
        for message in (m["message"] for m in messages if m.get("message")):
            if message["level"] == "error":
                spans = [s for s in message["spans"] if s["is_primary"]] + message["spans"]
                hits = (
                    number
                    for span in spans
                    for number, lines in where.get(span["file_name"], {}).items()
                    if span["line_start"] in lines
                )
                found |= set(list(hits)[:1])
        if not found - broken:
            sys.exit("\n".join(m["message"]["rendered"] for m in messages if m.get("message")))
        broken |= found
        print(f"{len(broken)} do not compile", flush=True)


def passes(tree, programs, step, number):
    """Returns whether the tests of a step pass, or None if they do not end."""
    package, name, *arguments = step
    environment = {**os.environ, "SMALT_MUTANT": str(number), "RUST_BACKTRACE": "0"}
    environment["PROPTEST_DISABLE_FAILURE_PERSISTENCE"] = "true"
    try:
        run = subprocess.run(
            [programs[package, name], "--quiet", *arguments], cwd=tree / package, env=environment,
            capture_output=True, timeout=TIMEOUT_S, check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return run.returncode == 0


def steps(file):
    """Returns the tests that judge a mutant of this file: package, program, arguments."""
    part = file.split("/")[2]
    return [
        ("emulator", "smalt", "rules::", "pipeline", f"{part}::"),
        # Malformed requests wait for timeouts.
        ("harness", "cases", "--skip", "malformed:"),
        ("emulator", "service"),
        ("harness", "checks", "conform", "histories", *["crash"] * (part == "store")),
    ]


def judge(tree, programs, number, mutant):
    for step in steps(mutant["file"]):
        passed = passes(tree, programs, step, number)
        if passed is None:
            return "timeout", step[1]
        if not passed:
            return "caught", step[1]
    return "missed", ""


def main():
    tree, pattern, *options = pathlib.Path(sys.argv[1]), re.compile(sys.argv[2]), *sys.argv[3:]
    listed = cargo(tree, "mutants", "--list", "--json", *options)
    if listed.returncode:
        sys.exit(listed.stderr)
    files, mutants, outside = {}, {}, 0
    for number, mutant in enumerate(json.loads(listed.stdout), 1):
        function = mutant["function"]
        if not function or not pattern.search(function["function_name"]):
            continue
        text, functions = files.setdefault(mutant["file"], ((tree / mutant["file"]).read_text(), []))
        one = Function(text, function["span"])
        one = next((f for f in functions if f.begin == one.begin), one)
        if one.is_const or not one.add(number, text, mutant):
            outside += 1
            continue
        if one not in functions:
            functions.append(one)
        mutants[number] = mutant
    print(f"{len(mutants)} mutants, {outside} more cannot be switched", flush=True)
    library = tree / "emulator/src/lib.rs"
    library.write_text(library.read_text() + SWITCH)
    broken = set()
    programs = build(tree, files, broken)
    for step in steps(next(iter(files))):
        if not passes(tree, programs, step, 0):
            sys.exit(f"{step} fails without a mutant")
    found = collections.Counter({"unviable": len(broken)})
    alive = {n: m for n, m in mutants.items() if n not in broken}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda one: (one[1], *judge(tree, programs, *one)), alive.items())
        for done, (mutant, verdict, by) in enumerate(verdicts, 1):
            found[verdict] += 1
            found[f"by {by}"] += verdict == "caught"
            if verdict != "caught":
                print(verdict, mutant["name"], by, flush=True)
            if done % 100 == 0:
                print(done, "of", len(alive), flush=True)
    print(dict(found))


if __name__ == "__main__":
    main()
