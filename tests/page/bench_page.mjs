// node bench_page.mjs SITE [--json]: figures of the page in Chromium; nothing is asserted. The servers
// and the browser are those of the tests. Packages are looked for below the current directory. --json
// prints the times of the index and of the first row, in milliseconds, as JSON.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import { launch, Visit } from './browser.mjs'
import { writeMany } from './model_files.mjs'
import { startServers } from './servers.mjs'

const RUNS = 9
const median = list => list.sort((a, b) => a - b)[Math.floor(list.length / 2)]
const ms = v => `${v.toFixed(1)} ms`

// Runs in the page: times of heft and of JSON.parse for the same index, and for the same list.
async function timeIndex([address, runs]) {
    const { open } = await import(new URL('heft.js', location.href))
    const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer())
    const timed = async f => {
        const start = performance.now()
        await f()
        return performance.now() - start
    }
    const dtypes = { U8: 1 }
    const byJson = () => {
        const length = Number(new DataView(bytes.buffer).getBigUint64(0, true))
        const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)))
        const list = []
        for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(header))
            list.push({ name, dtype, shape, offset: 8 + length + from, nbytes: to - from,
                elements: shape.reduce((a, b) => a * b, 1), size: dtypes[dtype] })
        return list
    }
    const byHeft = async () => {
        const model = await open(bytes)
        const columns = model.columns()
        await model.close()
        return columns
    }
    const times = { json: [], heft: [] }
    for (let i = 0; i < runs; i++) {
        times.json.push(await timed(byJson))
        times.heft.push(await timed(byHeft))
    }
    return times
}

// Runs in the page: scroll for some frames; return the times between frames, and of the scripts.
function timeFrames(frames) {
    const grid = document.querySelector('#tensor-table .grid')
    const intervals = []
    return new Promise(done => {
        let last = null
        const step = now => {
            if (last !== null)
                intervals.push(now - last)
            last = now
            grid.scrollTop += 293
            if (intervals.length < frames)
                requestAnimationFrame(step)
            else
                done(intervals)
        }
        requestAnimationFrame(step)
    })
}

// isReady: the file is opened when the page has warmed up, which takes it less time than a person needs
// to choose a file; otherwise at once.
async function firstRows(browser, servers, file, isReady) {
    const times = []
    const index = []
    for (let i = 0; i < 5; i++) {
        const visit = await Visit.begin(browser, servers.page)
        if (isReady)
            await visit.page.waitForFunction(() => performance.getEntriesByName('heft-ready').length)
        await visit.openAddress(servers.ranges + file)
        await visit.page.waitForSelector('#tensor-table tr[data-row]')
        const read = name => visit.page.waitForFunction(n => performance.getEntriesByName(n)[0]?.duration, name).then(h => h.jsonValue())
        times.push(await read('heft-first-row'))
        index.push(await read('heft-index'))
        await visit.close()
    }
    return [times, index]
}

// The overview of the same index: facts, map and layers.
async function overviews(browser, servers, file) {
    const times = []
    for (let i = 0; i < 5; i++) {
        const visit = await Visit.begin(browser, servers.page + '#view=overview')
        await visit.page.waitForFunction(() => performance.getEntriesByName('heft-ready').length)
        await visit.openAddress(servers.ranges + file)
        const seen = await visit.page.waitForFunction(() => performance.getEntriesByName('heft-overview')[0]?.duration)
        times.push(await seen.jsonValue())
        await visit.close()
    }
    return times
}

async function frames(browser, servers, models) {
    const visit = await Visit.begin(browser, servers.page)
    await visit.openFile(join(models, 'many.safetensors'))
    await visit.whole()
    await visit.page.waitForTimeout(500)
    const intervals = (await visit.page.evaluate(timeFrames, 240)).sort((a, b) => a - b)
    const at = share => intervals[Math.floor(intervals.length * share)]
    console.log(`scrolling 1,000,000 rows: median ${ms(at(0.5))} per frame, 95 % within ${ms(at(0.95))}, longest ${ms(intervals.at(-1))}`)
    for (const [title, act] of [['sort by name', '#tensor-table th:nth-child(1) button'], ['sort by size', '#tensor-table th:nth-child(4) button']]) {
        const [longest, total] = await visit.page.evaluate(longestFrame, act)
        console.log(`${title}: ready after ${ms(total)}, longest frame ${ms(longest)}`)
    }
    await visit.close()
}

// Runs in the page: press a button; return the longest frame until the table is ready, and the time.
function longestFrame(selector) {
    return new Promise(done => {
        const grid = document.querySelector('#tensor-table .grid')
        const start = performance.now()
        let last = start
        let longest = 0
        document.querySelector(selector).click()
        const step = () => {
            const now = performance.now()
            longest = Math.max(longest, now - last)
            last = now
            if (grid.hasAttribute('aria-busy'))
                requestAnimationFrame(step)
            else
                done([longest, now - start])
        }
        requestAnimationFrame(step)
    })
}

async function measure(browser, servers, models) {
    const visit = await Visit.begin(browser, servers.page)
    const { json, heft } = await visit.page.evaluate(timeIndex, [servers.ranges + 'index.safetensors', RUNS])
    await visit.close()
    const [row, index] = await firstRows(browser, servers, 'index.safetensors', true)
    const [rowAtOnce, indexAtOnce] = await firstRows(browser, servers, 'index.safetensors', false)
    const overview = await overviews(browser, servers, 'index.safetensors')
    if (process.argv.includes('--json')) {
        console.log(JSON.stringify({ heft, json, row, index, rowAtOnce, indexAtOnce, overview }))
        return
    }
    console.log(`index of 100,000 tensors: heft ${ms(median(heft))}, JSON.parse and the same list ${ms(median(json))}, ratio ${(median(heft) / median(json)).toFixed(2)}`)
    console.log(`first row of 100,000 tensors: ${ms(median(row))} after the last byte, of which the index ${ms(median(index))}`)
    console.log(`the same in a page that was loaded just now: ${ms(median(rowAtOnce))}, of which the index ${ms(median(indexAtOnce))}`)
    console.log(`overview of 100,000 tensors: ${ms(median(overview))} after the last byte`)
    await frames(browser, servers, models)
}

async function main(site) {
    const folder = mkdtempSync(join(tmpdir(), 'heft-bench-'))
    const models = join(folder, 'models')
    mkdirSync(models)
    writeMany(join(models, 'index.safetensors'), 100_000)
    if (!process.argv.includes('--json'))
        writeMany(join(models, 'many.safetensors'), 1_000_000)
    const servers = await startServers(join(folder, 'nginx'), { page: resolve(site), models })
    const browser = await launch()
    try {
        await measure(browser, servers, models)
    } finally {
        await browser.close()
        await servers.stop()
        rmSync(folder, { recursive: true, force: true })
    }
}

await main(...process.argv.slice(2))
