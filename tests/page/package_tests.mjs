// The element of the package in a page of its own, the example, and what was opened before.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'

const TYPES = { mjs: 'text/javascript', wasm: 'application/wasm', html: 'text/html' }
const HOST = 'https://element.test/'
const PAGE = '<!DOCTYPE html><html lang="en"><title>t</title><script type="module" src="element.mjs"></script><heft-inspector src="decoder.safetensors"></heft-inspector></html>'
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'"

// Serve a page, the package, and models, all from one host.
async function beginElement({ browser, site, models }) {
    const context = await browser.newContext()
    const messages = []
    await context.route(HOST + '**', route => {
        const name = new URL(route.request().url()).pathname.slice(1)
        const suffix = name ? name.split('.').pop() : 'html'
        const body = name ? readFileSync(join(TYPES[suffix] ? join(site, '..', 'package') : models, name)) : PAGE
        return route.fulfill({ body, headers: { 'content-type': TYPES[suffix] ?? 'application/octet-stream', 'content-security-policy': POLICY } })
    })
    const page = await context.newPage()
    page.on('pageerror', e => messages.push(String(e)))
    page.on('console', m => m.type() === 'error' && !m.text().includes('favicon') && messages.push(m.text()))
    await page.goto(HOST)
    return { context, page, messages }
}

async function* elementOfThePackage(all) {
    const { context, page, messages } = await beginElement(all)
    const element = page.locator('heft-inspector')
    await element.locator('li').first().waitFor()
    yield* lacks('summary', await element.locator('p').nth(1).textContent(), 'safetensors', '39 tensors')
    await element.locator('input').fill('norm.bias f32')
    yield* differs('count', await element.locator('[role=status]').textContent(), '12 of 39 tensors')
    await element.locator('button').first().click()
    await element.locator('dl').waitFor()
    yield* lacks('statistics', await element.locator('dl').textContent(), 'Minimum-32', 'Maximum31')
    const fails = source => page.evaluate(source => new Promise(done => {
        const inspector = document.querySelector('heft-inspector')
        inspector.addEventListener('error', e => done(e.detail.status), { once: true })
        inspector.source = source
    }), source)
    yield* differs('no address', await fails('https://['), 'argument')
    yield* differs('a failure alone', await element.locator('p').allTextContents(), ["'https://[' is not an address"])
    await page.evaluate(() => new Promise((done, fail) => {
        const inspector = document.querySelector('heft-inspector')
        inspector.addEventListener('error', e => e.detail.rule === 'heft/x' ? fail() : done())
        inspector.source = new Uint8Array(10)
    }))
    yield* differs('a failure is shown', await element.locator('.fault').count(), 1)
    yield* differs('no model', await page.evaluate(() => document.querySelector('heft-inspector').model), null)
    yield* differs('messages', messages, [])
    await context.close()
}

// A blob is hashed by several workers as by one, and as by the command; the address by one.
async function* hashByWorkers(all) {
    const { context, page, messages } = await beginElement(all)
    const got = await page.evaluate(async host => {
        const { open } = await import(host + 'heft.mjs')
        const blob = await (await fetch('decoder.safetensors')).blob()
        const digests = []
        for (const input of [blob, host + 'decoder.safetensors'])
            for (const workers of [1, 3]) {
                const model = await open(input, { maxWholeBytes: 1 << 28 })
                digests.push((await model.hash({ workers })).model)
                await model.close()
            }
        return digests
    }, HOST)
    const want = all.json('hash', '--json', 'decoder.safetensors').model
    yield* differs('digests', got.slice(0, 2), [want, want])
    yield* differs('digests at an address', got.slice(2), [want, want])
    yield* differs('messages', messages, [])
    await context.close()
}

async function* anExample({ browser, servers }) {
    const visit = await Visit.begin(browser, servers.page + '#')
    await visit.page.click('#try-example')
    await visit.page.waitForFunction(() => document.querySelector('.health')?.textContent.includes('1 NaN in 1 tensor: all'))
    yield* differs('layers', await visit.page.$$eval('.matrix thead th', all => all.length), 7)
    yield* differs('requests of others', visit.requests.filter(url => !url.startsWith(servers.page)), [])
    yield* silent(visit)
    await visit.close()
}

async function* openedBefore({ browser, servers }) {
    const visit = await Visit.begin(browser, servers.page)
    const file = servers.ranges + 'decoder.safetensors'
    await visit.openAddress(file)
    await visit.page.waitForSelector('#tensor-table tr[data-row]')
    await visit.page.click('#open-another')
    await visit.page.waitForSelector('#recent:not([hidden]) button')
    yield* lacks('the list', await visit.text('#recent'), 'decoder.safetensors', file)
    await visit.page.click('#recent li button')
    await visit.page.waitForSelector('#model:not([hidden])')
    await visit.page.click('#open-another')
    await visit.page.click('#recent button:text-is("Forget these")')
    await visit.page.waitForSelector('#recent', { state: 'hidden' })
    await visit.page.reload()
    await visit.page.waitForSelector('#model:not([hidden])') // this tab may open it again
    await visit.page.click('#open-another')
    await visit.page.waitForSelector('#recent:not([hidden]) button')
    yield* silent(visit)
    await visit.close()
}

// The system gives the installed page a file to open.
async function* filesOfTheSystem({ browser, servers, models, site }) {
    const visit = await Visit.begin(browser, servers.page)
    const bytes = [...readFileSync(join(models, 'decoder.safetensors'))]
    await visit.page.addInitScript(() => {
        Object.defineProperty(window, 'launchQueue', { value: { setConsumer(use) { window.launched = use } } })
    })
    await visit.page.reload()
    await visit.page.waitForFunction(() => window.launched)
    await visit.page.evaluate(content => window.launched({ files: [{ kind: 'file', getFile: async () => new File([Uint8Array.from(content)], 'given.safetensors') }] }), bytes)
    await visit.page.waitForFunction(() => document.title.startsWith('given'))
    const manifest = JSON.parse(readFileSync(join(site, 'manifest.webmanifest')))
    const suffixes = manifest.file_handlers.flatMap(h => Object.values(h.accept).flat())
    for (const suffix of ['.safetensors', '.gguf', '.pt', '.npz', '.zt'])
        yield* differs(`${suffix} opens the page`, suffixes.includes(suffix), true)
    await visit.close()
}

// The page as one file, without a server: values, and a worker of the worker.
async function* withoutAServer({ browser, site }) {
    const visit = await Visit.begin(browser, pathToFileURL(join(site, '..', 'heft-inspector.html')).href)
    await visit.page.click('#try-example')
    await visit.page.waitForSelector('#tensor-table tr[data-row]')
    await visit.page.click('#tensor-table tr[data-row="1"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]:not([aria-busy])')
    await visit.tab('checks')
    await visit.page.click('#panel-checks .primary')
    await visit.page.waitForFunction(() => document.querySelector('#panel-checks').textContent.includes('No fault'))
    yield* differs('requests', visit.requests.filter(url => !/^(file|blob|data):/.test(url)), [])
    yield* silent(visit)
    await visit.close()
}

export const packageTests = {
    'the page as one file': withoutAServer,
    'the element of the package': elementOfThePackage,
    'hashing by several workers': hashByWorkers,
    'an example to try': anExample,
    'what was opened before': openedBefore,
    'files that the system opens': filesOfTheSystem
}
