$HEFT --frobnicate
