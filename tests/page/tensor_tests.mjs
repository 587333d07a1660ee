// Maps of values, searches, copies and files of tensors.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'
import { load } from './page_modules.mjs'

const counted = (count, value) => Buffer.from(Float32Array.from({ length: count }, (_, i) => value(i)).buffer)

function writeCube(models) {
    return writeSafetensors(join(models, 'cube.safetensors'), [
        ['cube', 'F32', [3, 4, 5], counted(60, i => i)], ['flat.weight', 'F32', [300, 640], counted(192000, i => i % 640)],
        ['hole', 'F32', [2, 2], floats(1, NaN, -3, 0)], ['half.bias', 'F16', [2], Buffer.from([0, 0x3c, 0, 0xc0])],
        ['brain', 'BF16', [2], Buffer.from([0x80, 0x3f, 0x00, 0xc0])]])
}

async function begin({ browser, servers, models }, options) {
    const visit = await Visit.begin(browser, servers.page, options)
    await visit.openFile(writeCube(models))
    return visit
}

async function choose(visit, row) {
    await visit.page.click(`#tensor-table tr[data-row="${row}"]`)
    const name = await visit.page.$eval(`#tensor-table tr[data-row="${row}"]`, r => r.cells[0].textContent)
    await visit.page.waitForFunction(n => document.querySelector('#detail h2')?.textContent === n && document.querySelector('#detail .tensor-actions'), name)
}

const sizeOf = visit => visit.page.$eval('#detail canvas', c => [c.width, c.height])

// Point at the middle of a field of the map.
async function pointAt(visit, x, y) {
    const canvas = visit.page.locator('#detail canvas')
    await canvas.scrollIntoViewIfNeeded()
    const box = await canvas.boundingBox()
    const [width, height] = await sizeOf(visit)
    await visit.page.mouse.move(box.x + (x + 0.5) * box.width / width, box.y + (y + 0.5) * box.height / height)
    return visit.text('#detail .readout')
}

async function* mapsOfValues(context) {
    const visit = await begin(context)
    await choose(visit, 0)
    yield* differs('all leading axes below each other', await sizeOf(visit), [5, 12])
    yield* differs('a value under the pointer', await pointAt(visit, 3, 6), '[1, 2, 3]: 33')
    const axes = await visit.page.$$eval('#detail .map-tools select', all => all.map(s => s.selectedOptions[0].textContent))
    yield* differs('axes of the whole tensor', axes, ['rows: axes 0 to 1', 'columns: axis 2 (5)'])
    yield* differs('indices of the whole tensor', await visit.page.locator('#detail .axis-index').count(), 0)
    await visit.page.selectOption('#detail select[aria-label=Columns]', '1')
    await visit.page.waitForFunction(() => document.querySelector('#detail canvas').width === 4)
    yield* differs('columns that were rows', await pointAt(visit, 2, 3), '[3, 2]: 13') // 2 * 5 + 3
    await visit.page.click('#detail .map-tools button:text-is("Whole tensor")')
    await visit.page.selectOption('#detail select[aria-label=Rows]', '0')
    await visit.page.waitForFunction(() => document.querySelector('#detail canvas').height === 3)
    await visit.page.fill('#detail input[aria-label="Index of axis 1"]', '3')
    await visit.page.press('#detail input[aria-label="Index of axis 1"]', 'Enter')
    await visit.page.waitForFunction(() => document.querySelector('#detail [aria-label="Index of axis 1"]').value === '3' && !document.querySelector('#detail [aria-busy]'))
    yield* differs('a value of a slice', await pointAt(visit, 2, 1), '[1, 2]: 37') // 1 * 20 + 3 * 5 + 2
    await visit.page.selectOption('#detail select[aria-label=Columns]', '1')
    await visit.page.waitForFunction(() => document.querySelector('#detail canvas').width === 4)
    yield* differs('a value of other axes', await pointAt(visit, 2, 2), '[2, 2]: 50') // 2 * 20 + 2 * 5 + 0
    await choose(visit, 2)
    yield* lacks('NaN under the pointer', await pointAt(visit, 1, 0), 'NaN')
    yield* lacks('legend', await visit.text('#detail figcaption'), 'NaN: black')
    yield* silent(visit)
    await visit.close()
}

async function* zoomOfAMap(context) {
    const visit = await begin(context)
    await choose(visit, 1)
    yield* differs('fields', await sizeOf(visit), [256, 256])
    yield* lacks('a mean', await pointAt(visit, 0, 0), 'mean 1', '0–2')
    await visit.page.click('#detail .map-tools button:text-is("Greatest")')
    yield* lacks('the greatest', await pointAt(visit, 1, 0), 'greatest 4')
    const box = await visit.page.locator('#detail canvas').boundingBox()
    await visit.page.mouse.move(box.x + 10, box.y + 10)
    await visit.page.mouse.down()
    await visit.page.mouse.move(box.x + 60, box.y + 60)
    await visit.page.mouse.up()
    await visit.page.waitForSelector('#detail .map-tools button:text-is("Zoom out")')
    const [width] = await sizeOf(visit)
    if (width >= 150)
        yield `the zoomed map has ${width} columns`
    const text = await pointAt(visit, 5, 5)
    const [, column, value] = /, (\d+)\]: (\d+)$/.exec(text) ?? []
    yield* differs('a single value', value, column)
    await visit.page.click('#detail .map-tools button:text-is("Whole tensor")')
    yield* differs('fields of the whole', await sizeOf(visit), [256, 256])
    await visit.page.focus('#detail canvas')
    for (const key of ['ArrowRight', 'ArrowDown', '+'])
        await visit.page.keyboard.press(key)
    await visit.page.waitForSelector('#detail .map-tools button:text-is("Zoom out")')
    yield* silent(visit)
    await visit.close()
}

async function found(visit, text, count) {
    await visit.page.fill('#tensor-table input', text)
    await visit.page.waitForFunction(n => document.querySelector('#tensor-table [role=status]').textContent === `${n} of 5 rows`, count)
    return (await visit.names()).slice(0, count)
}

async function* searches(context) {
    const visit = await begin(context)
    for (const [text, want] of [['*.weight', ['flat.weight']], ['{cube,hole}', ['cube', 'hole']], ['?alf*', ['half.bias']], ['type:f16', ['half.bias', 'brain']],
        ['type:f16 half', ['half.bias']], ['size>1K', ['flat.weight']], ['shape:*,4,5', ['cube']], ['rank:2 size<1k', ['hole']], ['[3, 4, 5]', ['cube']], ['CUBE', ['cube']]])
        yield* differs(`names for ${text}`, await found(visit, text, want.length), want)
    await found(visit, 'la ght', 1)
    yield* differs('marks', await visit.page.$$eval('#tensor-table tr[data-row="0"] mark', all => all.map(m => m.textContent)), ['la', 'ght'])
    await visit.page.fill('#tensor-table input', 'size>much')
    await visit.page.waitForSelector('#tensor-table input[aria-invalid=true]')
    yield* lacks('a search that is not understood', await visit.text('#tensor-table [role=status]'), 'size>1M')
    await visit.page.fill('#tensor-table input', '*.weight')
    await visit.page.waitForSelector('#tensor-table code')
    yield* differs('the command', await visit.text('#tensor-table code'), "heft ls cube.safetensors '*.weight'")
    yield* silent(visit)
    await visit.close()
}

async function downloaded(visit, button) {
    const [download] = await Promise.all([visit.page.waitForEvent('download'), visit.page.click(button)])
    return [download.suggestedFilename(), await download.path()]
}

// Files are judged by other programs.
const python = (code, ...args) => JSON.parse(execFileSync(process.env.PYTHON || '/usr/bin/python3', ['-c', code, ...args], { maxBuffer: 1 << 28 }))
const READ_NPY = 'import sys, json, numpy as n; a = n.load(sys.argv[1]); print(json.dumps([str(a.dtype), a.shape, a.ravel().tolist()]))'
const READ_HEADER = 'import sys, json, struct; f = open(sys.argv[1], "rb"); n, = struct.unpack("<Q", f.read(8)); h = json.loads(f.read(n)); b = f.read(); print(json.dumps([n % 8, {k: [v["dtype"], v["shape"], b[slice(*v["data_offsets"])].hex()] for k, v in h.items()}]))'

async function* filesOfTensors(context) {
    const visit = await begin(context)
    await choose(visit, 3)
    const [name, path] = await downloaded(visit, '#detail button:text-is("Save as .npy")')
    yield* differs('name of the array', name, 'half.bias.npy')
    yield* differs('a NumPy array', python(READ_NPY, path), ['float16', [2], [1, -2]])
    await choose(visit, 4)
    const [, other] = await downloaded(visit, '#detail button:text-is("Save as .npy")')
    yield* differs('a type that NumPy lacks', python(READ_NPY, other), ['float32', [2], [1, -2]])
    yield* lacks('what became of the type', await visit.text('#detail .tensor-actions [role=status]'), '32-bit floats', 'bf16')
    await found(visit, 'rank:1', 2)
    const [selected, selection] = await downloaded(visit, '#tensor-table button:text-is("Save 2 tensors as .safetensors")')
    yield* differs('name of the selection', selected, 'cube-selection.safetensors')
    yield* differs('a selection', python(READ_HEADER, selection), [0, { 'half.bias': ['F16', [2], '003c00c0'], brain: ['BF16', [2], '803f00c0'] }])
    yield* differs('heft reads the selection', context.json('ls', '--json', selection).tensors.map(t => t.name).sort(), ['brain', 'half.bias'])
    yield* silent(visit)
    await visit.close()
}

// Types that safetensors lacks become floats, and the page says so.
async function* filesOfBlocks(context) {
    const { models, heft, json, browser, servers } = context
    writeCube(models)
    heft('convert', '--force', '--cast', 'flat.weight=f16', '--keep', 'flat.weight', 'cube.safetensors', 'plain.gguf')
    heft('convert', '--force', '--cast', 'flat.weight=q4_0', '--keep', '*', 'plain.gguf', 'blocks.gguf')
    if (json('ls', '--json', 'blocks.gguf').tensors[0].dtype === 'f16')
        yield 'the sample has no blocks'
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'blocks.gguf'))
    await visit.page.waitForSelector('#tensor-table button:text-is("Save 1 tensor as .safetensors")')
    const [, path] = await downloaded(visit, '#tensor-table button:text-is("Save 1 tensor as .safetensors")')
    const [, header] = python(READ_HEADER, path)
    yield* differs('type and shape', header['flat.weight'].slice(0, 2), ['F32', [300, 640]])
    const want = readFileSync(execAndSave(heft, models))
    yield* differs('values', header['flat.weight'][2] === want.toString('hex'), true)
    yield* lacks('what became of the type', await visit.page.textContent('#tensor-table p[role=status]'), 'became 32-bit floats: flat.weight')
    yield* silent(visit)
    await visit.close()
}

function execAndSave(heft, models) {
    heft('cat', '--cast', 'f32', 'blocks.gguf', 'flat.weight', '--force', '-o', 'flat.bin')
    return join(models, 'flat.bin')
}

async function* copies(context) {
    const visit = await begin(context, { permissions: ['clipboard-read', 'clipboard-write'] })
    await choose(visit, 2)
    const copied = async title => {
        await visit.page.click(`#detail button:text-is("${title}")`)
        await visit.page.waitForFunction(() => [...document.querySelectorAll('#detail button')].some(b => b.textContent === 'Copied'))
        await visit.page.waitForFunction(() => ![...document.querySelectorAll('#detail button')].some(b => b.textContent === 'Copied'))
        return visit.page.evaluate(() => navigator.clipboard.readText())
    }
    yield* differs('the name', await copied('Copy name'), 'hole')
    const { name, shape, statistics } = JSON.parse(await copied('Copy JSON'))
    yield* differs('JSON', [name, shape, statistics.nan, statistics.min], ['hole', [2, 2], 1, -3])
    yield* differs('the command', await copied('Copy the command'), 'heft stats cube.safetensors hole')
    yield* differs('values', await copied('Copy the values of the row'), '1, NaN')
    yield* silent(visit)
    await visit.close()
}

// Commands are words for a shell, whatever a name holds.
async function* quotedWords({ site }) {
    const { quoted } = await load(site, 'commands.js')
    for (const word of ["it's", 'a b', '$HOME', '`x`', '-rf', 'a\nb', 'ünï', "\\'", '*', '!x', '\t', ''])
        yield* differs(`the word ${JSON.stringify(word)}`, execFileSync('bash', ['-c', `printf %s ${quoted(word)}`]).toString(), word)
}

async function* patterns({ site }) {
    const { globOf } = await load(site, 'glob.js')
    const { queryOf } = await load(site, 'query.js')
    for (const [pattern, name, fits] of [['*', '', true], ['a*c', 'abbc', true], ['a*c', 'abcd', false], ['[a-c]?', 'bx', true], ['[!a-c]?', 'bx', false],
        ['{a,b{c,d}}.w', 'bd.w', true], ['{a,b}', 'c', false], ['a\\*', 'a*', true], ['a\\*', 'ab', false], ['{a', '{a', true], ['[', '[', true]])
        yield* differs(`${pattern} and ${name}`, globOf(pattern)(name), fits)
    const start = Date.now()
    globOf('a*'.repeat(30) + 'b')('a'.repeat(3000))
    if (Date.now() - start > 2000)
        yield 'a pattern of many stars takes long'
    yield* differs('a problem', queryOf('shape:x').problem !== null, true)
    yield* differs('words', queryOf('a [4, 768] size>=2GiB').conditions.map(c => c.kind), ['word', 'word', 'size'])
}

export const tensorTests = {
    'patterns of names': patterns,
    'commands are quoted': quotedWords,
    'maps of values': mapsOfValues,
    'zoom of a map': zoomOfAMap,
    'searches of the command': searches,
    'files of tensors': filesOfTensors,
    'files of blocks': filesOfBlocks,
    'copies of a tensor': copies
}
