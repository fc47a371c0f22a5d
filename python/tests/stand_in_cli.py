"""The `schedlab` command over the stand-in engine, for tests that need a process of their own."""

import sys

import fake_engine
from schedlab.cli import main
from schedlab.engine import Engine

sys.exit(main(sys.argv[1:], Engine(fake_engine)))
