// tokenize.mjs: for each tokenizer.json of stdin with texts, print the ids that the library of
// Hugging Face makes of them. stdin: [{"tokenizer": PATH, "special": bool, "texts": [...]}, ...]
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.argv[2] + '/');
const { Tokenizer } = require('tokenizers');
const out = [];
for (const { tokenizer, special, texts } of JSON.parse(readFileSync(0, 'utf8'))) {
    const t = Tokenizer.fromString(readFileSync(tokenizer, 'utf8'));
    const ids = [];
    for (const text of texts)
        ids.push((await t.encode(text, null, { addSpecialTokens: special })).getIds());
    out.push(ids);
}
process.stdout.write(JSON.stringify(out));
