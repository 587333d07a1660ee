// Two files in two panes: kinds, modules, values of both, and files of the differences.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'

const counted = (count, value) => floats(...Array.from({ length: count }, (_, i) => value(i)))

function writePair(models) {
    const layers = change => Array.from({ length: 3 }, (_, n) => [`net.${n}.weight`, 'F32', [4, 4], counted(16, i => i + (n === 1 ? change : 0))])
    const a = writeSafetensors(join(models, 'left.safetensors'), [...layers(0), ['=gone', 'F32', [2], floats(5, 6)], ['form', 'F32', [2, 3], floats(1, 2, 3, 4, 5, 6)]])
    const b = writeSafetensors(join(models, 'right.safetensors'), [...layers(2), ['new', 'F32', [2], floats(6, 6)], ['form', 'F32', [3, 2], floats(1, 2, 3, 4, 5, 6)]])
    return [a, b]
}

// Drop files on the page.
async function drop(visit, paths) {
    await visit.page.evaluate(files => {
        const dataTransfer = new DataTransfer()
        for (const [name, bytes] of files)
            dataTransfer.items.add(new File([Uint8Array.from(bytes)], name))
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }))
    }, paths.map(p => [p.split('/').pop(), [...readFileSync(p)]]))
}

async function begin({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page)
    await drop(visit, writePair(models))
    await visit.page.waitForSelector('#panel-compare tr[data-row]')
    return visit
}

const names = visit => visit.page.$$eval('.compare-list > .table-box:not([hidden]) tr[data-row]', all => all.map(r => r.cells[0].textContent))
const titles = visit => visit.page.$$eval('.compare-list > .table-box:not([hidden]) th', all => all.map(th => th.textContent.trim()))
const chip = (visit, title) => visit.page.click(`.chips button:text-matches("^${title}")`)

async function* twoFilesAtOnce(context) {
    const visit = await begin(context)
    yield* differs('the view', await visit.page.isVisible('#panel-compare'), true)
    yield* differs('A and B', await visit.page.$$eval('.compare-sides .name', all => all.map(n => n.textContent)), ['left.safetensors', 'right.safetensors'])
    yield* differs('chips', await visit.page.$$eval('.chips button', all => all.map(b => b.textContent)), ['All 4', 'Values 1', 'Shape 1', 'Only in A 1', 'Only in B 1', 'By module'])
    await chip(visit, 'Values')
    yield* differs('changed', await names(visit), ['net.1.weight'])
    yield* differs('columns of values', await titles(visit), ['Tensor', 'Change', 'A', 'B', 'Differing', 'Greatest', 'Cosine'])
    await chip(visit, 'Only in B')
    yield* differs('added', await names(visit), ['new'])
    yield* differs('columns without values', await titles(visit), ['Tensor', 'Change', 'A', 'B'])
    await chip(visit, 'By module')
    const rows = await visit.page.$$eval('.compare-list > .table-box:not([hidden]) tr[data-row]', all => all.map(r => [...r.cells].map(c => c.textContent)))
    yield* differs('modules', rows.find(r => r[0] === 'net.1'), ['net.1', '1', '–', '–', '–', '2'])
    await visit.page.dblclick('.compare-list > .table-box:not([hidden]) tr[data-row]')
    await visit.page.waitForSelector('.chips .chip')
    yield* differs('tensors of a module', (await names(visit)).length, 1)
    yield* lacks('the command', await visit.text('.compare code'), 'heft diff left.safetensors right.safetensors')
    await visit.tab('overview')
    await visit.page.click('.matrix-tools button:text-is("Difference")')
    yield* differs('differences by layer', await visit.page.$$eval('.matrix td', all => all.map(td => td.getAttribute('aria-label').split(': ')[1])), ['0', '2', '0'])
    yield* silent(visit)
    await visit.close()
}

async function* valuesOfBoth(context) {
    const visit = await begin(context)
    await chip(visit, 'Values')
    await visit.page.click('.compare-list tr[data-row="0"]')
    await visit.page.waitForSelector('.pair-maps canvas')
    const figures = await visit.page.$$eval('.figures tr', all => Object.fromEntries(all.map(r => [r.cells[0].textContent, [...r.cells].slice(1).map(c => c.textContent)])))
    yield* differs('figures', [figures.Minimum, figures.Maximum], [['0', '2', '-2'], ['15', '17', '-2']])
    yield* differs('maps', await visit.page.$$eval('.pair-maps h4', all => all.map(h => h.textContent)), ['A', 'B', 'A − B'])
    const scales = () => visit.page.$$eval('.pair-maps canvas', all => all.map(c => /from (\S+)/.exec(c.getAttribute('aria-label'))[1]))
    yield* differs('one scale', new Set(await scales()).size, 1)
    const ends = await visit.page.$$eval('.both-bins .axis', all => all.map(t => t.textContent))
    yield* differs('ends of the histogram', ends, ['0', '17'])
    const shares = await visit.page.$$eval('.both-bins .hit title', all => [all[0].textContent, all.at(-1).textContent])
    yield* lacks('the first bin', shares[0], 'A 6.3 %', 'B 0.0 %')
    yield* lacks('the last bin', shares[1], 'A 0.0 %', 'B 6.3 %')
    await visit.page.check('.pair input[type=checkbox]')
    yield* differs('a scale of its own', (await scales())[2], '-2')
    await chip(visit, 'Shape')
    await visit.page.click('.compare-list tr[data-row="0"]')
    await visit.page.waitForSelector('.pair .warning')
    yield* lacks('other shapes', await visit.text('.pair .warning'), '[2, 3]', '[3, 2]')
    yield* silent(visit)
    await visit.close()
}

async function* filesOfDifferences(context) {
    const visit = await begin(context)
    const saved = async title => {
        const [download] = await Promise.all([visit.page.waitForEvent('download'), visit.page.click(`.compare button:text-is("${title}")`)])
        return readFileSync(await download.path(), 'utf8')
    }
    const csv = (await saved('Save as CSV')).split('\r\n')
    yield* differs('lines', csv.length, 6)
    yield* differs('titles', csv[0], 'tensor,change,a,b,differing,greatest_difference,cosine,rmse')
    yield* lacks('values', csv.find(l => l.startsWith('net.1')), 'net.1.weight,values,"f32 [4, 4]","f32 [4, 4]",16,2,')
    yield* differs('a name that tables would compute', csv.some(l => l.startsWith("'=gone,")), true)
    await chip(visit, 'Shape')
    const json = JSON.parse(await saved('Save as JSON'))
    yield* differs('JSON of what is shown', json.differences.map(d => [d.name, d.what]), [['form', 'shape']])
    yield* differs('summary', json.summary, { tensors: 6, equal: 2, differ: 2, renamed: 0, only_in_a: 1, only_in_b: 1 })
    yield* silent(visit)
    await visit.close()
}

export const compareTests = {
    'two files at once': twoFilesAtOnce,
    'values of both files': valuesOfBoth,
    'files of differences': filesOfDifferences
}
