// Chromium without a window, and what every test does with the page.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

export const CHROMIUM = '/usr/bin/chromium'
export const isInstalled = () => existsSync(CHROMIUM)

// Packages are looked for below the current directory.
const require = createRequire(join(process.cwd(), 'package.json'))
export const axePath = () => require.resolve('axe-core')

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage']

// One browser with an empty profile.
export function launch() {
    return require('playwright-core').chromium.launch({ executablePath: CHROMIUM, args: ARGS })
}

// A page in a context of its own. Errors of scripts and refusals of the policy end up in `messages`.
export class Visit {
    static async begin(browser, address, options = {}) {
        const visit = new Visit()
        visit.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, serviceWorkers: 'block', ...options })
        visit.context.setDefaultTimeout(Number(process.env.HEFT_PAGE_WAIT) || 30000) // milliseconds
        visit.messages = []
        visit.requests = []
        visit.context.on('request', r => visit.requests.push(r.url()))
        visit.page = await visit.context.newPage()
        visit.page.on('pageerror', e => visit.messages.push(String(e)))
        visit.page.on('console', m => {
            // Browsers note each file that a server does not have: most models have no settings beside them.
            const isNoFile = m.text().includes('404') && m.location().url.endsWith('/config.json')
            if ((m.type() === 'error' || m.type() === 'warning') && !isNoFile && !m.text().includes('registration blocked by Playwright'))
                visit.messages.push(m.text())
        })
        // Most tests are about tensors; the address says which view comes first.
        await visit.page.goto(address.includes('#') ? address : address + '#view=tensors')
        return visit
    }

    close() {
        return this.context.close()
    }

    async openFile(path) {
        const before = await this.page.getAttribute('#model', 'data-id')
        await this.page.setInputFiles('#file-input', path)
        await this.page.waitForFunction(id => (document.getElementById('model').dataset.id ?? null) !== id, before)
    }

    async openAddress(address) {
        await this.page.fill('#address', address)
        await this.page.press('#address', 'Enter')
    }

    // Wait for `count` rows of a table, which paints a few rows before the layout and the others after the layout.
    rows(table, count) {
        return this.page.waitForFunction(([table, count]) =>
            document.querySelectorAll(`${table} tr[data-row]`).length >= count, [table, count])
    }

    // Wait for the columns of all tensors, which come after the first rows.
    whole() {
        return this.page.waitForFunction(() => document.querySelector('#cards dd') &&
            ![...document.querySelectorAll('#cards dd')].some(dd => dd.textContent === '…'))
    }

    text(selector) {
        return this.page.locator(selector).first().textContent()
    }

    // Texts of the first cells of the rows of a table.
    names(table = '#tensor-table') {
        return this.page.$$eval(`${table} tr[data-row]`, rows => rows.map(r => r.cells[0].textContent))
    }

    async failure() {
        await this.page.waitForSelector('#failure:not([hidden])')
        return this.text('#failure')
    }

    tab(name) {
        return this.page.click(`#tab-${name}`)
    }
}
