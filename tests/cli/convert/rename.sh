name() { rm -f o.safetensors; $HEFT convert "$@" two.safetensors o.safetensors && $HEFT ls --raw o.safetensors | cut -f1 | tr '\n' ' '; echo; }
name --rename 's/layer/block/'
name --rename 's|(.*)\.(.*)|\2.[&].\1|'
name --rename 's/[ei]/<&>/g'
name --rename 's/e/E/' --rename 's/E/\&/'
name --rename 's/x*/-/g'
name --rename 's,\,,;,'
name --rename 's/layer.*/same/'; echo $?
name --rename 's/(/x/'
name --rename 's/a/b'
name --rename 's/a/b/q'
name --rename 'y/a/b/'
