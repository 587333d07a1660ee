$HEFT --version
