# Pairs and expressions apply in order; pairs that follow each other apply at once.
name() { rm -f o.safetensors; $HEFT convert "$@" two.safetensors o.safetensors; echo "$?"; test ! -f o.safetensors || $HEFT ls --raw o.safetensors | cut -f1 | tr '\n' ' '; }
name --rename layer.weight=w --rename 's/layer/block/' --rename ids=q
name --rename layer.weight=layer.bias --rename layer.bias=layer.weight
name --rename ids=a --rename 's/a$/b/' --rename b=c
name --rename s.ids=x --rename s/a=b
name --rename layer.weight=ids
name --rename layer.weight=ids --drop ids
name --rename =x --rename ids=
