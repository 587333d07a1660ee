// The first view: what a model is, whether it is sound, its map and its layers; and the address.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'

const LAYERS = 4
const fill = (count, value) => floats(...Array.from({ length: count }, (_, i) => value * (i % 2 ? 1 : -1)))

// A decoder whose standard deviations are known: that of q in layer n is n + 1.
function layered(models) {
    const folder = join(models, 'layered')
    const tensors = [['model.embed_tokens.weight', 'F32', [10, 4], fill(40, 0.5)]]
    for (let n = 0; n < LAYERS; n++) {
        const p = `model.layers.${n}.`
        tensors.push([p + 'input_layernorm.weight', 'F32', [4], floats(1, 1, 1, 1)],
            [p + 'self_attn.q_proj.weight', 'F32', [4, 4], fill(16, n + 1)],
            [p + 'mlp.up_proj.weight', n === 3 ? 'F16' : 'F32', n === 3 ? [8, 4] : [4, 4], n === 2 ? floats(...Array(15).fill(0), NaN) : fill(16, 2)])
    }
    return writeSafetensors(join(models, 'layered.safetensors'), tensors, { license: 'MIT', folder })
}

async function begin({ browser, servers, models }, hash = '#') {
    layered(models)
    const visit = await Visit.begin(browser, servers.page + hash)
    return visit
}

const facts = visit => visit.page.$$eval('.about dt', all => Object.fromEntries(all.map(dt => [dt.textContent, [...dt.nextElementSibling.childNodes].filter(n => n.className !== 'from').map(n => n.textContent).join('')])))
const health = visit => visit.page.$$eval('.health li', all => all.map(li => li.textContent.trim()))
const read = visit => visit.page.waitForFunction(() => document.querySelector('.health')?.textContent.includes('all 200 values'))

async function* whatAModelIs(context) {
    const visit = await begin(context)
    const config = join(context.models, 'config.json')
    writeFileSync(config, JSON.stringify({ model_type: 'llama', max_position_embeddings: 2048, hidden_size: 4 }))
    await visit.page.setInputFiles('#file-input', [join(context.models, 'layered.safetensors'), config])
    await read(visit)
    const got = await facts(visit)
    for (const [key, want] of Object.entries({ Kind: 'llama', Layers: '4 in model.layers', Width: '4', Vocabulary: '10', Context: '2,048', Licence: 'MIT' }))
        yield* differs(key, got[key], want)
    yield* lacks('quantisation', got.Quantisation, 'f32', 'f16', 'none')
    const [values, checksums, structure] = await health(visit)
    yield* lacks('values', values, '1 NaN in 1 tensor', 'all 200 values were read')
    yield* lacks('checksums', checksums, 'no checksums')
    yield* lacks('structure', structure, 'Nothing unusual')
    await visit.page.click('.health button:text-is("Show them")')
    await visit.page.waitForFunction(() => document.querySelectorAll('#tensor-table tr[data-row]').length === 1)
    yield* differs('tensors with NaN', await visit.names(), ['model.layers.2.mlp.up_proj.weight'])
    yield* silent(visit)
    await visit.close()
}

// Characters at which lines of the elements' texts end, but for the last lines and for spaces.
const lineEnds = (page, selector) => page.$$eval(selector, nodes => nodes.flatMap(node => {
    const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), found = []
    let top = null, last = ''
    for (let t = walk.nextNode(); t; t = walk.nextNode())
        for (let i = 0; i < t.length; i++) {
            const range = document.createRange()
            range.setStart(t, i)
            range.setEnd(t, i + 1)
            const box = range.getClientRects()[0]
            if (box && top !== null && box.top > top + 3 && t.data[i] !== ' ') found.push(last)
            if (box) [top, last] = [box.top, t.data[i]]
        }
    return found.filter(c => c !== ' ')
}))

// Lines end between the words of names, in wide windows and on phones.
async function* linesOfNames({ browser, servers, models }) {
    const name = 'model.embed_tokens.a_rather_long_name_of_a_module.with_many_words.weight'
    const file = writeSafetensors(join(models, 'words.safetensors'), [[name, 'F32', [3, 4], Buffer.alloc(48)]])
    for (const width of [1280, 390]) {
        const visit = await Visit.begin(browser, servers.page + '#', { viewport: { width, height: 900 } })
        await visit.openFile(file)
        await visit.page.waitForSelector('.about .from')
        const ends = await lineEnds(visit.page, '.about .from')
        yield* differs(`lines that end at ${width} pixels`, ends.length > 0, true)
        yield* differs(`ends of lines at ${width} pixels`, ends.filter(c => c !== '.' && c !== '_'), [])
        yield* silent(visit)
        await visit.close()
    }
}

// The config.json beside an address counts as one that is chosen with the file; one of no use is said.
async function* settingsBesideAnAddress({ browser, servers, models }) {
    const folder = join(models, 'settings')
    mkdirSync(folder, { recursive: true })
    writeSafetensors(join(folder, 'model.safetensors'), [['x', 'F32', [2], floats(1, 2)]])
    const config = join(folder, 'config.json')
    for (const [text, context, settings] of [
        [JSON.stringify({ max_position_embeddings: 4096 }), '4,096', undefined],
        ['[1]', 'not stated', 'config.json is ignored: it is not a JSON object'],
        [`{"a": "${'x'.repeat(1 << 20)}"}`, 'not stated', 'config.json is not read: it has more than 1 MiB'],
        [null, 'not stated', undefined]
    ]) {
        rmSync(config, { force: true })
        if (text !== null) writeFileSync(config, text)
        const visit = await Visit.begin(browser, servers.page + '#')
        await visit.openAddress(`${servers.ranges}settings/model.safetensors?x=1`)
        await visit.page.waitForSelector('.about .from, .about .quiet')
        const got = await facts(visit)
        yield* differs(`context of ${String(text).slice(0, 20)}`, got.Context, context)
        yield* differs(`settings of ${String(text).slice(0, 20)}`, got.Settings, settings)
        yield* differs('requests', visit.requests.filter(url => url.endsWith('config.json')), [`${servers.ranges}settings/config.json`])
        yield* silent(visit)
        await visit.close()
    }
    // A server that other pages may not read from, and no request for the settings of what does not open.
    const visit = await Visit.begin(browser, servers.page + '#')
    await visit.openAddress(servers.ranges + 'settings/none.safetensors')
    await visit.failure()
    yield* differs('settings of nothing', visit.requests.filter(url => url.endsWith('config.json')), [])
    await visit.page.route('**/config.json', route => route.abort())
    await visit.openAddress(servers.ranges + 'settings/model.safetensors')
    await visit.page.waitForSelector('.about .quiet')
    yield* lacks('settings that are not sent', (await facts(visit)).Settings, 'cannot be read')
    await visit.close()
    rmSync(folder, { recursive: true })
}

// What is not stated is said, and a sample is not taken for all values.
async function* whatIsNotKnown({ browser, servers, models }) {
    const big = Buffer.alloc(4 * 40000)
    writeSafetensors(join(models, 'bare.safetensors'), [['x', 'F32', [40000], big]])
    const visit = await Visit.begin(browser, servers.page + '#')
    await visit.openFile(join(models, 'bare.safetensors'))
    await visit.page.waitForFunction(() => document.querySelector('.health')?.textContent.includes('16,384 of 40,000'))
    yield* differs('facts', (await facts(visit)).Context, 'not stated')
    yield* lacks('a sample', (await health(visit))[0], 'seen', '41.0 %')
    yield* differs('a sample is not green', await visit.page.$$eval('.health li:first-child .good', all => all.length), 0)
    await visit.page.click('.health button:text-is("Read all values")')
    await visit.page.waitForFunction(() => document.querySelector('.health').textContent.includes('all 40,000 values'))
    yield* silent(visit)
    await visit.close()
}

// At an address nothing is read beyond the index until the user says so.
async function* addressesAreNotSampled(context) {
    const visit = await begin(context)
    const file = context.servers.ranges + 'layered.safetensors'
    await visit.openAddress(file)
    await visit.page.waitForSelector('.matrix')
    yield* lacks('health', (await health(visit))[0], 'No values were read yet')
    const before = visit.requests.filter(url => url === file).length
    await visit.tab('tensors')
    await visit.page.fill('#tensor-table input', 'nan:')
    await visit.page.waitForFunction(() => document.querySelector('#tensor-table [role=status]').textContent.includes('0 of 13 rows, among the 0 of 13 tensors'))
    await visit.tab('overview')
    await visit.page.waitForTimeout(300)
    yield* differs('requests', visit.requests.filter(url => url === file).length, before)
    await visit.page.click('.health button:text-is("Read a sample")')
    await read(visit)
    yield* silent(visit)
    await visit.close()
}

const cell = (r, c) => `.matrix td[data-at="${r},${c}"]`

async function* rolesByLayer(context) {
    const visit = await begin(context)
    await visit.openFile(join(context.models, 'layered.safetensors'))
    await read(visit)
    yield* differs('rows', await visit.page.$$eval('.matrix tbody th', all => all.map(th => th.textContent)), ['q', 'up', 'input_layernorm'])
    yield* differs('columns', await visit.page.$$eval('.matrix thead th', all => all.map(th => th.textContent)), ['layer', '0', '1', '2', '3'])
    const label = (r, c) => visit.page.getAttribute(cell(r, c), 'aria-label')
    for (let n = 0; n < LAYERS; n++)
        yield* differs(`deviation in layer ${n}`, await label(0, n), `q, layer ${n}: ${n + 1}`)
    await visit.page.hover(cell(0, 2))
    yield* differs('value under the pointer', await visit.text('.readout'), 'q, layer 2: 3')
    const shade = (r, c) => visit.page.$eval(cell(r, c), td => getComputedStyle(td).backgroundColor)
    const shades = [await shade(0, 0), await shade(0, 1), await shade(0, 3)]
    yield* differs('shades of three values', new Set(shades).size, 3)
    await visit.page.click('.matrix-tools button:text-is("NaN and infinite")')
    yield* differs('NaN', [await label(1, 2), await label(1, 1)], ['up, layer 2: 1', 'up, layer 1: 0'])
    await visit.page.click('.matrix-tools button:text-is("Type")')
    yield* differs('types', [await label(1, 2), await label(1, 3)], ['up, layer 2: f32', 'up, layer 3: f16'])
    await visit.page.focus(cell(0, 0))
    for (const key of ['ArrowRight', 'ArrowDown', 'Enter'])
        await visit.page.keyboard.press(key)
    await visit.page.waitForFunction(() => document.querySelector('#detail h2')?.textContent === 'model.layers.1.mlp.up_proj.weight')
    yield* silent(visit)
    await visit.close()
}

// Every byte has a place: pieces that do not fit become ranges of names, which can be opened.
async function* mapOfManyPieces({ browser, servers, models }) {
    const tensors = Array.from({ length: 3000 }, (_, i) => [`t${String(i).padStart(4, '0')}x`, 'U8', [1 + i % 9], Buffer.alloc(1 + i % 9)])
    writeSafetensors(join(models, 'flat.safetensors'), tensors)
    const visit = await Visit.begin(browser, servers.page + '#')
    await visit.openFile(join(models, 'flat.safetensors'))
    await visit.page.waitForSelector('#map g')
    const titles = await visit.page.$$eval('#map g[tabindex]', all => all.map(g => g.getAttribute('aria-label')))
    const sum = titles.reduce((total, t) => total + Number(/([\d,]+) tensors?$/.exec(t)[1].replaceAll(',', '')), 0)
    yield* differs('tensors on the map', sum, 3000)
    if (titles.some(t => t.includes('others')))
        yield `a rest without names: ${titles.find(t => t.includes('others'))}`
    const range = titles.findIndex(t => t.includes('…'))
    await visit.page.locator('#map g[tabindex]').nth(range).focus()
    await visit.page.keyboard.press('Enter')
    await visit.page.waitForFunction(() => document.querySelectorAll('#path button').length === 2)
    const inside = await visit.page.$$eval('#map g[tabindex]', all => all.map(g => g.getAttribute('aria-label')))
    yield* differs('first piece of a range', inside.some(t => t.startsWith(titles[range].split(' ')[0])), true)
    await visit.page.click('#path button')
    await visit.page.waitForFunction(n => document.querySelectorAll('#map g[tabindex]').length === n, titles.length)
    yield* silent(visit)
    await visit.close()
}

async function* severalLevels(context) {
    const visit = await begin(context)
    await visit.openFile(join(context.models, 'layered.safetensors'))
    await visit.page.waitForSelector('#map .frame')
    const texts = await visit.page.$$eval('#map text', all => all.map(t => t.textContent.split('  ')[0]))
    for (const name of ['layers', '0', '3', 'embed_tokens.weight'])
        if (!texts.includes(name))
            yield `the map does not show ${name}: ${texts}`
    const band = await visit.page.$$eval('#map g', all => all.filter(g => /^[0-3]: /.test(g.querySelector('title').textContent))
        .map(g => g.querySelector('rect').getBoundingClientRect()).map(r => [Math.round(r.x), Math.round(r.y)].join()))
    yield* differs('places of the layers', new Set(band).size, LAYERS)
    yield* silent(visit)
    await visit.close()
}

// The view and the tensor are in the address: Back, reload and links lead to them.
async function* viewsInTheAddress(context) {
    const visit = await begin(context)
    const file = context.servers.ranges + 'layered.safetensors'
    await visit.openAddress(file)
    await visit.page.waitForSelector('.matrix')
    const hash = () => visit.page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))))
    yield* differs('the address', await hash(), { open: file, view: 'overview' })
    await visit.tab('tensors')
    await visit.page.click('#tensor-table tr[data-row="0"]')
    await visit.page.waitForSelector('#detail h2')
    yield* differs('the address of a tensor', await hash(), { open: file, view: 'tensors', tensor: 'model.embed_tokens.weight' })
    const link = await visit.page.evaluate(() => location.href)
    await visit.page.reload()
    await visit.page.waitForFunction(() => document.querySelector('#detail h2')?.textContent === 'model.embed_tokens.weight')
    await visit.tab('modules')
    await visit.page.goBack()
    await visit.page.waitForSelector('#panel-tensors:not([hidden])')
    await visit.page.goForward()
    await visit.page.waitForSelector('#panel-modules:not([hidden])')
    await visit.page.focus('a.skip')
    await visit.page.keyboard.press('Enter')
    yield* differs('a link into the page', await visit.page.isVisible('#panel-modules'), true)
    await visit.tab('compare')
    await visit.page.fill('#second-address', context.servers.ranges + 'decoder.safetensors')
    await visit.page.press('#second-address', 'Enter')
    await visit.page.waitForSelector('.compare .outcome.warning')
    await visit.page.reload()
    await visit.page.waitForSelector('.compare .outcome.warning')
    yield* silent(visit)
    await visit.close()
    const other = await Visit.begin(context.browser, link)
    yield* differs('a link fetches nothing', other.requests.filter(url => url === file), [])
    yield* differs('a link fills the address in', await other.page.inputValue('#address'), file)
    await other.page.keyboard.press('Enter')
    await other.page.waitForFunction(() => document.querySelector('#detail h2')?.textContent === 'model.embed_tokens.weight')
    yield* differs('the view of a link', await other.page.isVisible('#panel-tensors'), true)
    yield* silent(other)
    await other.close()
}

// Names, metadata and config.json of strangers stay text.
async function* hostileOverview({ browser, servers, models }) {
    const evil = '<img src=x onerror=window.injected=1>\u202e'
    const tensors = [0, 1].flatMap(n => [`${evil}.${n}.${evil}`, `${evil}.${n}.__proto__`, `constructor.${n}.toString`]).map(n => [n, 'F32', [2], floats(1, 2)])
    const file = writeSafetensors(join(models, 'evil.safetensors'), tensors, { 'general.architecture': evil, license: evil, 'general.name': 'x'.repeat(5000) })
    const config = join(models, 'config.json')
    writeFileSync(config, JSON.stringify({ quantization_config: { quant_method: { a: 1 } }, text_config: null, vocab_size: evil, max_position_embeddings: [1] }))
    const visit = await Visit.begin(browser, servers.page + '#')
    await visit.page.setInputFiles('#file-input', [file, config])
    await visit.page.waitForSelector('.matrix td')
    yield* differs('injected', await visit.page.evaluate(() => window.injected ?? null), null)
    yield* differs('elements of names', await visit.page.evaluate(() => document.querySelectorAll('main img').length), 0)
    yield* differs('characters that turn text', await visit.page.$eval('#panel-overview', p => p.textContent.includes('\u202e')), false)
    yield* differs('vocabulary', (await facts(visit)).Vocabulary.startsWith('<img'), true)
    yield* differs('width beyond the window', await visit.page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth)), 0)
    await visit.page.selectOption('.matrix-tools select', '1')
    yield* differs('roles', await visit.page.$$eval('.matrix tbody th', all => all.map(th => th.textContent)), ['toString'])
    for (const text of ['[', '{{{', '*'.repeat(200), 'type:', 'shape:,,', 'size>', '"', '\\'])
        await visit.page.evaluate(t => { const i = document.querySelector('#tensor-table input'); i.value = t; i.dispatchEvent(new Event('input')) }, text)
    await visit.tab('tensors')
    await visit.page.fill('#tensor-table input', 'constructor.*')
    await visit.page.waitForFunction(() => document.querySelector('#tensor-table [role=status]').textContent === '2 of 6 rows')
    yield* silent(visit)
    await visit.close()
}

// Colours mean kinds of modules, or the page says that they do not; long names of roles are told apart by their ends.
async function* coloursAndLabels({ browser, servers, models }) {
    const tensors = names => names.map(n => [n, 'F32', [8, 8], Buffer.alloc(256, n.includes('norm') ? 0xff : 1)]) // all bits: NaN
    const attention = ['attn1', 'attn2'].flatMap(a => ['to_q', 'to_k'].map(r => `attentions.0.transformer_blocks.0.${a}.${r}.weight`))
    const layer = [...attention, 'attentions.0.transformer_blocks.0.ff.net.2.weight', 'resnets.0.conv1.weight', 'resnets.0.norm1.weight']
    const unet = writeSafetensors(join(models, 'unet.safetensors'), tensors([0, 1].flatMap(n => layer.map(rest => `down_blocks.${n}.${rest}`))))
    const flat = writeSafetensors(join(models, 'flat.safetensors'), tensors(['alpha', 'beta', 'gamma']))
    const visit = await Visit.begin(browser, servers.page + '#')
    await visit.openFile(unet)
    await visit.page.waitForSelector('.matrix td')
    yield* differs('the legend', await visit.page.$$eval('.map .legend li', all => all.map(li => li.textContent)), ['norm', 'attention', 'feed-forward', 'convolution'])
    const labels = await visit.page.$$eval('.matrix tbody th', all => all.map(th => th.textContent))
    yield* differs('labels', labels, ['…*.attn1.to_q', '…*.attn2.to_q', '…*.attn1.to_k', '…*.attn2.to_k', '…*.ff.net.*', 'resnets.*.conv1', 'resnets.*.norm1'])
    await visit.page.waitForFunction(() => !document.querySelector('.matrix-part .scale').textContent.includes('not read'))
    yield* lacks('the scale', await visit.text('.matrix-part .scale'), 'Std deviation:', '2 without a value')
    yield* lacks('the cell', await visit.page.getAttribute('.matrix td', 'aria-label'), '…*.attn1.to_q, layer 0')
    await visit.openFile(flat)
    await visit.page.waitForFunction(() => document.querySelector('.map')?.textContent.includes('gamma'))
    const wide = await visit.page.$$eval('.map > svg > g', all => all.filter(g => g.querySelector('svg').getBoundingClientRect().right > g.querySelector('rect').getBoundingClientRect().right + 1).length)
    yield* differs('labels beyond their pieces', wide, 0)
    yield* lacks('the map', await visit.text('.map'), 'Colours tell the pieces apart, and mean nothing else')
    yield* silent(visit)
    await visit.close()
}

export const overviewTests = {
    'colours and labels of roles': coloursAndLabels,
    'an overview of hostile names': hostileOverview,
    'what a model is': whatAModelIs,
    'lines of names': linesOfNames,
    'settings beside an address': settingsBesideAnAddress,
    'what is not known is said': whatIsNotKnown,
    'addresses are not sampled unasked': addressesAreNotSampled,
    'roles by layer': rolesByLayer,
    'a map of many pieces': mapOfManyPieces,
    'a map of several levels': severalLevels,
    'views in the address': viewsInTheAddress
}
