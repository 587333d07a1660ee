// Models at an address: with ranges and without, refused, gone, changed; and no network at all.
import { spawn } from 'node:child_process'
import { closeSync, copyFileSync, ftruncateSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { floats, writeSafetensors } from './model_files.mjs'

async function opened(visit, address) {
    await visit.openAddress(address)
    await visit.page.waitForSelector('#model:not([hidden])')
}

// Nothing but the page's own files, the model's address and the settings beside it is contacted.
function* contacts(visit, servers, model) {
    const settings = new URL('config.json', model).href
    const others = visit.requests.filter(url => !url.startsWith(servers.page) && url !== model && url !== settings)
    yield* differs('other addresses', others, [])
}

async function* withRanges({ browser, servers, models }) {
    const big = Buffer.alloc(4 << 20, 1)
    writeSafetensors(join(models, 'big.safetensors'), [['first', 'F32', [2], floats(1, 2)], ['big', 'U8', [big.length], big]])
    const visit = await Visit.begin(browser, servers.page)
    const address = servers.ranges + 'big.safetensors'
    await opened(visit, address)
    yield* differs('names', await visit.names(), ['first', 'big'])
    await visit.page.click('#tensor-table tr[data-row="0"]')
    await visit.page.waitForSelector('#detail .value-table tr[data-row]')
    await visit.tab('checks')
    const facts = await visit.text('#panel-checks .facts')
    const sizes = facts.match(/Read to open([\d.]+) (\w+) in (\d+) request/)
    if (!sizes || sizes[2] === 'MiB' && sizes[1] > 1 || sizes[3] > 2)
        yield `opening read ${sizes}`
    yield* contacts(visit, servers, address)
    yield* silent(visit)
    await visit.close()
}

async function* withoutRanges({ browser, servers }) {
    const visit = await Visit.begin(browser, servers.page)
    await opened(visit, servers.whole + 'decoder.safetensors')
    yield* differs('first name', (await visit.names())[0], 'embed.weight')
    yield* silent(visit)
    await visit.close()
}

async function* tooLargeWithoutRanges({ browser, servers, models }) {
    // A sparse file: nothing is sent, because the size is too large.
    const path = join(models, 'huge.safetensors')
    copyFileSync(join(models, 'decoder.safetensors'), path)
    const file = openSync(path, 'r+')
    ftruncateSync(file, 100 << 20)
    closeSync(file)
    const visit = await Visit.begin(browser, servers.page)
    await visit.openAddress(servers.whole + 'huge.safetensors')
    const text = await visit.failure()
    yield* lacks('message', text, 'The server does not send parts of files', 'Download the whole file')
    await visit.close()
}

// Failures: [title, address, texts of the message].
const FAILURES = [
    ['another server without permission', s => s.closed + 'decoder.safetensors', ['could not be fetched', 'CORS']],
    ['a missing file', s => s.ranges + 'none.safetensors', ['There is no file at this address']],
    ['no server', () => 'http://127.0.0.1:9/x.safetensors', ['could not be fetched']],
    ['a truncated file', s => s.ranges + 'short.safetensors', ['truncated']],
    ['what is no address', () => 'nonsense', ['The address is not understood', 'nonsense is no address']],
    ['an address of S3', () => 's3://bucket/model.gguf', ['This address is for the command', 's3://bucket/model.gguf', 'heft view']],
    ['a model in the cache', () => 'hub:owner/name', ['This address is for the command', 'hub:owner/name']],
    ['an address without a scheme', s => s.ranges.slice('http://'.length) + 'none.safetensors', ['There is no file at this address']],
    ['a page', s => s.ranges + 'page.gguf', ['not a valid file', 'HTML page']],
    ['noise', s => s.ranges + 'noise.gguf', ['The format of the file is not known', 'x91']],
    ['an address that the policy forbids', () => 'http://192.0.2.1/x.safetensors', ['could not be fetched']]
]

async function* failures({ browser, servers, models }) {
    const whole = readFileSync(join(models, 'decoder.safetensors'))
    writeFileSync(join(models, 'short.safetensors'), whole.subarray(0, whole.length - 100))
    writeFileSync(join(models, 'page.gguf'), '<!DOCTYPE html><title>Sign in</title>'.repeat(10))
    writeFileSync(join(models, 'noise.gguf'), Buffer.alloc(1000, 0x91))
    const visit = await Visit.begin(browser, servers.page)
    for (const [title, addressOf, texts] of FAILURES) {
        await visit.openAddress(addressOf(servers))
        yield* lacks(`message of ${title}`, await visit.failure(), ...texts)
        await visit.page.click('#failure button:text-is("Dismiss")')
    }
    yield* differs('models shown', await visit.page.isVisible('#model'), false)
    await visit.close()
}

async function* changedHalfWay({ browser, servers, models }) {
    const write = (name, value) => writeSafetensors(join(models, name),
        [['first', 'F32', [2], floats(1, 2)], ['second', 'F32', [1 << 20], Buffer.alloc(4 << 20, value)]])
    write('moving.safetensors', 1)
    const visit = await Visit.begin(browser, servers.page)
    await opened(visit, servers.ranges + 'moving.safetensors')
    write('next.safetensors', 2)
    writeFileSync(join(models, 'next.safetensors'), Buffer.from('x'), { flag: 'a' })
    renameSync(join(models, 'next.safetensors'), join(models, 'moving.safetensors'))
    await visit.page.click('#tensor-table tr[data-row="1"]')
    yield* lacks('message', await visit.failure(), 'The file changed while it was read')
    await visit.page.click('#open-another')
    const path = write('local.safetensors', 3)
    await visit.openFile(path)
    writeFileSync(path, 'x', { flag: 'a' })
    await visit.page.click('#tensor-table tr[data-row="1"]')
    yield* lacks('message of a file on disk', await visit.failure(), 'The file can no longer be read')
    await visit.close()
}

async function* cancelled({ browser, servers, models }) {
    writeSafetensors(join(models, 'slow.safetensors'), [['w', 'U8', [8 << 20], Buffer.alloc(8 << 20)]])
    const visit = await Visit.begin(browser, servers.page)
    await opened(visit, servers.slow + 'slow.safetensors')
    await visit.tab('checks')
    await visit.page.click('#panel-checks button:text-is("Hash")')
    await visit.page.waitForSelector('#progress:not([hidden])')
    await visit.page.click('#progress-cancel')
    await visit.page.waitForSelector('#progress', { state: 'hidden' })
    yield* lacks('announcement', await visit.text('#said'), 'cancelled')
    yield* differs('digests', await visit.page.locator('#panel-checks code.wrap').count(), 0)
    yield* silent(visit)
    await visit.close()
}

async function* offline({ browser, servers, models }) {
    const visit = await Visit.begin(browser, servers.page, { serviceWorkers: 'allow' })
    await visit.page.evaluate(() => navigator.serviceWorker.ready)
    await visit.page.reload()
    await visit.context.setOffline(true)
    await visit.page.reload()
    await visit.openFile(join(models, 'decoder.safetensors'))
    yield* differs('first name', (await visit.names())[0], 'embed.weight')
    const kept = await visit.page.evaluate(async () => {
        const names = await caches.keys()
        const requests = await Promise.all(names.map(async n => (await (await caches.open(n)).keys()).map(r => r.url)))
        return requests.flat()
    })
    yield* differs('files of models in the cache', kept.filter(url => /decoder/.test(url)), [])
    yield* silent(visit)
    await visit.close()
}

const SERVER = fileURLToPath(new URL('../../tools/serve_page.py', import.meta.url))

// The small server of ./dev web: types, headers, ranges, an end by Ctrl-C.
async function* ownServer({ browser, site, models }) {
    const server = spawn('python3', [SERVER, site, '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const address = await new Promise(done => server.stdout.once('data', text => done(String(text).match(/http:\S+/)[0])))
    const ended = new Promise(done => server.on('exit', (code, signal) => done(code ?? signal)))
    try {
        const whole = new Uint8Array(await (await fetch(address + 'index.html')).arrayBuffer())
        for (const [range, status, from, to] of [['bytes=5-9', 206, 5, 10], ['bytes=7-', 206, 7, whole.length], ['bytes=0-999999', 206, 0, whole.length]]) {
            const answer = await fetch(address + 'index.html', { headers: { Range: range } })
            yield* differs(`status of ${range}`, answer.status, status)
            yield* differs(`bytes of ${range}`, [...new Uint8Array(await answer.arrayBuffer())], [...whole.subarray(from, to)])
        }
        const past = await fetch(address + 'index.html', { headers: { Range: 'bytes=999999-' } })
        yield* differs('status of a range past the end', past.status, 416)
        yield* differs('type of a script', (await fetch(address + 'inspector.js')).headers.get('content-type'), 'text/javascript')
        const outside = await fetch(address + '..%2f..%2fetc/passwd')
        yield* differs('status of a path outside', outside.status, 404)
        const visit = await Visit.begin(browser, address)
        await visit.openFile(join(models, 'decoder.safetensors'))
        yield* silent(visit)
        await visit.close()
    } finally {
        server.kill('SIGINT')
    }
    yield* differs('exit status after Ctrl-C', await ended, 0)
}

export const networkTests = {
    'the server of ./dev web': ownServer,
    'a server with ranges': withRanges,
    'a server without ranges': withoutRanges,
    'a large file without ranges': tooLargeWithoutRanges,
    'messages of failures': failures,
    'a file that changes half-way': changedHalfWay,
    'work that is cancelled': cancelled,
    'no network after the first visit': offline
}
