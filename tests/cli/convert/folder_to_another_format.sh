$HEFT convert bert out.mag --drop '*position_ids' && $HEFT ls out.mag
