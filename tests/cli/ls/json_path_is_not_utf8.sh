cp small.safetensors "$(printf 'bad\377name.safetensors')"
$HEFT ls --json "$(printf 'bad\377name.safetensors')" | $PYTHON -c '
import json, sys
print(ascii(json.loads(sys.stdin.buffer.read().decode("utf-8", "strict"))["file"]))'
