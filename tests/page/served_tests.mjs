// The page as `heft view` serves it: models on this computer, and on a server that plays the hub.
import { spawn } from 'node:child_process'

import { Visit } from './browser.mjs'
import { differs, lacks, silent } from './expect.mjs'
import { SIGNATURE, startHub } from './hub_server.mjs'
import { decoder, floats, safetensors } from './model_files.mjs'

const UNSUPPORTED = 5 // the exit code of a command that was built without its module
const TOKEN = 'hf_SECRET'

// The command with models; address: what it prints, or null if it was built without the module.
async function serve({ command, site, models }, files, env = {}) {
    const started = spawn(command, ['view', ...files], { cwd: models, env: { ...process.env, HEFT_PAGE: site, ...env } })
    const ended = new Promise(done => started.on('exit', done))
    const said = []
    started.stderr.on('data', d => said.push(d))
    let text = ''
    const printed = new Promise(done => started.stdout.on('data', d => {
        text += d
        if (text.includes('\n'))
            done(text.trim())
    }))
    const address = await Promise.race([printed, ended])
    if (typeof address === 'number' && address !== UNSUPPORTED)
        throw new Error(`heft view ended with ${address}: ${said.join('')}`)
    return { ended, said, stop: () => started.kill('SIGINT'), address: typeof address === 'string' ? address : null }
}

// Commands have the names of the models and not paths of the server; the command ends with the page.
async function* twoModels(context) {
    const { address, ended, stop } = await serve(context, ['decoder.safetensors', 'decoder.gguf'])
    if (!address)
        return
    try {
        const visit = await Visit.begin(context.browser, address, { serviceWorkers: 'allow' })
        await visit.page.waitForSelector('.compare code')
        yield* differs('the command', await visit.text('.compare code'), 'heft diff decoder.safetensors decoder.gguf')
        const workers = await visit.page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length)
        yield* differs('service workers', [workers, visit.requests.filter(r => r.endsWith('/sw.js'))], [0, []])
        yield* silent(visit)
        await visit.close()
        yield* differs('exit code', await ended, 0)
    } finally {
        stop()
    }
}

// ---- models of the hub

const config = Buffer.from('{"model_type": "llama", "max_position_embeddings": 54321}')
// The last tensor lies beyond the bytes that opening reads.
const model = value => safetensors([...decoder(), ['far', 'F32', [1 << 18], Buffer.alloc(1 << 20, value)], ['last', 'F32', [2], floats(1, value)]])

function repositories() {
    const index = { metadata: {}, weight_map: { first: 'model-00001-of-00002.safetensors', second: 'model-00002-of-00002.safetensors' } }
    const shard = name => safetensors([[name, 'F32', [2], floats(1, 2)]])
    return {
        'own/open': { sha: 'a'.repeat(40), files: { 'config.json': config, 'model.safetensors': model(1), 'sub/other.safetensors': model(2) } },
        'own/shards': { sha: 'b'.repeat(40), files: { 'model-00001-of-00002.safetensors': shard('first'), 'model-00002-of-00002.safetensors': shard('second'), 'model.safetensors.index.json': Buffer.from(JSON.stringify(index)) } },
        'own/closed': { sha: 'c'.repeat(40), token: TOKEN, files: { 'model.safetensors': model(3) } }
    }
}

// Call test({ visit, hub, served }) with the page that shows the models, unless the command has no page.
async function* withHub(context, names, test) {
    const hub = await startHub(repositories())
    const served = await serve(context, names, { HF_ENDPOINT: hub.url, HF_TOKEN: TOKEN })
    try {
        if (!served.address)
            return
        const visit = await Visit.begin(context.browser, served.address)
        await visit.page.waitForSelector('#model:not([hidden])')
        await visit.whole()
        yield* test({ visit, hub, served })
        await visit.close()
    } finally {
        served.stop()
        hub.stop()
    }
}

const commandsOf = visit => visit.page.$$eval('code', all => all.map(code => code.textContent).filter(text => text.startsWith('heft ')))

// [argument, title of the page, text of the page]
const FAR = [
    ['hf://own/open', 'hf://own/open', '54,321'],
    ['hf://own/open@' + 'a'.repeat(40), 'hf://own/open@' + 'a'.repeat(40), '54,321'],
    ['hf://own/open/sub/other.safetensors', 'other.safetensors', 'Tensors41'],
    ['hf://own/shards', 'hf://own/shards', 'Tensors2'],
    ['hf://own/closed', 'hf://own/closed', 'Tensors41']
]

// The page names a model as the user did, in commands, too; secrets are for the command alone.
async function* farNames(context) {
    for (const [name, title, text] of FAR)
        yield* withHub(context, [name], async function* ({ visit, served }) {
            yield* differs('the title', await visit.page.title(), `${title} – Heft`)
            yield* differs(`commands of ${name}`, (await commandsOf(visit)).filter(c => !c.endsWith(' ' + name)), [])
            await visit.page.waitForFunction(text => document.body.textContent.includes(text), text)
            await visit.page.reload()
            await visit.whole()
            yield* differs('the title after a reload', await visit.page.title(), `${title} – Heft`)
            const all = [await visit.page.content(), visit.page.url(), ...visit.requests, ...served.said].join('\n')
            yield* differs('secrets shown', [TOKEN, SIGNATURE].filter(secret => all.includes(secret)), [])
            yield* silent(visit)
        })
}

async function* farAndNear(context) {
    yield* withHub(context, ['decoder.safetensors', 'hf://own/closed'], async function* ({ visit }) {
        await visit.page.waitForSelector('.compare code')
        yield* differs('the command', await visit.text('.compare code'), 'heft diff decoder.safetensors hf://own/closed')
        await visit.page.goBack()
        await visit.page.reload()
        await visit.page.waitForSelector('.compare code')
        yield* silent(visit)
    })
    yield* withHub(context, ['hf://own/open/sub/other.safetensors', 'hf://own/open/sub/other.safetensors'], async function* ({ visit }) {
        await visit.page.waitForSelector('.compare code')
        yield* differs('two files of one name', await visit.page.$$eval('.compare .side .name', all => all.map(e => e.textContent)),
            Array(2).fill('hf://own/open/sub/other.safetensors'))
    })
}

// A failure says why, and what is shown can be read again afterwards.
async function* farFailures(context) {
    const show = async (visit, name) => {
        await visit.tab('tensors')
        await visit.page.fill('#panel-tensors input[type=search]', name)
        await visit.page.waitForFunction(() => document.querySelectorAll('#tensor-table tr[data-row]').length === 1)
        await visit.page.click('#tensor-table tr[data-row="0"]')
    }
    yield* withHub(context, ['hf://own/open'], async function* ({ visit, hub, served }) {
        hub.plan = () => ({ status: 429, headers: { 'retry-after': '1000' } })
        await show(visit, 'far')
        yield* lacks('a limit', await visit.failure(), 'could not be read', 'no requests for 1000 seconds', 'The terminal')
        hub.plan = null
        hub.repositories['own/open'].files['model.safetensors'] = model(7)
        await visit.page.click('#failure button:text-is("Open it again")')
        await visit.page.waitForSelector('#failure', { state: 'hidden' })
        await visit.whole()
        await show(visit, 'last')
        await visit.page.waitForFunction(() => document.querySelector('#detail')?.textContent.includes('Maximum7'))
        yield* lacks('the new values', await visit.text('#detail'), 'Maximum7')
        hub.repositories['own/open'].files['model.safetensors'] = model(8)
        await visit.tab('checks')
        await visit.page.click('#panel-checks button:text-is("Hash")')
        yield* lacks('a change', await visit.failure(), 'changed on the server while it was being read')
        await visit.page.click('#failure button:text-is("Open it again")')
        await visit.page.waitForSelector('#failure', { state: 'hidden' })
        await visit.tab('checks')
        await visit.page.click('#panel-checks button:text-is("Hash")')
        await visit.page.waitForSelector('#panel-checks code.wrap')
        served.stop()
        yield* lacks('the end of the command', await visit.failure(), 'Nothing more can be read', 'heft view has ended')
    })
}

// The server is waited for, and the terminal says so.
async function* farWait(context) {
    yield* withHub(context, ['hf://own/open'], async function* ({ visit, hub, served }) {
        let left = 2
        hub.plan = () => left-- > 0 ? { status: 429, headers: { 'retry-after': '3' } } : null
        await visit.tab('checks')
        await visit.page.click('#panel-checks button:text-is("Hash")')
        await visit.page.waitForSelector('#panel-checks code.wrap')
        yield* lacks('the terminal', served.said.join(''), 'limits requests: waiting for 3 seconds')
        yield* silent(visit)
    })
}

export const servedTests = {
    'two models of heft view': twoModels,
    'models of the hub in heft view': farNames,
    'a model of the hub beside one on disk': farAndNear,
    'failures of the hub in heft view': farFailures,
    'a hub that limits requests of heft view': farWait
}
