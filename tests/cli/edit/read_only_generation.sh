# A generation that heft only reads is not edited, whatever the edit.
$PYTHON -c "
import struct
text = lambda s: struct.pack('<I', len(s)) + s
head = b'GGUF' + struct.pack('<III', 1, 1, 1) + text(b'k') + struct.pack('<Ii', 5, 7)
head += text(b'w') + struct.pack('<IIIQ', 1, 8, 0, 0)
open('old.gguf', 'wb').write(head + bytes(-len(head) % 32 + 32))"
$HEFT info old.gguf | grep Format
cp old.gguf before
for how in '--set k=8' '--unset k' '--rename w=v' '--dry-run --set k=8'; do
    $HEFT edit $how old.gguf 2>/dev/null
    echo "$how = $?"
    cmp old.gguf before
done
