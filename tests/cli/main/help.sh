$HEFT --help
