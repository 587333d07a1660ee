$PYTHON - <<'END'
import json, struct
config = json.dumps({"vocab_size": 8, "context_length": 4, "embed_dim": 2, "num_layers": 1, "num_heads": 1,
                     "mlp_ratio": 4, "dropout": 0.5}).encode()
entry = struct.pack("<I1s16xIQIBQQ", 1, b"w", 1, 2, 0, 0, 448, 8)
index = struct.pack("<I", 1) + entry
front = b"GPTRSCHK" + struct.pack("<II", 2, len(config)) + config + struct.pack("<I", len(index)) + index
open("m.gptrs", "wb").write(front.ljust(448, b"\0") + struct.pack("<2f", 1, 2))
open("bare.json", "wb").write(config)
END
$HEFT edit -v --rename w=v --requires-grad true m.gptrs
$HEFT cat m.gptrs --part config | cmp - bare.json && $HEFT ls --json m.gptrs | grep -o '"name.*'
$HEFT verify m.gptrs
