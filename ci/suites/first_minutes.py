"""Runs the blocks of a page that are marked `sh run`, and compares their output with the lines of
the block `text expect` after them; parses the blocks of YAML and JSON.

    first_minutes.py PAGE DIRECTORY [WORD...]

The first block always runs. With words, the other blocks run only in sections with one of the words
in the title, and in the section that the others need: "Azure CLI".
"""

import json
import os
import re
import subprocess
import sys

import yaml

PAGE, DIRECTORY, *WORDS = sys.argv[1:]
ALWAYS = ["First minutes", "Azure CLI"]
FENCE = re.compile(r"^(#+) (?P<title>.*)$|^```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)


def blocks():
    """Returns section, kind and text of each block."""
    title = ""
    with open(PAGE, encoding="utf-8") as file:
        for found in FENCE.finditer(file.read()):
            if found["title"]:
                title = found["title"]
            else:
                yield title, found["kind"].strip(), found["text"]


def is_chosen(title):
    return not WORDS or title in ALWAYS or any(word in title for word in WORDS)


def run(script):
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=DIRECTORY, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        if os.environ.get('TRACE'):
            print(said)
        said = said[-1500:]
        raise RuntimeError(f"status {done.returncode}: {said}")
    return done.stdout + done.stderr


def main():
    passed = failed = 0
    output = None
    for title, kind, text in blocks():
        if not is_chosen(title):
            continue
        try:
            if kind == "sh run":
                output = run(text)
            elif kind == "text expect":
                if output is None:
                    continue  # The block that should have printed it has failed.
                missing = [line for line in text.splitlines() if line not in output]
                if missing:
                    raise RuntimeError(f"{missing} is not in {output[-1500:]!r}")
            elif kind == "yaml":
                yaml.safe_load(text)
            elif kind == "json":
                json.loads(text)
            else:
                continue
            passed += 1
        except Exception as error:
            output = None
            failed += 1
            print(f"FAILED {title}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
