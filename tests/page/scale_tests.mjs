// A table of 1,000,000 tensors.
import { join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, silent } from './expect.mjs'
import { writeMany } from './model_files.mjs'

const COUNT = 1_000_000

const numberOf = name => {
    const [, layer, w] = name.match(/^layers\.(\d+)\.w(\d)$/)
    return 10 * layer + Number(w)
}

async function waitForFirst(visit, name) {
    await visit.page.waitForFunction(n => document.querySelector('#tensor-table tr[data-row="0"]')?.cells[0].textContent === n, name)
}

async function* aMillionRows({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(writeMany(join(models, 'many.safetensors'), COUNT))
    yield* differs('count', await visit.text('#tensor-table [role=status]'), '1,000,000 rows')
    yield* differs('rows for screen readers', await visit.page.getAttribute('#tensor-table .grid', 'aria-rowcount'), String(COUNT + 1))
    await visit.page.focus('#tensor-table .grid')
    await visit.page.keyboard.press('End')
    await visit.whole()
    yield* differs('the last row', (await visit.names()).at(-1), 'layers.99999.w9')
    const half = await visit.page.evaluate(() => new Promise(done => {
        const grid = document.querySelector('#tensor-table .grid')
        grid.scrollTop = (grid.scrollHeight - grid.clientHeight) / 2
        requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector('#tensor-table tr[data-row]').cells[0].textContent)))
    }))
    if (Math.abs(numberOf(half) - COUNT / 2) > COUNT / 1000)
        yield `the middle of the scroll bar shows ${half}`
    yield* await smallSteps(visit)
    const before = await visit.names()
    await visit.tab('metadata')
    await visit.page.waitForFunction(() => document.getElementById('metadata-table').childElementCount)
    await visit.tab('tensors')
    await visit.page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
    yield* differs('rows of a view that was hidden', await visit.names(), before)
    await visit.page.click('#tensor-table th:nth-child(5) button')
    await visit.page.click('#tensor-table th:nth-child(5) button')
    await waitForFirst(visit, 'layers.99999.w9')
    await visit.page.fill('#tensor-table input', 'layers.12345.')
    await waitForFirst(visit, 'layers.12345.w9')
    yield* differs('count after a search', await visit.text('#tensor-table [role=status]'), '10 of 1,000,000 rows')
    await visit.tab('modules')
    await visit.page.waitForSelector('#module-table tr[data-row]')
    yield* silent(visit)
    await visit.close()
}

// The wheel moves rows by its pixels, although the scroll bar cannot have the height of all rows.
async function smallSteps(visit) {
    const complaints = []
    const before = numberOf((await visit.names())[0])
    await visit.page.hover('#tensor-table tr[data-row]')
    for (let i = 0; i < 10; i++)
        await visit.page.mouse.wheel(0, 280)
    await visit.page.waitForFunction(([from]) => {
        const [, layer, w] = document.querySelector('#tensor-table tr[data-row]').cells[0].textContent.match(/(\d+)\.w(\d)/)
        return 10 * layer + Number(w) >= from + 99
    }, [before])
    const after = numberOf((await visit.names())[0])
    if (after - before > 102)
        complaints.push(`2,800 pixels of the wheel moved ${after - before} rows, not 100`)
    return complaints
}

export const scaleTests = { '1,000,000 tensors': aMillionRows }
