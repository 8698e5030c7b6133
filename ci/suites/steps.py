"""What scripts that drive programs share: steps, which run in the order of the file, and their count."""

import filecmp
import subprocess

STEPS = []


def step(function):
    STEPS.append(function)
    return function


def run(directory, *command):
    result = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=300, check=False
    )
    if result.returncode != 0:
        said = result.stderr or result.stdout
        raise RuntimeError(f"{' '.join(command)}: {said[-400:]}")
    return result.stdout


def same(left, right):
    """Returns whether two directories have equal contents."""
    found = filecmp.dircmp(left, right)
    if found.left_only or found.right_only or found.diff_files or found.funny_files:
        return False
    return all(same(f"{left}/{name}", f"{right}/{name}") for name in found.common_dirs)


def play():
    """Prints `FAILED step: why` for each step that fails, and `N passed, N failed` at the end."""
    failed = 0
    for one in STEPS:
        try:
            one()
        except Exception as error:
            failed += 1
            print(f"FAILED {one.__name__}: {' '.join(str(error).split()) or type(error).__name__}")
    print(f"{len(STEPS) - failed} passed, {failed} failed")
