"""Run the command line as `python -m toolkit`."""

from toolkit.quick import main

main()
