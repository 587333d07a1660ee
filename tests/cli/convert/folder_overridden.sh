SOURCE_DATE_EPOCH=1737028800 $HEFT convert bert one.weights --set model_name=other --set num_layers=7 --set note=hello
SOURCE_DATE_EPOCH=1737028800 $HEFT convert bert/. two.weights --set model_name=other --set num_layers=7 --set note=hello
cmp one.weights two.weights && $HEFT info --json one.weights
