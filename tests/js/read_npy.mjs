// node read_npy.mjs FILE...: what npyjs makes of each file, a line of JSON for each.
// The package is looked for below the current directory.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const require = createRequire(join(process.cwd(), 'package.json'))
const { load } = require('npyjs')

// As text, since JSON has neither large integers nor infinity.
const plain = value => Object.is(value, -0) ? '-0' : String(value)

for (const path of process.argv.slice(2)) {
    const bytes = readFileSync(path)
    let got
    try {
        const { dtype, shape, fortranOrder, data } = await load(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
        got = { dtype, shape, fortranOrder, values: Array.from(data, plain) }
    } catch (e) {
        got = { error: String(e) }
    }
    console.log(JSON.stringify({ path, reader: 'npyjs', ...got }))
}
