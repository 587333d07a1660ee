// Quantised models as stored and decoded, alone and beside their source; and ONNX.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { violations } from './access_tests.mjs'
import { axePath, Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'

const [ROWS, COLUMNS, BLOCK] = [300, 260, 128]

// The number of a byte of float8 e4m3.
function e4m3(byte) {
    const exponent = byte >> 3 & 15, fraction = byte & 7
    const size = exponent ? (1 + fraction / 8) * 2 ** (exponent - 7) : fraction / 8 * 2 ** -6
    return byte & 128 ? -size : size
}

// A model of float8 with a scale for each block of 128 rows and columns, its config.json, and the model that it
// represents; numbers that differ in one layer.
function writeQuantised(models) {
    const folder = join(models, 'fp8')
    mkdirSync(folder, { recursive: true })
    const weight = new Uint8Array(ROWS * COLUMNS).map((_, i) => i * 37 % 126 | (i % 3 ? 0 : 128))
    const [down, across] = [ROWS, COLUMNS].map(n => Math.ceil(n / BLOCK))
    const scales = new Float32Array(down * across).map((_, i) => 2 ** (i % 9 - 4))
    const numbers = new Float32Array(weight.length).map((_, i) =>
        e4m3(weight[i]) * scales[Math.floor(i / COLUMNS / BLOCK) * across + Math.floor(i % COLUMNS / BLOCK)])
    const bf16 = values => Buffer.from(Uint16Array.from(new Uint32Array(values.buffer), u => u >>> 16).buffer)
    const changed = numbers.slice()
    changed[5] += 0.5
    const layer = n => `model.layers.${n}.mlp.up_proj.weight`
    const plain = [['norm.weight', 'F32', [2], floats(3, 4)]]
    const path = name => join(folder, name)
    const stored = [0, 1].flatMap(n => [[layer(n), 'F8_E4M3', [ROWS, COLUMNS], Buffer.from(weight)],
        [`${layer(n)}_scale_inv`, 'F32', [down, across], Buffer.from(scales.buffer)]])
    writeSafetensors(path('quantised.safetensors'), [...stored, ...plain])
    writeSafetensors(path('source.safetensors'), [[layer(0), 'BF16', [ROWS, COLUMNS], bf16(numbers)], [layer(1), 'BF16', [ROWS, COLUMNS], bf16(changed)], ...plain])
    writeFileSync(path('config.json'), JSON.stringify({ model_type: 'llama', torch_dtype: 'bfloat16',
        quantization_config: { quant_method: 'fp8', weight_block_size: [BLOCK, BLOCK] } }))
    return { quantised: [path('quantised.safetensors'), path('config.json')], source: path('source.safetensors'), layer, numbers }
}

const count = (visit, n) => visit.page.waitForFunction(n => document.querySelectorAll('#tensor-table tr[data-row]').length === n, n)
const shownForm = visit => visit.page.$eval('#form input:checked', r => r.value)
const choose = (visit, form) => visit.page.check(`#form-${form}`)

async function open(visit, paths) {
    const before = await visit.page.getAttribute('#model', 'data-id')
    await visit.page.setInputFiles('#file-input', paths)
    await visit.page.waitForFunction(id => (document.getElementById('model').dataset.id ?? null) !== id, before)
    await visit.whole()
}

async function* storedAndDecoded({ browser, servers, models }) {
    const { quantised, layer, numbers } = writeQuantised(models)
    const visit = await Visit.begin(browser, servers.page)
    await open(visit, quantised)
    await count(visit, 5)
    yield* differs('the first form', await shownForm(visit), 'stored')
    yield* lacks('stored', await visit.text('#form-text'), 'These are the tensors of the file'.toLowerCase())
    await visit.page.focus('#form-stored')
    await visit.page.keyboard.press('ArrowDown')
    await count(visit, 3)
    yield* differs('the focus stays', await visit.page.evaluate(() => document.activeElement.id), 'form-decoded')
    yield* differs('names', await visit.names(), [layer(0), layer(1), 'norm.weight'])
    yield* differs('cells', await visit.page.$eval('#tensor-table tr[data-row="0"]', r => [...r.cells].slice(1, 4).map(c => c.textContent)), ['bf16', 'fp8', `[${ROWS}, ${COLUMNS}]`])
    yield* lacks('what is decoded', await visit.text('#form-text'), 'fp8: 2 tensors', 'are those of the file')
    yield* lacks('the address', visit.page.url(), 'as=decoded')
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    yield* lacks('a tensor', await visit.text('#detail'), 'Decoded from', 'fp8, 8 bits, a scale for 128 rows × 128 columns', 'bf16')
    const [least, most] = numbers.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [0, 0])
    yield* lacks('statistics', await visit.text('#detail'), String(least), String(most))
    yield* lacks('the command', (await visit.page.$$eval('#detail code', all => all.map(c => c.textContent))).join(' '), 'heft stats quantised.safetensors')
    await visit.tab('overview')
    await visit.page.waitForFunction(n => document.querySelector('.health')?.textContent.includes(`${n} values`) && document.querySelector('.health').textContent.includes('of 3 tensors were read'), (2 * ROWS * COLUMNS + 2).toLocaleString('en'))
    yield* lacks('the overview', await visit.text('.about'), 'fp8 (2 tensors)')
    await visit.page.keyboard.press('v')
    await visit.page.waitForFunction(() => /No (problem|fault|finding)|sound|Nothing/i.test(document.querySelector('#panel-checks')?.textContent ?? ''))
    yield* lacks('checks are of the file', await visit.text('#panel-checks'), 'safetensors')
    await visit.tab('tensors')
    await visit.page.keyboard.press('d')
    await count(visit, 5)
    yield* differs('no scheme is left in the address', visit.page.url().includes('as='), false)
    yield* lacks('the command of stored tensors', (await visit.page.$$eval('#tensor-table code', all => all.map(c => c.textContent))).join(' '), 'heft ls --raw-tensors quantised.safetensors')
    yield* silent(visit)
    await visit.close()
}

async function* linksAndBack({ browser, servers, models }) {
    writeQuantised(models)
    const visit = await Visit.begin(browser, servers.page)
    const address = servers.ranges + 'fp8/quantised.safetensors'
    await visit.openAddress(address)
    await count(visit, 5)
    await choose(visit, 'decoded')
    await count(visit, 3)
    yield* differs('settings are found beside the address', visit.requests.includes(servers.ranges + 'fp8/config.json'), true)
    await visit.page.goBack()
    await count(visit, 5)
    yield* differs('Back', await shownForm(visit), 'stored')
    await visit.page.goForward()
    await count(visit, 3)
    await visit.page.reload()
    await count(visit, 3)
    yield* differs('loaded again', await shownForm(visit), 'decoded')
    yield* silent(visit)
    await visit.close()
}

async function* plainModelsHaveNoChoice({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'decoder.safetensors'))
    await visit.whole()
    yield* differs('the choice', await visit.page.isVisible('#form'), false)
    yield* silent(visit)
    await visit.close()
}

const kinds = visit => visit.page.$$eval('.chips button', all => all.map(b => b.textContent))
const compared = (visit, text) => visit.page.waitForFunction(text => document.querySelector('.compare .outcome')?.textContent.includes(text), text)

async function second(visit, paths) {
    const [chooser] = await Promise.all([visit.page.waitForEvent('filechooser'), visit.page.click('#panel-compare button:text-is("Choose a second file")')])
    await chooser.setFiles(paths)
}

async function* besideItsSource({ browser, servers, models }) {
    const { quantised, source, layer } = writeQuantised(models)
    const visit = await Visit.begin(browser, servers.page)
    await open(visit, [source])
    await visit.tab('compare')
    await second(visit, quantised)
    await compared(visit, '3 tensors: 2 equal, 1 differ')
    yield* lacks('B', (await visit.page.$$eval('.compare-sides .side', all => all[1].textContent)), 'decoded from fp8')
    yield* differs('kinds', await kinds(visit), ['All 1', 'Values 1', 'By module'])
    yield* differs('the tensor', await visit.page.$eval('.compare-list tr[data-row="0"]', r => [r.cells[0].textContent, r.cells[4].textContent]), [layer(1), '1'])
    await visit.page.click('.compare button:text-is("Compare as stored")')
    await compared(visit, '5 tensors: 1 equal')
    await visit.page.click('.compare button:text-is("Compare decoded values")')
    await compared(visit, '3 tensors: 2 equal')
    yield* silent(visit)
    await visit.close()
}

// The quantised model is the first one, and shown as stored: both are opened again.
async function* sourceBesideIt({ browser, servers, models }) {
    const { quantised, source } = writeQuantised(models)
    const visit = await Visit.begin(browser, servers.page)
    await open(visit, quantised)
    await visit.tab('compare')
    await second(visit, [source])
    await compared(visit, '5 tensors: 1 equal')
    await visit.page.click('.compare button:text-is("Compare decoded values")')
    await compared(visit, '3 tensors: 2 equal, 1 differ')
    yield* differs('the form of A', await shownForm(visit), 'decoded')
    yield* silent(visit)
    await visit.close()
}

// Shards with an index and without one, and a model that is chosen while another form is opened.
async function* severalFiles({ browser, servers, models }) {
    const { quantised } = writeQuantised(models)
    const folder = join(models, 'fp8-shards')
    mkdirSync(folder, { recursive: true })
    const all = readFileSync(quantised[0])
    const length = Number(all.readBigUInt64LE(0))
    const header = Object.entries(JSON.parse(all.subarray(8, 8 + length)))
    const path = name => join(folder, name)
    const shard = n => `model-0000${n}-of-00002.safetensors`
    const map = {}
    for (const n of [1, 2]) {
        // The scales lie in another file than the weights.
        const own = header.filter(([name]) => name.endsWith('scale_inv') === (n === 2))
        own.forEach(([name]) => { map[name] = shard(n) })
        writeSafetensors(path(shard(n)), own.map(([name, t]) => [name, t.dtype, t.shape, all.subarray(8 + length + t.data_offsets[0], 8 + length + t.data_offsets[1])]))
    }
    copyFileSync(quantised[1], path('config.json'))
    writeFileSync(path('model.safetensors.index.json'), JSON.stringify({ metadata: {}, weight_map: map }))
    const files = [shard(1), shard(2), 'config.json'].map(path)
    const visit = await Visit.begin(browser, servers.page)
    for (const [what, list] of [['without an index', files], ['with an index', [...files, path('model.safetensors.index.json')]]]) {
        await open(visit, list)
        await count(visit, 5)
        await choose(visit, 'decoded')
        await count(visit, 3)
        yield* lacks(what, await visit.text('#form-text'), 'fp8: 2 tensors')
        yield* differs(`${what}: types`, await visit.page.$$eval('#tensor-table tr[data-row]', all => all.map(r => r.cells[1].textContent)), ['bf16', 'bf16', 'f32'])
        await visit.page.click('#tensor-table tr[data-row="0"]')
        await visit.page.waitForSelector('#detail .value-table tr[data-row]')
        yield* differs(`${what}: parts are missing`, await visit.page.isVisible('#incomplete.incomplete'), false)
    }
    for (let i = 0; i < 7; i++)
        await visit.page.keyboard.press('d')
    await open(visit, [join(models, 'decoder.safetensors')])
    await visit.page.waitForTimeout(500)
    yield* differs('the last choice counts', [await visit.text('#file-name'), await visit.page.isVisible('#form')], ['decoder.safetensors', false])
    yield* silent(visit)
    await visit.close()
}

// A scheme that is recognised and not decoded; and parts that contradict each other.
async function* whatIsNotDecoded({ browser, servers, models }) {
    const folder = join(models, 'left')
    mkdirSync(folder, { recursive: true })
    const file = writeSafetensors(join(folder, 'hqq.safetensors'), [['a.W_q', 'U8', [4, 8], Buffer.alloc(32, 7)], ['a.scale', 'F16', [4, 1], Buffer.alloc(8, 60)],
        ['a.zero', 'F16', [4, 1], Buffer.alloc(8, 60)], ['b', 'F32', [2], floats(1, 2)]])
    const visit = await Visit.begin(browser, servers.page)
    await open(visit, [file])
    await choose(visit, 'decoded')
    await visit.page.waitForFunction(() => /Not decoded, and shown as stored: hqq/.test(document.getElementById('form-text').textContent))
    await count(visit, 4)
    // A group that does not exist is found when values are read.
    const groups = writeSafetensors(join(folder, 'groups.safetensors'), [['l.qweight', 'I32', [4, 8], Buffer.alloc(128, 7)], ['l.scales', 'F16', [1, 8], Buffer.alloc(16, 60)],
        ['l.qzeros', 'I32', [1, 1], Buffer.alloc(4, 7)], ['l.g_idx', 'I32', [32], Buffer.alloc(128, 9)]])
    const gptq = join(folder, 'quantize_config.json')
    writeFileSync(gptq, JSON.stringify({ quant_method: 'gptq', bits: 4, group_size: -1, desc_act: true }))
    await open(visit, [groups, gptq])
    await choose(visit, 'decoded')
    await count(visit, 1)
    await visit.tab('overview')
    await visit.page.waitForFunction(() => document.querySelector('.health')?.textContent.includes('The values of 1 tensor cannot be read'))
    await visit.tab('tensors')
    const { layer } = writeQuantised(models)
    const bad = writeSafetensors(join(folder, 'bad.safetensors'), [[layer(0), 'F8_E4M3', [ROWS, COLUMNS], Buffer.alloc(ROWS * COLUMNS, 1)], [layer(0) + '_scale_inv', 'F32', [2, 2], floats(1, 1, 1, 1)]])
    const config = join(folder, 'config.json')
    writeFileSync(config, JSON.stringify({ quantization_config: { quant_method: 'fp8', weight_block_size: [BLOCK, BLOCK] } }))
    await open(visit, [bad, config])
    await choose(visit, 'decoded')
    const text = await visit.failure()
    yield* lacks('contradictions', text, 'scale')
    yield* differs('the form', await shownForm(visit), 'stored')
    await count(visit, 2)
    await visit.close()
}

// A name of a scheme that is the model's own is text, and short.
async function* hostileSettings({ browser, servers, models }) {
    const folder = join(models, 'hostile')
    mkdirSync(folder, { recursive: true })
    const file = writeSafetensors(join(folder, 'a.safetensors'), [['a.qweight', 'I32', [4, 8], Buffer.alloc(128, 7)], ['a.scales', 'F16', [1, 8], Buffer.alloc(16, 60)]])
    const config = join(folder, 'config.json')
    const visit = await Visit.begin(browser, servers.page)
    for (const text of ['{"quantization_config": {"quant_method": "<b>\\u202e' + 'x'.repeat(100000) + '"}}', '{"quantization_config": [', '{"quantization_config": 7}', '']) {
        writeFileSync(config, text)
        await visit.page.$eval('#file-input', input => { input.value = '' })
        await open(visit, [file, config])
        await choose(visit, 'decoded')
        await visit.page.waitForFunction(() => document.getElementById('form-text').textContent.includes('those of the file') || !document.getElementById('failure').hidden)
        const said = await visit.text('#form-text')
        yield* differs('length and marks', [said.length < 400, said.includes('\u202e'), await visit.page.$$eval('#form b', all => all.length)], [true, false, 0])
    }
    await visit.close()
}

// Decoded tensors that are saved are those of the source.
async function* savedTensors({ browser, servers, models }) {
    const { quantised, source } = writeQuantised(models)
    const visit = await Visit.begin(browser, servers.page)
    await open(visit, quantised)
    await choose(visit, 'decoded')
    await count(visit, 3)
    const [download] = await Promise.all([visit.page.waitForEvent('download'), visit.page.click('#tensor-table button:text-is("Save 3 tensors as .safetensors")')])
    const saved = join(models, 'saved.safetensors')
    copyFileSync(await download.path(), saved)
    const header = path => {
        const all = readFileSync(path), length = Number(all.readBigUInt64LE(0))
        return [JSON.parse(all.subarray(8, 8 + length)), all.subarray(8 + length)]
    }
    const [[a, bytes], [b, wanted]] = [header(saved), header(source)]
    for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(b)) {
        yield* differs(`type of ${name}`, [a[name].dtype, a[name].shape], [dtype, shape])
        const isEqual = bytes.subarray(...a[name].data_offsets).equals(wanted.subarray(from, to))
        yield* differs(`bytes of ${name}`, isEqual, !name.includes('layers.1'))
    }
    yield* silent(visit)
    await visit.close()
}

async function* accessible({ browser, servers, models }) {
    const { quantised } = writeQuantised(models)
    for (const colorScheme of ['light', 'dark']) {
        const visit = await Visit.begin(browser, servers.page, { colorScheme, bypassCSP: true, viewport: { width: 390, height: 844 } })
        await open(visit, quantised)
        await choose(visit, 'decoded')
        await count(visit, 3)
        await visit.page.evaluate(readFileSync(axePath(), 'utf8'))
        yield* await violations(visit, `decoded, ${colorScheme}`)
        yield* differs('targets', await visit.page.$$eval('#form label', all => all.every(l => l.getBoundingClientRect().height >= 43.5)), true)
        yield* differs('width', await visit.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
        await visit.close()
    }
}

// ---- ONNX

const varint = n => {
    const bytes = []
    for (; n > 127; n = Math.floor(n / 128))
        bytes.push(n % 128 | 128)
    return Buffer.from([...bytes, n])
}
const number = (field, n) => Buffer.concat([varint(field * 8), varint(n)])
const bytes = (field, content) => Buffer.concat([varint(field * 8 + 2), varint(content.length), Buffer.from(content)])
const FLOAT = 1

// initializers: [name, dims, raw data, or the name of the file that has them].
function writeOnnx(path, initializers) {
    const entry = (key, value) => bytes(13, Buffer.concat([bytes(1, key), bytes(2, value)]))
    const tensors = initializers.map(([name, dims, data]) => bytes(5, Buffer.concat([...dims.map(d => number(1, d)), number(2, FLOAT), bytes(8, name),
        ...(typeof data === 'string' ? [entry('location', data), number(14, 1)] : [bytes(9, data)])])))
    const graph = Buffer.concat([bytes(2, 'graph'), ...tensors])
    writeFileSync(path, Buffer.concat([number(1, 8), bytes(2, 'page tests'), bytes(7, graph), bytes(8, number(2, 17))]))
    return path
}

function writeNet(models) {
    const folder = join(models, 'onnx')
    mkdirSync(folder, { recursive: true })
    const data = join(folder, 'weights.bin')
    writeFileSync(data, floats(...Array.from({ length: 12 }, (_, i) => i - 4.5)))
    return { file: writeOnnx(join(folder, 'net.onnx'), [['inside', [2, 2], floats(1, 2, 3, 4.25)], ['outside', [3, 4], 'weights.bin']]), data }
}

async function* valuesOfOnnx(visit, file, data) {
    await open(visit, [data, file])
    await count(visit, 2)
    yield* lacks('the format', await visit.text('#cards'), 'onnx')
    yield* differs('names', await visit.names(), ['inside', 'outside'])
    for (const [row, title, values] of [[0, 'inside', ['1', '2', '3', '4.25']], [1, 'outside', ['-4.5', '-3.5', '-2.5', '-1.5']]]) {
        await visit.page.click(`#tensor-table tr[data-row="${row}"]`)
        await visit.page.waitForFunction(title => document.querySelector('#detail h2')?.textContent === title && document.querySelector('#detail .value-table tr[data-row]'), title)
        const cells = await visit.page.$$eval('#detail .value-table tr[data-row]', all => all.flatMap(r => [...r.querySelectorAll('td')].map(c => c.textContent)))
        yield* differs(`values of ${title}`, values.filter(v => !cells.includes(v)), [])
    }
    yield* differs('nothing is missing', await visit.page.isVisible('#incomplete.incomplete'), false)
}

async function* onnx({ browser, servers, models }) {
    const { file, data } = writeNet(models)
    const visit = await Visit.begin(browser, servers.page)
    yield* valuesOfOnnx(visit, file, data)
    await open(visit, [file])
    yield* lacks('without its data', await visit.text('#incomplete'), 'Only a part of the model', 'weights.bin')
    await visit.page.click('#open-another')
    await visit.openAddress(servers.ranges + 'onnx/net.onnx')
    await visit.page.waitForFunction(() => document.title.startsWith('net.onnx') && document.querySelector('#incomplete').hidden)
    yield* differs('external data at an address', visit.requests.includes(servers.ranges + 'onnx/weights.bin'), true)
    yield* silent(visit)
    await visit.close()
}

// The scale belongs to the weight by a node of the graph alone.
async function* quantisedOnnx({ browser, servers, models }) {
    const INT8 = 3
    const tensor = (name, dims, type, data) => bytes(5, Buffer.concat([...dims.map(d => number(1, d)), number(2, type), bytes(8, name), bytes(9, data)]))
    const node = bytes(1, Buffer.concat([bytes(1, 'q'), bytes(1, 's'), bytes(1, 'z'), bytes(2, 'w'), bytes(4, 'DequantizeLinear')]))
    const graph = Buffer.concat([node, bytes(2, 'graph'), tensor('q', [2, 2], INT8, Buffer.from(Int8Array.of(-3, 0, 5, 127).buffer)), tensor('s', [], FLOAT, floats(0.5)),
        tensor('z', [], INT8, Buffer.from([1]))])
    const file = join(models, 'quantised.onnx')
    writeFileSync(file, Buffer.concat([number(1, 8), bytes(2, 'page tests'), bytes(7, graph), bytes(8, number(2, 17))]))
    const visit = await Visit.begin(browser, servers.page)
    await open(visit, [file])
    await choose(visit, 'decoded')
    await visit.page.waitForFunction(() => document.getElementById('form-text').textContent.includes('onnx DequantizeLinear: 1 tensor'))
    await visit.page.click('#tensor-table tr[data-row]:has-text("onnx")')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    const cells = await visit.page.$$eval('#detail .value-table tr[data-row] td', all => all.map(c => c.textContent))
    yield* differs('values', ['-2', '-0.5', '2', '63'].filter(v => !cells.includes(v)), [])
    yield* silent(visit)
    await visit.close()
}

// The full module is a file of the page, which the service worker keeps; the page as one file has it inside.
async function* withoutANetwork({ browser, servers, models, site }) {
    const { file, data } = writeNet(models)
    const { quantised } = writeQuantised(models)
    const visit = await Visit.begin(browser, servers.page, { serviceWorkers: 'allow' })
    await visit.page.evaluate(() => navigator.serviceWorker.ready)
    await visit.page.reload()
    await visit.context.setOffline(true)
    await visit.page.reload()
    yield* valuesOfOnnx(visit, file, data)
    yield* silent(visit)
    await visit.close()
    const one = await Visit.begin(browser, pathToFileURL(join(site, '..', 'heft-inspector.html')).href + '#view=tensors')
    yield* valuesOfOnnx(one, file, data)
    await open(one, quantised)
    await choose(one, 'decoded')
    await count(one, 3)
    yield* silent(one)
    await one.close()
}

// Numbers that are packed with their scales are bytes, and never numbers of their own.
async function* packedNumbers({ browser, servers, samples }) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(samples, 'burnpack/good/quantized_alike.bpk'))
    await visit.page.click('#tensor-table tr[data-row="0"]')
    await visit.page.waitForSelector('#detail .tensor-actions')
    yield* lacks('a packed tensor', await visit.text('#detail .pictures'), 'Values of the layout burn.qfloat are not decoded')
    yield* differs('its view of values', await visit.page.locator('#detail canvas').count(), 0)
    yield* differs('a message', await visit.page.isVisible('#failure'), false)
    yield* silent(visit)
    await visit.close()
}

export const quantisedTests = {
    'a quantised model, stored and decoded': storedAndDecoded,
    'the form of tensors in links': linksAndBack,
    'no choice for plain models': plainModelsHaveNoChoice,
    'a quantised model beside its source': besideItsSource,
    'a source beside its quantised model': sourceBesideIt,
    'quantised models in several files': severalFiles,
    'what is not decoded': whatIsNotDecoded,
    'numbers that are packed with their scales': packedNumbers,
    'settings that are hostile': hostileSettings,
    'decoded tensors that are saved': savedTensors,
    'the choice of the form is accessible': accessible,
    'ONNX with external data': onnx,
    'a quantised ONNX model': quantisedOnnx,
    'ONNX and decoding without a network': withoutANetwork
}
