// The page as `heft view` serves it.
import { spawn } from 'node:child_process'

import { Visit } from './browser.mjs'
import { differs, silent } from './expect.mjs'

const UNSUPPORTED = 5 // the exit code of a command that was built without its module

// The command with models; address: what it prints, or null if it was built without the module.
async function serve({ command, site, models }, files) {
    const started = spawn(command, ['view', ...files], { cwd: models, env: { ...process.env, HEFT_PAGE: site } })
    const ended = new Promise(done => started.on('exit', done))
    let text = ''
    const printed = new Promise(done => started.stdout.on('data', d => {
        text += d
        if (text.includes('\n'))
            done(text.trim())
    }))
    const address = await Promise.race([printed, ended])
    if (typeof address === 'number' && address !== UNSUPPORTED)
        throw new Error(`heft view ended with ${address}`)
    return { ended, stop: () => started.kill('SIGINT'), address: typeof address === 'string' ? address : null }
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

export const servedTests = {
    'two models of heft view': twoModels
}
