// Parts of a model, the hub's addresses, failures beside an open model, and figures that are whole.
import { mkdirSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'

const cardsOf = visit => visit.page.$$eval('#cards > div', all => Object.fromEntries(all.map(d => [d.firstChild.textContent, d.lastChild.textContent])))
const factsOf = visit => visit.page.$$eval('#detail .facts', all => Object.fromEntries(all.flatMap(l => [...l.querySelectorAll('dt')].map(dt => [dt.textContent, dt.nextSibling.textContent]))))

// A set of three shards without an index, and its index.
function makeSet(models) {
    const folder = join(models, 'set')
    mkdirSync(folder, { recursive: true })
    const name = i => `model-0000${i}-of-00003.safetensors`
    const files = [1, 2, 3].map(i => writeSafetensors(join(folder, name(i)), [[`layer.${i}.weight`, 'F32', [4], floats(i, 0, 0, 0)]]))
    const index = join(folder, 'model.safetensors.index.json')
    const map = Object.fromEntries([1, 2, 3].map(i => [`layer.${i}.weight`, name(i)]))
    writeFileSync(index, JSON.stringify({ metadata: { total_size: 48 }, weight_map: map }))
    return { folder, files, index }
}

async function drop(visit, files) {
    const before = await visit.page.getAttribute('#model', 'data-id')
    await visit.page.setInputFiles('#file-input', files)
    await visit.page.waitForFunction(id => (document.getElementById('model').dataset.id ?? null) !== id, before)
    await visit.whole()
}

async function* partsOfAModel({ browser, servers, models }) {
    const { files, index } = makeSet(models)
    const visit = await Visit.begin(browser, servers.page)
    const note = () => visit.text('#incomplete:not([hidden])')
    await drop(visit, index)
    yield* lacks('an index alone', await note(), 'Only a part of the model: 3 of 4 files', 'model-00002-of-00003.safetensors')
    yield* lacks('tensors of an index alone', (await cardsOf(visit)).Tensors, '0, incomplete')
    await drop(visit, files[1])
    yield* lacks('a shard alone', await note(), 'Only a part of the model: this is file 2 of 3')
    yield* differs('tensors of a shard', (await cardsOf(visit)).Tensors, '1, incomplete')
    await drop(visit, files.slice(1))
    yield* lacks('two of three', await note(), '1 of 3 files cannot be read: model-00001-of-00003.safetensors')
    yield* differs('tensors of two of three', (await cardsOf(visit)).Tensors, '2, incomplete')
    await drop(visit, files)
    yield* lacks('all shards', await note(), '3 numbered files were joined without an index')
    const cards = await cardsOf(visit)
    yield* differs('all shards', [cards.Tensors, cards['Number of files'], cards.Files], ['3', '3', `${files.reduce((n, f) => n + readFileSync(f).length, 0)} bytes`])
    yield* differs('names', (await visit.names()).sort(), [1, 2, 3].map(i => `layer.${i}.weight`))
    await visit.page.click('#tensor-table tr[data-row="2"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    yield* differs('a value of the third shard', (await factsOf(visit)).Maximum, '3')
    await drop(visit, [...files, index])
    yield* differs('a whole set', await visit.page.isVisible('#incomplete'), false)
    yield* silent(visit)
    await visit.close()
}

// Folders with files of the same names are not mixed.
async function* foldersOfTheSameNames({ browser, servers, models }) {
    const folder = join(models, 'two')
    for (const [part, value] of [['a', 1], ['b', 2]]) {
        mkdirSync(join(folder, part), { recursive: true })
        for (const i of [1, 2])
            writeSafetensors(join(folder, part, `m-0000${i}-of-00002.safetensors`), [[`w${i}`, 'F32', [1], floats(value)]])
    }
    const visit = await Visit.begin(browser, servers.page)
    await visit.page.setInputFiles('#folder-input', folder)
    await visit.page.waitForSelector('#candidates:not([hidden])')
    for (const i of [0, 1]) {
        await visit.page.click(`#candidates li:nth-child(${i + 1}) button`)
        await visit.page.waitForSelector('#tensor-table tr[data-row]')
        const values = []
        for (const row of [0, 1]) {
            await visit.page.click(`#tensor-table tr[data-row="${row}"]`)
            await visit.page.waitForFunction(n => document.querySelector('#detail h2')?.textContent === `w${n}` && document.querySelector('#detail .pairs'), row + 1)
            values.push((await factsOf(visit)).Maximum)
        }
        yield* differs('values of a folder', new Set(values).size, 1)
        await visit.page.click('#open-another')
        await visit.page.setInputFiles('#folder-input', folder)
    }
    yield* silent(visit)
    await visit.close()
}

async function* shardAtAnAddress({ browser, servers, models }) {
    makeSet(models)
    const visit = await Visit.begin(browser, servers.page)
    await visit.openAddress(servers.ranges + 'set/model-00002-of-00003.safetensors')
    await visit.page.click('#incomplete button:text-is("Open all 3 files")')
    await visit.page.waitForFunction(() => document.querySelector('#cards')?.textContent.includes('Tensors3'))
    yield* lacks('the set', await visit.text('#incomplete'), '3 numbered files were joined')
    yield* silent(visit)
    await visit.close()
}

// ---- the hub

// Answer for the hub with a repository of the files of a folder.
async function playHub(visit, folder, names) {
    const asked = []
    await visit.context.route('https://huggingface.co/**', async route => {
        const { pathname } = new URL(route.request().url())
        asked.push(pathname)
        const headers = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'Content-Range' }
        if (pathname.startsWith('/api/'))
            return route.fulfill({ headers, json: { sha: 'c0ffee', siblings: names.map(rfilename => ({ rfilename, size: statSync(join(folder, rfilename), { throwIfNoEntry: false })?.size })) } })
        const file = /\/resolve\/[^/]+\/(.*)$/.exec(pathname)?.[1]
        if (!names.includes(file))
            return route.fulfill({ status: 404, headers, body: 'no' })
        const all = readFileSync(join(folder, file))
        const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(route.request().headers().range ?? 'bytes=0-')
        const body = all.subarray(Number(from), to ? Number(to) + 1 : undefined)
        return route.fulfill({ status: 206, body, headers: { ...headers, 'content-range': `bytes ${from}-${Number(from) + body.length - 1}/${all.length}` } })
    })
    return asked
}

async function* addressesOfTheHub({ browser, servers, models }) {
    const { folder } = makeSet(models)
    copyFileSync(join(models, 'decoder.safetensors'), join(folder, 'other.safetensors'))
    const shards = [1, 2, 3].map(i => `model-0000${i}-of-00003.safetensors`)
    const visit = await Visit.begin(browser, servers.page)
    const asked = await playHub(visit, folder, ['README.md', ...shards, 'model.safetensors.index.json', 'other.safetensors'])
    await visit.openAddress('owner/name')
    await visit.page.waitForSelector('#candidates:not([hidden])')
    const sum = names => names.reduce((n, name) => n + statSync(join(folder, name)).size, 0)
    const listed = await visit.page.$$eval('#candidates li', all => all.map(li => li.textContent))
    yield* differs('files', listed.map(text => text.split(' ')[0]), ['model.safetensors.index.json', 'other.safetensors'])
    yield* lacks('the whole model', listed[0], `${sum([...shards, 'model.safetensors.index.json'])} bytes`, 'the whole model, 3 files')
    await visit.page.click('#candidates button')
    await visit.page.waitForFunction(() => document.querySelector('#cards')?.textContent.includes('Tensors3'))
    await visit.tab('tensors')
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    const link = () => new URLSearchParams(visit.page.url().split('#')[1])
    yield* differs('the address', link().get('open'), 'hf://owner/name@c0ffee/model.safetensors.index.json')
    const tensor = link().get('tensor')
    await visit.page.reload()
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    yield* differs('the address after a reload', [link().get('open'), link().get('tensor')], ['hf://owner/name@c0ffee/model.safetensors.index.json', tensor])
    yield* differs('requests', asked.slice(0, 2), ['/api/models/owner/name/revision/main', '/owner/name/resolve/c0ffee/model.safetensors.index.json'])
    await visit.page.click('#open-another')
    await visit.openAddress('hf://owner/name@refs/pr/1/other.safetensors')
    await visit.page.waitForFunction(() => document.title.startsWith('other'))
    for (const link of ['https://huggingface.co/owner/name/blob/main/other.safetensors', 'https://huggingface.co/owner/name/resolve/main/other.safetensors?download=true', 'hf.co/owner/name/blob/refs%2Fpr%2F1/other.safetensors']) {
        await visit.page.click('#open-another')
        await visit.openAddress(link)
        await visit.page.waitForFunction(() => document.title.startsWith('other') && !document.getElementById('model').hidden)
    }
    yield* differs('links to files', asked.filter(path => path === '/owner/name/resolve/main/other.safetensors').length > 1, true)
    yield* differs('a revision', asked.includes('/owner/name/resolve/refs%2Fpr%2F1/other.safetensors'), true)
    await visit.page.click('#open-another')
    await visit.openAddress('owner/name@v1')
    await visit.page.waitForSelector('#candidates:not([hidden])')
    yield* differs('the list of a revision', asked.at(-1), '/api/models/owner/name/revision/v1')
    await visit.openAddress('hf://owner')
    yield* lacks('half an address', await visit.failure(), 'hf://OWNER/NAME')
    await visit.close()
    const several = await Visit.begin(browser, servers.page)
    await playHub(several, folder, ['other.safetensors', shards[0]])
    await several.openAddress('https://huggingface.co/datasets/owner/name/tree/main')
    await several.page.waitForSelector('#candidates:not([hidden])')
    yield* differs('choices', await several.page.$$eval('#candidates button', all => all.map(b => b.textContent)), [shards[0], 'other.safetensors'])
    yield* silent(several)
    await several.close()
}

// ---- failures

async function* failureBesideAModel({ browser, servers, models }) {
    writeFileSync(join(models, 'broken.safetensors'), Buffer.alloc(64, 0x91))
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'decoder.safetensors'))
    await visit.page.click('#tensor-table tr[data-row="0"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    const shown = async () => [(await visit.names()).slice(0, 8), await visit.text('#detail')]
    const before = await shown()
    await visit.page.setInputFiles('#file-input', join(models, 'broken.safetensors'))
    yield* lacks('failure', await visit.failure(), 'broken.safetensors')
    yield* differs('the open model', await shown(), before)
    yield* differs('the name', await visit.text('#file-name'), 'decoder.safetensors')
    yield* differs('the model is visible', await visit.page.isVisible('#tensor-table'), true)
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.waitForFunction(() => document.querySelector('#detail h2').textContent === 'layers.0.attention.weight')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    yield* silent(visit)
    await visit.close()
}

// ---- figures

// Cells of tables that end with an ellipsis, although nothing in them may be cut.
const cutNumbers = visit => visit.page.$$eval('td.number', all => all.filter(c => c.scrollWidth > c.clientWidth && c.offsetParent).map(c => c.textContent))

async function* numbersAreWhole({ browser, servers, models }) {
    const tiny = Float32Array.from({ length: 64 }, (_, i) => -4.656612873077393e-8 * (i + 1))
    const file = writeSafetensors(join(models, 'numbers.safetensors'), [
        ['tiny', 'F32', [8, 8], Buffer.from(tiny.buffer)], ['date', 'F64', [2], Buffer.from(Float64Array.of(20231107, -1 / 3e-200).buffer)],
        ['long', 'I64', [2], Buffer.from(BigInt64Array.of(-(2n ** 63n), 5n).buffer)], ['whole', 'F32', [2], floats(20231108, 3.4e38)],
        ['none', 'F32', [2, 2], floats(NaN, NaN, Infinity, NaN)], ['some', 'F32', [2, 2], floats(1, -1, NaN, Infinity)]],
    { chat_template: 'first line\nsecond\u202eline' })
    for (const width of [1280, 800]) {
        const visit = await Visit.begin(browser, servers.page, { viewport: { width, height: 900 } })
        await visit.openFile(file)
        for (const row of [0, 1, 2, 3, 4, 5]) {
            await visit.page.click(`#tensor-table tr[data-row="${row}"]`)
            const name = await visit.page.$eval(`#tensor-table tr[data-row="${row}"]`, r => r.cells[0].textContent)
            await visit.page.waitForFunction(n => document.querySelector('#detail h2')?.textContent === n && document.querySelector('#detail .value-table tr[data-row]:not([aria-busy])'), name)
            yield* differs(`numbers of ${name} that are cut at ${width} pixels`, await cutNumbers(visit), [])
            if (name === 'date')
                yield* differs('a date', (await factsOf(visit)).Maximum, '20231107')
            if (name === 'whole')
                yield* differs('whole numbers', await visit.page.$eval('#detail .value-table tr[data-row]', r => r.cells[1].textContent), '20231108')
            if (name === 'none' || name === 'some')
                yield* lacks(`legend of ${name}`, await visit.text('#detail figcaption'), 'NaN: black', 'infinite: yellow')
        }
        const pixels = await visit.page.$eval('#detail canvas', c => [...c.getContext('2d').getImageData(0, 0, 2, 2).data])
        yield* differs('pixels of NaN and infinity', [pixels.slice(8, 11), pixels.slice(12, 15)], [[16, 16, 16], [255, 190, 0]])
        await visit.tab('metadata')
        await visit.page.click('#metadata-table tr[data-row="0"]')
        yield* differs('a template', await visit.text('#metadata-detail pre'), 'first line\nsecond\\u202eline')
        await visit.tab('checks')
        await visit.page.click('#panel-checks .primary')
        await visit.page.waitForFunction(() => document.querySelector('#panel-checks').textContent.includes('No fault'))
        yield* lacks('verify without checksums', await visit.text('#panel-checks'), 'Nothing was compared with checksums')
        yield* differs('green', await visit.page.$$eval('#panel-checks .good', all => all.length), 0)
        yield* silent(visit)
        await visit.close()
    }
}

// A large tensor at an address: a sample in few requests at the same time.
async function* sampleOfALargeTensor({ browser, servers, models }) {
    const rows = 4096, data = Buffer.alloc(rows * 1024 * 2)
    data.writeUInt16LE(0x3c00, 0)
    const file = writeSafetensors(join(models, 'large.safetensors'), [['large', 'F16', [rows, 1024], data]])
    const visit = await Visit.begin(browser, servers.page)
    const ranges = [], running = new Set()
    let most = 0, drawn = 0
    await visit.context.route('**/large.safetensors', async route => {
        const range = /^bytes=(\d+)-(\d*)$/.exec(route.request().headers().range)
        running.add(range[0])
        ranges.push(Number(range[2]) - Number(range[1]) + 1)
        most = Math.max(most, running.size)
        const turn = ranges.length
        await new Promise(done => setTimeout(done, turn > 4 ? 400 : 50))
        if (turn > 4 && !drawn)
            drawn = await visit.page.locator('#detail canvas').count()
        running.delete(range[0])
        const all = readFileSync(file), body = all.subarray(Number(range[1]), Number(range[2]) + 1)
        await route.fulfill({ status: 206, body, headers: { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'Content-Range', 'content-range': `bytes ${range[1]}-${Number(range[1]) + body.length - 1}/${all.length}` } })
    })
    await visit.openAddress(servers.ranges + 'large.safetensors')
    await visit.page.waitForSelector('#tensor-table tr[data-row]')
    const before = ranges.length
    await visit.page.click('#tensor-table tr[data-row="0"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]:not([aria-busy])')
    const sample = ranges.slice(before)
    if (sample.length > 20 || Math.min(...sample.slice(0, 16)) < 128 << 10)
        yield `the sample took ${sample.length} requests of ${sample} bytes`
    if (most < 4)
        yield `at most ${most} requests ran at the same time`
    yield* differs('a picture before the last piece', drawn, 1)
    const facts = await factsOf(visit)
    yield* differs('NaN of a sample', facts.NaN, 'none in the sample')
    yield* differs('maximum of a sample', facts['Maximum of the sample'], '1')
    yield* silent(visit)
    await visit.close()
}

export const partTests = {
    'parts of a model': partsOfAModel,
    'folders with files of the same names': foldersOfTheSameNames,
    'a shard at an address': shardAtAnAddress,
    'addresses of the hub': addressesOfTheHub,
    'a failure beside an open model': failureBesideAModel,
    'numbers are whole': numbersAreWhole,
    'the sample of a large tensor': sampleOfALargeTensor
}
