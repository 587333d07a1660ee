// Keyboard, screen reader, colours, narrow windows.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { axePath, Visit } from './browser.mjs'
import { differs, silent } from './expect.mjs'

const VIEWS = ['overview', 'tensors', 'modules', 'metadata', 'checks', 'compare']

const focused = visit => visit.page.evaluate(() => document.activeElement.id || document.activeElement.textContent)

// All functions without a mouse: open by an address, choose, sort, search, views, help, colours.
async function* keyboard({ browser, servers }) {
    const visit = await Visit.begin(browser, servers.page)
    const press = async (...keys) => {
        for (const key of keys)
            await visit.page.keyboard.press(key)
    }
    await press('a')
    yield* differs('focus of the address', await focused(visit), 'address')
    await visit.page.keyboard.type(servers.ranges + 'decoder.safetensors')
    await press('Enter')
    await visit.page.waitForSelector('#model:not([hidden])')
    await press('ArrowDown', 'ArrowDown')
    await visit.page.waitForFunction(() => document.querySelector('#detail h2')?.textContent === 'layers.0.attention.weight')
    await press('End')
    await visit.page.waitForFunction(() => document.querySelector('#detail h2')?.textContent === 'odd')
    yield* differs('row for screen readers', await visit.page.evaluate(() => {
        const grid = document.activeElement
        return document.getElementById(grid.getAttribute('aria-activedescendant'))?.getAttribute('aria-rowindex')
    }), '40')
    yield* differs('rows for screen readers', await visit.page.getAttribute('#tensor-table .grid', 'aria-rowcount'), '40')
    await press('Enter')
    yield* differs('focus of the details', await focused(visit), 'detail')
    await press('/')
    await visit.page.keyboard.type('bias')
    await visit.page.waitForFunction(() => document.querySelector('#tensor-table [role=status]').textContent === '12 of 39 rows')
    await visit.page.focus('#tensor-table th:nth-child(4) button')
    await press('Enter')
    await visit.page.waitForFunction(() => document.querySelector('#tensor-table th:nth-child(4)').getAttribute('aria-sort') === 'ascending')
    for (const [i, view] of VIEWS.entries()) {
        await press(String(i + 1))
        yield* differs(`view of key ${i + 1}`, await visit.page.isVisible(`#panel-${view}`), true)
    }
    await visit.page.focus('#tab-compare')
    await press('ArrowRight')
    yield* differs('tab after the last one', await focused(visit), 'tab-overview')
    await press('t', 't')
    yield* differs('colours', await visit.page.evaluate(() => document.documentElement.dataset.theme), 'dark')
    await press('?')
    yield* differs('list of shortcuts', await visit.page.evaluate(() => document.getElementById('help').open), true)
    await press('Escape')
    await press('2')
    yield* visibleFocus(visit, press)
    yield* silent(visit)
    await visit.close()
}

// Tab reaches every control, and each one shows that it has the focus.
async function* visibleFocus(visit, press) {
    const seen = new Set()
    await visit.page.evaluate(() => document.activeElement.blur())
    for (let i = 0; i < 40; i++) {
        await press('Tab')
        const [name, shown] = await visit.page.evaluate(() => {
            const node = document.activeElement
            const style = getComputedStyle(node)
            return [node.id || node.className || node.textContent, node === document.body || style.outlineStyle !== 'none']
        })
        if (!shown)
            yield `the focus of ${name} cannot be seen`
        seen.add(name)
    }
    for (const id of ['open-another', 'theme-switch', 'help-button', 'tab-tensors', 'grid', 'detail'])
        if (!seen.has(id) && id !== 'detail')
            yield `Tab does not reach ${id}`
}

export async function violations(visit, view) {
    const found = await visit.page.evaluate(async () => (await window.axe.run(document, { resultTypes: ['violations'] })).violations
        .map(v => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary).join('; ')}`))
    return found.map(text => `${view}: ${text}`)
}

async function* axe({ browser, servers, models }) {
    const script = readFileSync(axePath(), 'utf8')
    for (const colorScheme of ['light', 'dark']) {
        const visit = await Visit.begin(browser, servers.page, { colorScheme, bypassCSP: true })
        await visit.page.evaluate(script)
        yield* await violations(visit, `start, ${colorScheme}`)
        await visit.openFile(join(models, 'decoder.safetensors'))
        await visit.page.click('#tensor-table tr[data-row="1"]')
        await visit.page.waitForSelector('#detail .value-table tr[data-row]')
        for (const view of VIEWS) {
            await visit.tab(view)
            await visit.page.waitForFunction(v => document.querySelector(`#panel-${v}`).childElementCount > 0, view)
            yield* await violations(visit, `${view}, ${colorScheme}`)
        }
        const [chooser] = await Promise.all([visit.page.waitForEvent('filechooser'), visit.page.click('#panel-compare .primary')])
        await chooser.setFiles(join(models, 'decoder.gguf'))
        await visit.page.click('.compare-list tr[data-row="0"]')
        await visit.page.waitForSelector('.pair .figures')
        yield* await violations(visit, `a comparison, ${colorScheme}`)
        await visit.page.click('.chips button:text-is("By module")')
        yield* await violations(visit, `modules of a comparison, ${colorScheme}`)
        await visit.close()
    }
}

// Controls that are smaller than a finger.
async function smallTargets(visit, view) {
    const small = await visit.page.$$eval('button, select, input:not([type=checkbox]):not([type=file])', all => all.filter(n => n.offsetParent && n.checkVisibility())
        .filter(n => Math.min(n.getBoundingClientRect().height, n.getBoundingClientRect().width) < 43.5).map(n => n.id || n.textContent))
    return small.length ? [`${view}: smaller than 44 pixels: ${small.slice(0, 5)}`] : []
}

// Rows that begin or end beyond the table.
const cutCells = visit => visit.page.$$eval('.panel:not([hidden]) .grid', all => all.filter(g => g.offsetParent && g.querySelector('td'))
    .filter(g => g.querySelector('tbody tr').getBoundingClientRect().right > g.getBoundingClientRect().right + 1).map(g => g.getAttribute('aria-label')))
function* cutColumns(cut, view) {
    if (cut.length)
        yield `${view}: columns are cut in ${cut}`
}

async function* narrowWindow({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page, { viewport: { width: 390, height: 844 } })
    const beyond = () => visit.page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth))
    yield* differs('width of the start', await beyond(), 0)
    await visit.openFile(join(models, 'decoder.safetensors'))
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    yield* differs('width with details', await beyond(), 0)
    yield* differs('details over the table', await visit.page.$eval('#detail', d => getComputedStyle(d).position), 'fixed')
    await visit.page.keyboard.press('Escape')
    for (const view of VIEWS) {
        await visit.tab(view)
        yield* await smallTargets(visit, view)
        yield* cutColumns(await cutCells(visit), view)
        yield* differs(`width of ${view}`, await beyond(), 0)
    }
    await visit.close()
}

async function* colours({ browser, servers }) {
    const sums = visit => visit.page.evaluate(() => ['color', 'backgroundColor'].map(key =>
        getComputedStyle(document.body)[key].match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)))
    for (const colorScheme of ['light', 'dark']) {
        const visit = await Visit.begin(browser, servers.page, { colorScheme })
        const [text, page] = await sums(visit)
        if ((text > page) !== (colorScheme === 'dark') || Math.abs(text - page) < 400)
            yield `${colorScheme}: sums of colours are ${text} on ${page}`
        await visit.page.click('#theme-switch')
        if (colorScheme === 'light')
            await visit.page.click('#theme-switch')
        await visit.page.reload()
        const [after, behind] = await sums(visit)
        if ((after > behind) !== (colorScheme === 'light'))
            yield `${colorScheme}: the switch gives ${after} on ${behind}`
        await visit.close()
    }
}

export const accessTests = {
    'keyboard only': keyboard,
    'accessibility by axe': axe,
    'a window of 390 pixels': narrowWindow,
    'light and dark': colours
}
