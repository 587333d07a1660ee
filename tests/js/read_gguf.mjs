// node read_gguf.mjs FILE...: what two readers of GGUF make of each file, a line of JSON for each.
// Their packages are looked for below the current directory.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(join(process.cwd(), 'package.json'))
const { gguf } = require('@huggingface/gguf')
const { ggufMetadata } = await import(pathToFileURL(join(process.cwd(), 'node_modules/hyllama/src/hyllama.js')))

// As text, since JSON has neither large integers nor infinity.
const plain = (key, value) => typeof value === 'bigint' ? value.toString()
    : typeof value === 'number' ? (Object.is(value, -0) ? '-0' : String(value)) : value

const latin = text => Buffer.from(text, 'latin1').toString('utf8')
const texts = value => typeof value === 'string' ? latin(value) : Array.isArray(value) ? value.map(texts) : value

async function huggingface(path) {
    const { metadata, tensorInfos } = await gguf(path, { allowLocalFile: true })
    const tensors = tensorInfos.map(t => [t.name, t.shape, t.dtype, t.offset])
    return { metadata: Object.entries(metadata), tensors }
}

function hyllama(path) {
    const bytes = readFileSync(path)
    const { metadata, tensorInfos } = ggufMetadata(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
    const tensors = tensorInfos.map(t => [latin(t.name), t.shape, t.type, t.offset])
    return { metadata: Object.entries(metadata).map(([key, value]) => [latin(key), texts(value)]), tensors }
}

for (const path of process.argv.slice(2)) {
    for (const [name, read] of Object.entries({ huggingface, hyllama })) {
        let got
        try {
            got = await read(path)
        } catch (e) {
            got = { error: String(e) }
        }
        console.log(JSON.stringify({ path, reader: name, ...got }, plain))
    }
}
