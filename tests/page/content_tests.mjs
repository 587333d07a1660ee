// What the page shows of a file.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'

const OVERRIDE = '\u202e'
// Names, and how the command and the page print them.
const HOSTILE = [
    ['</script><script>window.injected=1</script>'], ['<img src=x onerror=window.injected=2>'], ['<!--<script>'],
    ['"><svg onload=window.injected=3>'], ['__proto__'], ['constructor'], ['&lt;b&gt;'], ["'"], ['{{7*7}}'],
    [`a${OVERRIDE}b`, 'a\\u202eb'], ['line\nbreak', 'line\\nbreak'], ['\\', '\\\\'], ['\u001b[31mred', '\\x1b[31mred'],
    ['tab\there', 'tab\\there'], ['\ufeffbom', '\\ufeffbom'], ['ünïcödé 漢字']
]
const LONG = 'n'.repeat(10000)

// A few samples of each format that heft does not write, with names that are printed as they are.
function samplesOf(samples, json) {
    const MOST = 3
    const isPlain = path => json('ls', '--json', path).tensors.every(t => /^[\w./ -]+$/.test(t.name))
    return ['torch', 'burn-record', 'npy'].flatMap(format => {
        const folder = join(samples, format, 'good')
        const found = existsSync(folder) ? readdirSync(folder).filter(n => !n.endsWith('.json')).sort() : []
        return found.map(name => join(folder, name)).filter(path => statSync(path).isFile() && isPlain(path)).slice(0, MOST)
    })
}

async function* everyFormat({ browser, servers, models, files, json, samples }) {
    const visit = await Visit.begin(browser, servers.page)
    for (const path of [...files.map(f => join(models, f)), ...samplesOf(samples, json)]) {
        const listed = json('ls', '--json', path)
        const file = basename(path)
        await visit.openFile(path)
        await visit.page.waitForFunction(name => document.title.startsWith(name), file)
        await visit.rows('#tensor-table', Math.min(15, listed.tensors.length))
        const rows = await visit.page.$$eval('#tensor-table tr[data-row]', all => all.map(r => [...r.cells].slice(0, 3).map(c => c.textContent)))
        const want = listed.tensors.slice(0, rows.length).map(t => [t.name, t.dtype, `[${t.shape.join(', ')}]`])
        yield* differs(`rows of ${file}`, rows, want)
        yield* differs(`count of ${file}`, await visit.text('#tensor-table [role=status]'), `${listed.tensors.length} ${listed.tensors.length === 1 ? 'row' : 'rows'}`)
    }
    yield* silent(visit)
    await visit.close()
}

async function choose(visit, name) {
    await visit.page.fill('#tensor-table input', name)
    await visit.page.waitForFunction(n => {
        const rows = document.querySelectorAll('#tensor-table tr[data-row]')
        return rows.length && [...rows].every(r => r.cells[0].textContent.includes(n))
    }, name)
    await visit.page.click('#tensor-table tr[data-row="0"]')
    await visit.page.waitForFunction(n => document.querySelector('#detail h2')?.textContent.includes(n) &&
        /^\d/.test(document.querySelector('#detail .value-table td')?.textContent), name)
}

const factsOf = visit => visit.page.$$eval('#detail .facts dt', all =>
    Object.fromEntries(all.map(dt => [dt.textContent, dt.nextElementSibling.textContent])))

async function* valuesOfATensor({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'decoder.safetensors'))
    await choose(visit, 'odd')
    const facts = await factsOf(visit)
    for (const [key, want] of Object.entries({ Values: '6', Minimum: '-2', Maximum: '6', Mean: '1', Zeros: '2 (33.3 %)', NaN: '1', Infinite: '1' }))
        yield* differs(`${key} of "odd"`, facts[key], want)
    const deviation = Math.sqrt((1 + 9 + 25 + 1) / 4)
    yield* differs('deviation of "odd"', facts['Std deviation'], String(deviation))
    const cells = () => visit.page.$$eval('#detail .value-table tr[data-row]', all => all.slice(0, 2).map(r => [...r.cells].map(c => c.textContent)))
    yield* differs('values of "odd"', await cells(), [['0, 0', '0', '-2', '6'], ['1, 0', 'NaN', 'Infinity', '0']])
    await choose(visit, 'steps')
    yield* differs('large integers', (await cells())[0], ['0', '-5', '4611686018427387905', '7'])
    await choose(visit, 'embed')
    await visit.page.fill('#go-to', '150, 33')
    await visit.page.press('#go-to', 'Enter')
    const shown = await visit.page.waitForFunction(() => {
        const row = document.querySelector('#detail .value-table tr[aria-selected=true]')
        return row && !row.cells[0].textContent.startsWith('…') && [...row.cells].map(c => c.textContent)
    })
    const at = 150 * 64 + 32
    const near = k => String(Number(Math.fround(Math.sin(at + k) / 10).toPrecision(6)))
    yield* differs('values at an index', await shown.jsonValue(), ['150, 32', near(0), near(1), near(2), near(3)])
    const heat = await visit.page.$eval('canvas.heat', c => [c.width, c.height])
    yield* differs('pixels of the heat map', heat, [64, 200])
    yield* silent(visit)
    await visit.close()
}

// Archives and checkpoints of gpt-rs store the bytes of equal tensors once.
async function* tiedTensors({ browser, servers, samples }) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(samples, 'gptrs', 'good', 'chk_tied.bin'))
    await choose(visit, 'tied')
    yield* differs('tensor with the same bytes', (await factsOf(visit))['Same bytes as'], 'a')
    await choose(visit, 'b')
    yield* differs('no tensor with the same bytes', (await factsOf(visit))['Same bytes as'], undefined)
    yield* silent(visit)
    await visit.close()
}

async function* hostileNames({ browser, servers, models }) {
    const tensors = [...HOSTILE.map(([name]) => [name, 'F32', [2], floats(1, 2)]), [LONG, 'F32', [2], floats(1, 2)]]
    const metadata = Object.fromEntries(HOSTILE.map(([name]) => [`key ${name}`, name]))
    const file = writeSafetensors(join(models, 'hostile.safetensors'), tensors, metadata)
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(file)
    const want = HOSTILE.map(([name, escaped]) => escaped || name)
    await visit.rows('#tensor-table', want.length + 1)
    yield* differs('names', await visit.names(), [...want, LONG.slice(0, 300) + '…'])
    for (let i = 0; i <= HOSTILE.length; i++) {
        await visit.page.click(`#tensor-table tr[data-row="${i}"]`)
        await visit.page.waitForFunction(name => document.querySelector('#detail h2')?.textContent === name,
            i < want.length ? want[i] : LONG)
    }
    await visit.tab('metadata')
    await visit.rows('#metadata-table', want.length)
    yield* differs('keys', (await visit.names('#metadata-table')).sort(), want.map(n => `key ${n}`).sort())
    await visit.tab('modules')
    await visit.page.waitForSelector('#module-table tr[data-row]')
    yield* differs('window.injected', await visit.page.evaluate(() => window.injected ?? null), null)
    yield* differs('elements of names', await visit.page.evaluate(() => document.querySelectorAll('main img, main svg[onload], main script').length), 0)
    yield* differs('width beyond the window', await visit.page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth)), 0)
    yield* silent(visit)
    await visit.close()
}

async function* modulesOfAModel({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'decoder.safetensors'))
    await visit.tab('modules')
    await visit.page.waitForSelector('#module-table tr[data-row]')
    const rows = () => visit.page.$$eval('#module-table tr[data-row]', all => all.map(r => [r.getAttribute('aria-level'), ...[...r.cells].slice(0, 2).map(c => c.textContent)].join(' ')))
    yield* differs('modules', await rows(), ['1 embed.weight 1', '1 ▸layers 36', '1 odd 1', '1 steps 1'])
    await visit.page.focus('#module-table .grid')
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight'])
        await visit.page.keyboard.press(key)
    await visit.page.waitForFunction(() => document.querySelectorAll('#module-table tr[aria-level="2"]').length === 12)
    const names = (await rows()).filter(r => r.startsWith('2')).map(r => r.split(' ')[1])
    yield* differs('order of layers', names, Array.from({ length: 12 }, (_, i) => `▸${i}`))
    await visit.page.keyboard.press('ArrowLeft')
    yield* differs('modules after closing', (await rows()).length, 4)
    await visit.page.keyboard.press('Enter')
    await visit.page.waitForFunction(() => document.querySelector('#tensor-table [role=status]').textContent === '36 of 39 rows')
    yield* silent(visit)
    await visit.close()
}

async function* vocabularyOfAFile({ browser, servers, models, heft }) {
    const words = ['<pad>', '<unk>', ...Array.from({ length: 500 }, (_, i) => `word${i}`), '<img src=x>']
    writeFileSync(join(models, 'words.txt'), words.join('\n') + '\n')
    writeSafetensors(join(models, 'tokens.safetensors'), [['embedding', 'F32', [words.length, 4], Buffer.alloc(words.length * 16)]])
    heft('convert', '--force', '--vocab', 'words.txt', 'tokens.safetensors', 'tokens.weights')
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'tokens.weights'))
    await visit.tab('vocabulary')
    await visit.page.waitForSelector('#vocabulary-table tr[data-row]')
    yield* lacks('summary', await visit.text('#vocabulary-text'), `${words.length} tokens`)
    await visit.page.fill('#vocabulary-table input', 'word499')
    await visit.page.waitForFunction(() => document.querySelectorAll('#vocabulary-table tr[data-row]').length === 1)
    yield* differs('token found', await visit.page.$$eval('#vocabulary-table tr[data-row] td', all => all.map(c => c.textContent).slice(0, 2)), ['501', 'word499'])
    yield* silent(visit)
    await visit.close()
}

async function* checksOfAFile({ browser, servers, models, heft, json }) {
    heft('convert', '--force', '--digest', 'sha256', 'decoder.safetensors', 'sound.zt')
    const [sound, damaged] = ['sound.zt', 'damaged.zt'].map(f => join(models, f))
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(sound)
    await visit.tab('checks')
    await visit.page.click('#panel-checks .primary')
    await visit.page.waitForSelector('#panel-checks p.good')
    yield* lacks('sound file', await visit.text('#panel-checks p.good'), 'No fault.')
    await visit.page.click('#panel-checks button:text-is("Hash")')
    await visit.page.waitForSelector('#panel-checks code.wrap')
    yield* differs('digest', await visit.text('#panel-checks code.wrap'), json('hash', '--json', 'sound.zt').model)
    const data = readFileSync(sound)
    data[data.indexOf(floats(-2, 6)) + 1] ^= 1
    writeFileSync(damaged, data)
    await visit.openFile(damaged)
    await visit.tab('checks')
    await visit.page.click('#panel-checks .primary')
    await visit.page.waitForSelector('#panel-checks p.fault')
    yield* lacks('damaged file', await visit.text('#panel-checks p.fault'), '1 fault')
    yield* lacks('finding', await visit.text('#panel-checks tr[data-row]'), 'odd', 'fault')
    yield* silent(visit)
    await visit.close()
}

async function* comparison({ browser, servers, models }) {
    const a = writeSafetensors(join(models, 'a.safetensors'), [
        ['same', 'F32', [1], floats(1)], ['value', 'F32', [2], floats(1, 2)], ['gone', 'F32', [1], floats(5)],
        ['shape', 'F32', [2, 1], floats(3, 4)], ['old', 'F32', [3], floats(7, 8, 9)]])
    const b = writeSafetensors(join(models, 'b.safetensors'), [
        ['same', 'F32', [1], floats(1)], ['value', 'F32', [2], floats(1, 4)], ['new', 'F32', [2], floats(6, 6)],
        ['shape', 'F32', [2], floats(3, 4)], ['moved', 'F32', [3], floats(7, 8, 9)]])
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(a)
    await visit.tab('compare')
    const [chooser] = await Promise.all([visit.page.waitForEvent('filechooser'), visit.page.click('#panel-compare .primary')])
    await chooser.setFiles(b)
    await visit.page.waitForSelector('#panel-compare tr[data-row]')
    const rows = await visit.page.$$eval('.compare-list > .table-box:not([hidden]) tr[data-row]', all => all.map(r => [...r.cells].slice(0, 5).map(c => c.textContent)))
    yield* differs('differences', rows.sort((x, y) => x[0] < y[0] ? -1 : 1), [
        ['gone', 'only in A', 'f32 [1]', '–', '–'], ['new', 'only in B', '–', 'f32 [2]', '–'],
        ['old', 'renamed', 'old', 'moved', '–'], ['shape', 'shape', '[2, 1]', '[2]', '–'],
        ['value', 'values', 'f32 [2]', 'f32 [2]', '1']])
    yield* silent(visit)
    await visit.close()
}

async function* foldersOfFiles({ browser, servers, models, heft, json }) {
    heft('split', '--force', '--max-size', '100KB', 'decoder.safetensors', 'sharded')
    const want = json('ls', '--json', 'sharded').tensors.length
    const visit = await Visit.begin(browser, servers.page)
    await visit.page.setInputFiles('#folder-input', join(models, 'sharded'))
    await visit.page.waitForSelector('#model:not([hidden])')
    yield* differs('tensors of a folder', await visit.text('#tensor-table [role=status]'), `${want} rows`)
    await choose(visit, 'layers.11.norm.bias')
    yield* differs('minimum in a shard', (await factsOf(visit)).Minimum, '-32')
    await visit.page.click('#open-another')
    await visit.openAddress(`${servers.ranges}sharded/model.safetensors.index.json`)
    await visit.page.waitForSelector('#model:not([hidden])')
    yield* differs('tensors of an address', await visit.text('#tensor-table [role=status]'), `${want} rows`)
    const tiny = readFileSync(writeSafetensors(join(models, 'tiny.safetensors'), [['only', 'F32', [1], floats(1)]]))
    await visit.page.evaluate(bytes => {
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(new File([Uint8Array.from(bytes)], 'dropped.safetensors'))
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }))
    }, [...tiny])
    await visit.page.waitForFunction(() => document.title.startsWith('dropped'))
    yield* differs('names of a dropped file', await visit.names(), ['only'])
    await visit.page.click('#open-another')
    await visit.page.setInputFiles('#file-input', ['decoder.mag', 'decoder.gguf'].map(f => join(models, f)))
    await visit.page.waitForSelector('#candidates:not([hidden])')
    await visit.page.click('#candidates button:text-is("decoder.mag")')
    await visit.page.waitForFunction(() => document.title.startsWith('decoder.mag'))
    yield* silent(visit)
    await visit.close()
}

export const contentTests = {
    'files of every format': everyFormat,
    'values of a tensor': valuesOfATensor,
    'tied tensors': tiedTensors,
    'folders and several files': foldersOfFiles,
    'hostile names': hostileNames,
    'modules of a model': modulesOfAModel,
    'vocabulary of a file': vocabularyOfAFile,
    'verify and hash': checksOfAFile,
    'two files side by side': comparison
}
