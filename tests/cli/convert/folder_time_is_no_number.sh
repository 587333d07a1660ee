SOURCE_DATE_EPOCH=yesterday $HEFT convert bert out.weights
