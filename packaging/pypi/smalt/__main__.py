"""Runs `smalt`: `python -m smalt`."""

import os
import sys

from smalt import program

if __name__ == "__main__":
    path = program()
    os.execv(path, ["smalt", *sys.argv[1:]])
