// A file of many tensors comes in two answers: the first rows, then the columns of all tensors. Here
// the second answer is late.
import { join } from 'node:path'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { writeMany, writeSafetensors } from './model_files.mjs'

const COUNT = 2000
const LAST = 'layers.199.w9'

// Runs in the page before its scripts: keep the question for the columns until release() is called.
function holdColumns() {
    const { postMessage } = Worker.prototype
    const held = []
    window.held = held
    window.holds = true
    Worker.prototype.postMessage = function (message, ...rest) {
        if (message.method === 'rest' && window.holds)
            held.push(change => postMessage.call(this, { ...message, ...change }, ...rest))
        else
            postMessage.call(this, message, ...rest)
    }
    window.release = change => {
        window.holds = false
        held.splice(0).forEach(send => send(change))
    }
}

// Open a file up to its first rows.
async function begin({ browser, servers }, path) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.page.addInitScript(holdColumns)
    await visit.page.reload()
    await visit.openFile(path)
    await visit.page.waitForFunction(() => window.held.length)
    return visit
}

const release = (visit, change) => visit.page.evaluate(c => window.release(c), change)
const cards = visit => visit.page.$$eval('#cards dd', all => all.map(dd => dd.textContent))
const waiting = visit => visit.page.$$eval('#tensor-table tr[data-row][aria-busy=true]', rows => rows.map(r => r.cells[0].textContent))
const many = ({ models }, count = COUNT) => writeMany(join(models, `many-${count}.safetensors`), count)

async function waitForRow(visit, row, name) {
    await visit.page.waitForFunction(([i, n]) =>
        document.querySelector(`#tensor-table tr[data-row="${i}"]`)?.cells[0].textContent === n, [row, name])
}

async function waitForDetail(visit, name) {
    await visit.page.waitForFunction(n => document.querySelector('#detail h2')?.textContent === n, name)
}

async function* firstRows(context) {
    const visit = await begin(context, many(context))
    yield* differs('the first row', (await visit.names())[0], 'layers.0.w0')
    yield* differs('count', await visit.text('#tensor-table [role=status]'), '2,000 rows')
    yield* differs('rows for screen readers', await visit.page.getAttribute('#tensor-table .grid', 'aria-rowcount'), '2001')
    yield* differs('cards without sums', (await cards(visit)).slice(0, 4), ['safetensors', '…', '2,000', '…'])
    yield* differs('rows that are waited for', await waiting(visit), [])
    await visit.page.focus('#tensor-table .grid')
    await visit.page.keyboard.press('End')
    const busy = await waiting(visit)
    if (busy.length < 10 || busy.some(text => text !== '…'))
        yield `the last rows are not waited for: ${JSON.stringify(busy)}`
    const active = await visit.page.getAttribute('#tensor-table .grid', 'aria-activedescendant')
    yield* differs('the current row', await visit.page.getAttribute(`#${active}`, 'aria-rowindex'), '2001')
    await release(visit)
    await waitForRow(visit, COUNT - 1, LAST)
    await waitForDetail(visit, LAST)
    yield* differs('rows that are waited for at last', await waiting(visit), [])
    yield* differs('cards', (await cards(visit)).slice(0, 4), ['safetensors', '2 K', '2,000', '2.0 KiB'])
    yield* differs('the current row at last', await visit.page.getAttribute('#tensor-table .grid', 'aria-activedescendant'), active)
    yield* silent(visit)
    await visit.close()
}

async function* nothingMoves(context) {
    const topOf = visit => visit.page.$eval('#tensor-table .grid', grid => Math.round(grid.getBoundingClientRect().top))
    const visit = await begin(context, many(context))
    for (const width of [1280, 400]) {
        await visit.page.setViewportSize({ width, height: 800 })
        await visit.page.evaluate(() => { window.holds = true })
        await visit.openFile(many(context, COUNT + width))
        await visit.page.waitForFunction(() => window.held.length)
        const before = await topOf(visit)
        await release(visit)
        await visit.whole()
        yield* differs(`the top of the table at ${width} pixels`, await topOf(visit), before)
    }
    yield* silent(visit)
    await visit.close()
}

async function* sortBeforeColumns(context) {
    const visit = await begin(context, many(context))
    const sort = '#tensor-table th:nth-child(1) button'
    await visit.page.click(sort)
    await visit.page.click(sort)
    yield* differs('the table', await visit.page.getAttribute('#tensor-table .grid', 'aria-busy'), 'true')
    yield* differs('the first row meanwhile', (await visit.names())[0], 'layers.0.w0')
    await release(visit)
    await waitForRow(visit, 0, LAST)
    yield* differs('order', await visit.page.getAttribute('#tensor-table th:nth-child(1)', 'aria-sort'), 'descending')
    yield* differs('rows that are waited for', await waiting(visit), [])
    yield* silent(visit)
    await visit.close()
}

async function* actionsBeforeColumns(context) {
    const visit = await begin(context, many(context))
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.fill('#tensor-table input', 'layers.19.')
    await visit.tab('modules')
    await visit.page.waitForSelector('#module-table tr[data-row]')
    await visit.tab('tensors')
    yield* differs('details', await visit.text('#detail'), 'Choose a tensor to see its values.')
    await release(visit)
    await waitForRow(visit, 0, 'layers.19.w0')
    yield* differs('count', await visit.text('#tensor-table [role=status]'), '10 of 2,000 rows')
    await waitForDetail(visit, 'layers.0.w1')
    yield* silent(visit)
    await visit.close()
}

async function* columnsFail(context) {
    const visit = await begin(context, many(context))
    await visit.page.click('#tensor-table th:nth-child(1) button')
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await release(visit, { method: 'nothing' })
    yield* lacks('the message', await visit.failure(), 'Open it again')
    yield* differs('the first row', (await visit.names())[0], 'layers.0.w0')
    yield* differs('order', await visit.page.getAttribute('#tensor-table th:nth-child(1)', 'aria-sort'), null)
    await visit.page.click('#failure button')
    await visit.whole()
    await visit.page.click('#tensor-table th:nth-child(1) button')
    await visit.page.click('#tensor-table th:nth-child(1) button')
    await waitForRow(visit, 0, LAST)
    yield* differs('the message is gone', await visit.page.isHidden('#failure'), true)
    yield* silent(visit)
    await visit.close()
}

async function* replacedBeforeColumns(context) {
    const visit = await begin(context, many(context))
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.click('#tensor-table th:nth-child(1) button')
    await visit.openFile(many(context, 300))
    yield* differs('count', await visit.text('#tensor-table [role=status]'), '300 rows')
    await visit.page.waitForFunction(() => window.held.length === 2)
    await release(visit)
    await visit.whole()
    yield* differs('cards', (await cards(visit)).slice(0, 4), ['safetensors', '300', '300', '300 bytes'])
    await visit.page.focus('#tensor-table .grid')
    await visit.page.keyboard.press('End')
    await waitForDetail(visit, 'layers.29.w9')
    yield* differs('count at last', await visit.text('#tensor-table [role=status]'), '300 rows')
    yield* differs('failures', await visit.page.isHidden('#failure'), true)
    yield* silent(visit)
    await visit.close()
}

async function* everyCount(context) {
    const { browser, servers, models } = context
    const visit = await Visit.begin(browser, servers.page)
    const none = writeSafetensors(join(models, 'none.safetensors'), [])
    for (const count of [0, 1, 101, 256, 257]) {
        await visit.openFile(count ? many(context, count) : none)
        await visit.whole()
        yield* differs(`count of ${count}`, await visit.text('#tensor-table [role=status]'), `${count} ${count === 1 ? 'row' : 'rows'}`)
        yield* differs(`cards of ${count}`, (await cards(visit)).slice(1, 4), [String(count), String(count), count === 1 ? '1 byte' : `${count} bytes`])
        await visit.page.focus('#tensor-table .grid')
        await visit.page.keyboard.press('End')
        if (count)
            await waitForDetail(visit, `layers.${Math.floor((count - 1) / 10)}.w${(count - 1) % 10}`)
        yield* differs(`rows of ${count} that are waited for`, await waiting(visit), [])
    }
    yield* silent(visit)
    await visit.close()
}

async function* comparedWithMany(context) {
    const visit = await begin(context, many(context))
    await visit.tab('compare')
    await visit.page.setInputFiles('#file-input', many(context, 300))
    await release(visit)
    await visit.whole()
    await visit.tab('compare')
    const choosing = visit.page.waitForEvent('filechooser')
    await visit.page.click('#panel-compare button.primary')
    await (await choosing).setFiles(many(context, COUNT))
    await visit.page.waitForFunction(() => /tensors: /.test(document.querySelector('#panel-compare')?.textContent))
    const sides = await visit.page.$$eval('#panel-compare .side', all => all.map(p => p.textContent))
    yield* lacks('A', sides[0], '300 tensors, 300 parameters')
    yield* lacks('B', sides[1], '2,000 tensors, 2 K parameters')
    yield* silent(visit)
    await visit.close()
}

export const stageTests = {
    'first rows before the columns': firstRows,
    'the table stays where it is when the columns arrive': nothingMoves,
    'sorting before the columns': sortBeforeColumns,
    'search, modules and a tensor before the columns': actionsBeforeColumns,
    'columns that fail': columnsFail,
    'a file that is replaced before its columns': replacedBeforeColumns,
    'files of few tensors': everyCount,
    'comparison with many tensors': comparedWithMany
}
