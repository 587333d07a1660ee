// Files for the tests of the page, written without heft.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'

function withHeader(header) {
    let text = Buffer.from(JSON.stringify(header))
    text = Buffer.concat([text, Buffer.alloc((8 - text.length % 8) % 8, ' ')])
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(text.length))
    return Buffer.concat([length, text])
}

// The bytes of a safetensors file. tensors: [name, dtype, shape, Buffer]
export function safetensors(tensors, metadata) {
    const header = metadata ? { __metadata__: metadata } : {}
    let at = 0
    for (const [name, dtype, shape, data] of tensors) {
        Object.defineProperty(header, name, { enumerable: true, value: { dtype, shape, data_offsets: [at, at + data.length] } })
        at += data.length
    }
    return Buffer.concat([withHeader(header), ...tensors.map(t => t[3])])
}

export function writeSafetensors(path, tensors, metadata) {
    writeFileSync(path, safetensors(tensors, metadata))
    return path
}

export const floats = (...values) => Buffer.from(Float32Array.from(values).buffer)

// A small decoder with values that are known.
export function decoder() {
    const matrix = (rows, columns, value) => {
        const data = new Float32Array(rows * columns)
        for (let i = 0; i < data.length; i++)
            data[i] = value(i)
        return Buffer.from(data.buffer)
    }
    const tensors = [['embed.weight', 'F32', [200, 64], matrix(200, 64, i => Math.sin(i) / 10)]]
    for (let layer = 0; layer < 12; layer++) {
        const block = `layers.${layer}.`
        tensors.push([block + 'attention.weight', 'F32', [64, 64], matrix(64, 64, i => Math.cos(i + layer) / 8)],
            [block + 'norm.weight', 'F32', [64], matrix(1, 64, () => 1)],
            [block + 'norm.bias', 'F32', [64], matrix(1, 64, i => i - 32)])
    }
    tensors.push(['steps', 'I64', [3], Buffer.from(BigInt64Array.of(-5n, 2n ** 62n + 1n, 7n).buffer)],
        ['odd', 'F32', [2, 3], floats(0, -2, 6, NaN, Infinity, 0)])
    return tensors
}

// A safetensors file with `count` tensors of one byte: layers.0.w0, layers.0.w1, ...
export function writeMany(path, count) {
    const pieces = []
    for (let i = 0; i < count; i++)
        pieces.push(`"layers.${Math.floor(i / 10)}.w${i % 10}":{"dtype":"U8","shape":[1],"data_offsets":[${i},${i + 1}]}`)
    let text = '{' + pieces.join(',') + '}'
    text += ' '.repeat((8 - text.length % 8) % 8)
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(text.length))
    const file = openSync(path, 'w')
    writeSync(file, length)
    writeSync(file, text)
    writeSync(file, Buffer.alloc(count, 1))
    closeSync(file)
    return path
}
