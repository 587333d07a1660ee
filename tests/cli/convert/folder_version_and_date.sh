show() { $HEFT convert --force "$@" bert out.weights; echo "exit $?"; $HEFT info --json out.weights | grep -o '"model_version[^,]*,\|"created_at[^,}]*'; rm -f out.weights; }
with() { sed -i "s/^{/{$1, /" bert/config.json; shift; show "$@"; }
export SOURCE_DATE_EPOCH=1737028800
with '"transformers_version": "4.8.2", "_commit_hash": "abc"'
with '"version": 3, "date": 86400'
with '"created_at": "2024-05-01T10:00:00+02:00", "model_version": "1.0.0"'
show --set model_version=2.0 --set created_at=2025-01-16
sed -i 's/"created_at": "[^"]*"/"created_at": 18446744073709551615/' bert/config.json
show
sed -i 's/"created_at": 18446744073709551615/"created_at": "yesterday"/' bert/config.json
show
show --strict
