// Modules of the page that need no browser.
import { differs } from './expect.mjs'
import { load } from './page_modules.mjs'

// Columns as the package gives them. tensors: [name (text or bytes), dtype, shape]
function columnsOf(tensors) {
    const names = tensors.map(([name]) => typeof name === 'string' ? Buffer.from(name) : Buffer.from(name))
    const dtypeNames = ['f32', 'bf16', 'q4_0']
    let end = 0
    let dimEnd = 0
    const count = (shape) => shape.reduce((a, b) => a * b, 1)
    return {
        count: tensors.length, nameBytes: new Uint8Array(Buffer.concat(names)),
        nameEnds: Uint32Array.from(names, n => end += n.length), dtypeNames,
        dtypes: Uint16Array.from(tensors, ([, dtype]) => dtypeNames.indexOf(dtype)),
        dims: Float64Array.from(tensors.flatMap(([, , shape]) => shape)),
        dimEnds: Uint32Array.from(tensors, ([, , shape]) => dimEnd += shape.length),
        elements: Float64Array.from(tensors, ([, , shape]) => count(shape)),
        nbytes: Float64Array.from(tensors, ([, , shape]) => 4 * count(shape)),
        offsets: Float64Array.from(tensors, (_, i) => i ? 64 * i : NaN)
    }
}

async function* escapedNames({ site }) {
    const { nameOfBytes, nameText, plainText } = await load(site, 'names.js')
    const cases = [['', '""'], ['a.b', 'a.b'], ['a\\b', 'a\\\\b'], ['é漢\u{1F600}', 'é漢\u{1F600}'], ['\u202e\u2066\ufeff', '\\u202e\\u2066\\ufeff'],
        ['\x00\x1b\x7f\x85', '\\x00\\x1b\\x7f\\x85'], [[0xff, 0x61], '\\xffa'], [[0xc0, 0xaf], '\\xc0\\xaf'], [[0xed, 0xa0, 0x80], '\\xed\\xa0\\x80'],
        [[0xe2, 0x82], '\\xe2\\x82'], [[0xf4, 0x90, 0x80, 0x80], '\\xf4\\x90\\x80\\x80'], ['\t\r\n', '\\t\\r\\n']]
    for (const [name, want] of cases) {
        const bytes = typeof name === 'string' ? Buffer.from(name) : Uint8Array.from(name)
        yield* differs(`name ${JSON.stringify(name)}`, nameOfBytes(bytes, 0, bytes.length), want)
        if (typeof name === 'string')
            yield* differs(`text ${JSON.stringify(name)}`, nameText(name), want)
    }
    yield* differs('a message', plainText('C:\\x\n'), 'C:\\x\\n')
    yield* differs('half of a pair', nameText('\ud800'), '\\ud800')
}

async function* order({ site }) {
    const { ColumnOrder } = await load(site, 'column_order.js')
    const names = ['a.10.w', 'a.2.w', 'a', 'b', 'a-x', 'a.02.w', 'A', 'a/2.b', 'é']
    const tensors = names.map((n, i) => [n, ['f32', 'bf16', 'q4_0'][i % 3], [i + 1, 768]])
    const columns = columnsOf(tensors)
    const sorter = new ColumnOrder(columns)
    const ask = async (...args) => [...(await sorter.arrange(...args)) ?? ['all']].map(i => names[i] ?? i)
    yield* differs('order of names', await ask('', 'name', false, null), ['A', 'a', 'a/2.b', 'a.2.w', 'a.02.w', 'a.10.w', 'a-x', 'b', 'é'])
    yield* differs('without an order', await ask('', null, false, null), ['all'])
    yield* differs('by size, descending', (await ask('', 'bytes', true, null))[0], 'é')
    yield* differs('missing offsets', (await ask('', 'offset', false, null)).at(-1), 'a.10.w')
    yield* differs('by type', await ask('', 'dtype', false, null), ['a.2.w', 'a-x', 'a/2.b', 'a.10.w', 'b', 'A', 'a', 'a.02.w', 'é'])
    yield* differs('words of the name', await ask('W a.2', null, false, null), ['a.2.w'])
    yield* differs('letters past ASCII', await ask('é', null, false, null), ['é'])
    yield* differs('a type', await ask('bf16', null, false, null), ['a.2.w', 'a-x', 'a/2.b'])
    yield* differs('a shape', await ask('[4, 768]', null, false, null), ['b'])
    yield* differs('names that meet', await ask('wa.', null, false, null), [])
    const [first, second] = await Promise.all([sorter.arrange('a', null, false, null), sorter.arrange('b', null, false, null)])
    yield* differs('an older search', first, null)
    yield* differs('a newer search', [...second].map(i => names[i]), ['a.2.w', 'b', 'a-x', 'a/2.b']) // bf16 has a b, too
}

// All tensors below a module, each with its sum.
function walk(tree, module, level, found) {
    if (level > 20)
        throw new Error('the tree has no end')
    const { pieces } = tree.show(module)
    for (const p of pieces) {
        if (p.tensor !== null)
            found.push(p.tensor)
        else
            walk(tree, p.module, level + 1, found)
    }
    return pieces
}

async function* tree({ site }) {
    const { ColumnOrder } = await load(site, 'column_order.js')
    const { ModuleTree } = await load(site, 'module_tree.js')
    const words = ['', 'a', 'b', '0', '1', '10', '01', '-', 'é']
    let seed = 7
    const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
    for (let round = 0; round < 50; round++) {
        const names = Array.from({ length: 1 + random(40) }, () =>
            Array.from({ length: 1 + random(5) }, () => words[random(words.length)]).join(random(2) ? '.' : '/'))
        const columns = columnsOf(names.map(n => [n, 'f32', [1 + random(9)]]))
        const modules = new ModuleTree(new ColumnOrder(columns))
        const found = []
        const pieces = walk(modules, null, 0, found)
        yield* differs(`tensors of ${JSON.stringify(names)}`, found.sort((a, b) => a - b), names.map((_, i) => i))
        const sum = pieces.reduce((total, p) => total + p.bytes, 0)
        yield* differs('sum of the pieces', sum, columns.nbytes.reduce((a, b) => a + b, 0))
    }
}

// A model with one tensor shows the tensor, and no module of its name.
async function* oneTensor({ site }) {
    const { ColumnOrder } = await load(site, 'column_order.js')
    const { ModuleTree } = await load(site, 'module_tree.js')
    const { mapOf } = await load(site, 'overview_data.js')
    for (const [name, path, piece] of [['tensor', ['all'], 'tensor'], ['a.b.weight', ['all', 'a', 'b'], 'weight'], ['', ['all'], '""']]) {
        const tree = new ModuleTree(new ColumnOrder(columnsOf([[name, 'f32', [5]]])))
        const map = mapOf(tree, null)
        yield* differs(`path of '${name}'`, map.path.map(p => p.name), path)
        yield* differs(`pieces of '${name}'`, map.pieces.map(p => [p.name, p.tensor]), [[piece, 0]])
        yield* differs(`pieces of '${name}' in the list`, tree.show(null).pieces.map(p => p.tensor), [0])
    }
}

// Rounded figures do not say that nothing, or everything, is meant.
async function* roundedFigures({ site }) {
    const { percentText, sizeText } = await load(site, 'basics.js')
    const shares = [[0, 10], [1, 100000], [5, 100], [99999, 100000], [7, 7], [0, 0]]
    yield* differs('shares', shares.map(s => percentText(...s)), ['0.0 %', '< 0.1 %', '5.0 %', '> 99.9 %', '100.0 %', '0.0 %'])
    yield* differs('sizes', [0, 1, 2, 1024].map(sizeText), ['0 bytes', '1 byte', '2 bytes', '1.0 KiB'])
}

async function* figures({ site }) {
    const { survey } = await load(site, 'survey.js')
    const values = Float64Array.from({ length: 3_000_000 }, (_, i) => 1e6 + Math.sin(i))
    let reads = []
    const read = async (from, to) => {
        reads.push([from, to])
        return values.subarray(from, to)
    }
    for (const whole of [false, true]) {
        reads = []
        const got = await survey({ read, count: values.length, columns: 1000, whole, onProgress: () => {} })
        const overlaps = reads.filter(([from], i) => i && from < reads[i - 1][1])
        yield* differs('values read twice', overlaps, [])
        const total = reads.reduce((sum, [from, to]) => sum + to - from, 0)
        yield* differs('values counted', got.count, whole ? values.length : total)
        yield* differs('all values', [got.isWhole, got.all], [whole, values.length])
        const sum = term => reads.reduce((all, [from, to]) => values.subarray(from, to).reduce((a, v) => a + term(v - 1e6), all), 0)
        const mean = sum(v => v) / total
        const std = Math.sqrt(sum(v => (v - mean) ** 2) / total)
        if (Math.abs(got.mean - 1e6 - mean) > 1e-8 || Math.abs(got.std - std) > 1e-8)
            yield `mean and deviation are ${got.mean}, ${got.std}, not ${1e6 + mean}, ${std}`
        yield* differs('bins', got.bins.reduce((a, b) => a + b, 0), got.count)
        if (got.heat.means.some(m => !(m > 999998 && m < 1000002)))
            yield 'the heat map has gaps'
    }
    const few = await survey({ read: async () => Float32Array.of(NaN, Infinity), count: 2, columns: 2, onProgress: () => {} })
    yield* differs('no finite value', [few.count, few.finite, few.nan, few.inf, few.min, few.bins], [2, 0, 1, 1, null, []])
}

async function* lists({ site }) {
    globalThis.performance ??= (await import('node:perf_hooks')).performance
    const { ListRows } = await load(site, 'list_rows.js')
    const rows = Array.from({ length: 20_000 }, (_, i) => ({ name: `n${i % 7}`, n: i % 5 === 0 ? null : (i * 7919) % 20_000 }))
    const list = new ListRows(rows, r => r.name)
    await list.arrange('n3', { value: r => r.n }, false)
    const want = rows.filter(r => r.name === 'n3').map((r, i) => [r.n, i]).sort(([a, i], [b, k]) =>
        (a === null) - (b === null) || (a ?? 0) - (b ?? 0) || i - k).map(([n]) => n)
    yield* differs('sorted rows', list.shown.map(r => r.n), want)
    await list.arrange('', null, false)
    yield* differs('all rows', list.length, rows.length)
    const older = list.arrange('n1', { value: r => r.n }, false)
    await Promise.all([older, list.arrange('n2', null, false)])
    yield* differs('a newer search', new Set(list.shown.map(r => r.name)).size === 1 && list.shown[0].name, 'n2')
}

export const moduleTests = {
    'escaped names': escapedNames,
    'order and search of tensors': order,
    'tree of modules': tree,
    'a model with one tensor': oneTensor,
    'rounded figures': roundedFigures,
    'statistics and samples': figures,
    'long lists': lists
}
