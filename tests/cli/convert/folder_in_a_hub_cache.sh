at=cache/models--somebody--mini-bert/snapshots/0123456789abcdef0123456789abcdef01234567
mkdir -p ${at%/*} && mv bert $at
show() { $HEFT info --json $1 | grep -o '"model_name[^,]*,\|"model_version[^,]*,\|"created_at[^,}]*'; }
$HEFT convert $at one.weights && show one.weights
(cd $at && $HEFT convert . "$OLDPWD/two.weights") && cmp one.weights two.weights
mv $at/../../../models--somebody--mini-bert cache/models--mini
$HEFT convert cache/models--mini/snapshots/* three.weights && show three.weights
mv cache/models--mini/snapshots/* local
mkdir -p local/.cache/huggingface/download
printf 'fedcba9876543210fedcba9876543210fedcba98\netag\n1737028800.5\n' > local/.cache/huggingface/download/config.json.metadata
$HEFT convert local four.weights && show four.weights
