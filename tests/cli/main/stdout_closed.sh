$HEFT formats >&-
