$HEFT convert --to
