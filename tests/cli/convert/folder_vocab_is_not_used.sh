# GGUF could store the vocabulary of the folder, .mag could not.
try() { "$HEFT" convert --force --drop '*position_ids' "$@" 2> err; echo "$? $(cat err)"; }
try bert out.gguf
try --quiet bert out.gguf
try --vocab bert/vocab.txt bert out.gguf
try bert out.mag
mkdir own && mv out.gguf own && cp bert/vocab.txt own
try own own.gguf # has a vocabulary of its own
