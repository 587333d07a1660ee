$HEFT frobnicate
