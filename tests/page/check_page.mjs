// node check_page.mjs SITE HEFT [TITLE]: the page for the browser (SITE, from tools/web_page.py) in
// Chromium, with models on disk and on nginx. Expected figures come from the command HEFT and from
// this file. Packages are looked for below the current directory. TAP on stdout.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

import { isInstalled, launch } from './browser.mjs'
import { accessTests } from './access_tests.mjs'
import { compareTests } from './compare_tests.mjs'
import { contentTests } from './content_tests.mjs'
import { decoder, writeSafetensors } from './model_files.mjs'
import { moduleTests } from './module_tests.mjs'
import { networkTests } from './network_tests.mjs'
import { overviewTests } from './overview_tests.mjs'
import { packageTests } from './package_tests.mjs'
import { partTests } from './part_tests.mjs'
import { quantisedTests } from './quantised_tests.mjs'
import { scaleTests } from './scale_tests.mjs'
import { servedTests } from './served_tests.mjs'
import { tensorTests } from './tensor_tests.mjs'
import { NGINX, startServers } from './servers.mjs'
import { stageTests } from './stage_tests.mjs'

const SUFFIXES = ['mag', 'gguf', 'zt', 'npz', 'bpk', 'gptrs', 'gten', 'weights']

// What every test gets: browser, addresses of the servers, folder of models, and the command.
async function prepare(site, heft, folder) {
    const models = join(folder, 'models')
    mkdirSync(models)
    const run = (...args) => execFileSync(heft, args, { cwd: models, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28 })
    writeSafetensors(join(models, 'decoder.safetensors'), decoder(), { license: 'MIT', note: '<b>bold</b>\u202e' })
    const files = ['decoder.safetensors']
    for (const suffix of SUFFIXES) {
        // Formats without these element types get what they can carry.
        run('convert', '--force', '--drop', 'steps', '--cast', 'f32', '--allow-loss', 'decoder.safetensors', `decoder.${suffix}`)
        files.push(`decoder.${suffix}`)
    }
    const servers = await startServers(join(folder, 'nginx'), { page: resolve(site), models })
    const browser = await launch()
    const close = async () => {
        await browser.close()
        await servers.stop()
    }
    return { browser, servers, command: resolve(heft), site: resolve(site), samples: join(dirname(heft), 'tests/samples'), models, files, close, heft: run, json: (...args) => JSON.parse(run(...args)) }
}

async function complaintsOf(test, context) {
    const complaints = []
    try {
        for await (const complaint of test(context))
            complaints.push(complaint)
    } catch (e) {
        complaints.push(String(e.stack || e))
    }
    return complaints
}

async function main(site, heft, only) {
    const tests = Object.entries({ ...moduleTests, ...overviewTests, ...tensorTests, ...compareTests, ...contentTests, ...networkTests, ...partTests, ...quantisedTests, ...packageTests, ...servedTests, ...accessTests, ...stageTests, ...scaleTests })
        .filter(([title]) => !only || title.includes(only))
    console.log(`1..${tests.length}`)
    const why = !isInstalled() ? 'chromium is not installed' : !NGINX ? 'nginx is not installed' : ''
    if (why) {
        tests.forEach(([title], i) => console.log(`ok ${i + 1} - ${title} # SKIP ${why}`))
        return
    }
    const folder = mkdtempSync(join(tmpdir(), 'heft-page-'))
    let context
    try {
        context = await prepare(site, resolve(heft), folder)
        for (const [i, [title, test]] of tests.entries()) {
            const complaints = await complaintsOf(test, context)
            console.log(`${complaints.length ? 'not ok' : 'ok'} ${i + 1} - ${title}`)
            complaints.forEach(c => console.log(c.replace(/^/gm, '#   ')))
            process.exitCode ||= complaints.length ? 1 : 0
        }
    } finally {
        await context?.close()
        rmSync(folder, { recursive: true, force: true })
    }
}

await main(...process.argv.slice(2))
