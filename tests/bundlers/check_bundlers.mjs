// node check_bundlers.mjs TARBALL HEFT [TITLE]: pages that import the npm package, built by Vite (also on its development
// server), webpack and esbuild, in Chromium. A server that knows only the files of the build answers. Packages are looked
// for below the current directory. TAP on stdout.
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { differs } from '../page/expect.mjs'
import { floats, writeSafetensors } from '../page/model_files.mjs'
import { isInstalled, launch } from '../page/browser.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const NAME = '@libheft/heft'
const require = createRequire(join(process.cwd(), 'package.json'))
const load = async name => import(pathToFileURL(require.resolve(name)).href)
const MIME = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' }

// Entries of an application: its text, and the HTML that loads it.
const MAIN = {
    plain: `import * as heft from '${NAME}'; import { run, show } from './app.mjs'; show(run(heft))`,
    inline: `import * as heft from '${NAME}/inline'; import { run, show } from './app.mjs'; show(run(heft))`,
    named: `import * as heft from '${NAME}'; import wasm from '${NAME}/heft.wasm'; import { run, show } from './app.mjs'
        show(heft.prepare({ wasm, worker: 'worker.js' }).then(() => run(heft)))`,
    lost: `import * as heft from '${NAME}'; import { show } from './app.mjs'
        const failure = e => ({ is: e instanceof heft.HeftError, rule: e.rule })
        show(heft.prepare({ wasm: 'index.html' }).then(() => null, failure).then(async wasm => {
            await heft.prepare({ wasm: 'heft.wasm', worker: 'nowhere.js' })
            const model = await heft.open(await (await fetch('model.safetensors')).blob())
            return { wasm, worker: await model.verify().then(() => null, failure), opened: model.tensorCount }
        }))`
}

function makeApp(folder, kind, tarball, script = '/main.js') {
    const app = join(folder, 'app-' + kind + '-' + readdirSync(folder).length)
    const installed = join(app, 'node_modules', NAME)
    mkdirSync(installed, { recursive: true })
    execFileSync('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
    copyFileSync(join(HERE, 'app.mjs'), join(app, 'app.mjs'))
    writeFileSync(join(app, 'main.js'), MAIN[kind])
    writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
    writeFileSync(join(app, 'index.html'), `<!DOCTYPE html><title>app</title><link rel="icon" href="data:,"><script type="module" src="${script}"></script>`)
    mkdirSync(join(app, 'public'))
    copyFileSync(join(folder, 'model.safetensors'), join(app, 'public/model.safetensors'))
    return app
}

// Serve the files of a folder, and nothing else.
async function serve(folder) {
    const server = createServer((request, response) => {
        const path = join(folder, new URL(request.url, 'http://x').pathname.replace(/\/$/, '/index.html'))
        if (!existsSync(path))
            return response.writeHead(404).end()
        const bytes = readFileSync(path), type = { 'content-type': MIME[extname(path)] ?? 'application/octet-stream' }
        const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
        if (!range)
            return response.writeHead(200, type).end(bytes)
        const part = bytes.subarray(Number(range[1]), Number(range[2]) + 1)
        response.writeHead(206, { ...type, 'content-range': `bytes ${range[1]}-${Number(range[1]) + part.length - 1}/${bytes.length}` }).end(part)
    })
    await new Promise(done => server.listen(0, '127.0.0.1', done))
    return { address: `http://127.0.0.1:${server.address().port}/`, close: () => { server.closeAllConnections(); server.close() } }
}

async function* visit({ browser, want }, address, expected = want) {
    const page = await browser.newPage()
    const said = []
    page.on('pageerror', e => said.push(String(e)))
    page.on('requestfailed', r => said.push(`${r.url()}: ${r.failure()?.errorText}`))
    await page.goto(address)
    try {
        await page.waitForFunction(() => window.result, null, { timeout: 60000 })
        yield* differs('the page', await page.evaluate(() => window.result), expected)
    } catch (e) {
        yield `${e.message}: ${said.join('; ')}`
    }
    await page.close()
}

async function* built(context, app, expected) {
    const out = join(app, 'dist')
    for (const name of ['index.html', 'public/model.safetensors'])
        if (!existsSync(join(out, name.split('/').pop())))
            copyFileSync(join(app, name), join(out, name.split('/').pop()))
    const server = await serve(out)
    yield* visit(context, server.address, expected)
    server.close()
}

// ---- Vite

const viteOptions = root => ({ root, base: './', logLevel: 'error', configFile: false, server: { host: '127.0.0.1', port: 0, hmr: false, ws: false } })

async function* viteBuild(context) {
    const { build } = await load('vite')
    for (const kind of ['plain', 'inline']) {
        const app = makeApp(context.folder, kind, context.tarball)
        await build({ ...viteOptions(app), worker: { format: 'es' } })
        yield* built(context, app)
    }
}

async function* viteServer(context) {
    const { createServer: create } = await load('vite')
    for (const kind of ['plain', 'inline']) {
        const app = makeApp(context.folder, kind, context.tarball)
        const server = await create(viteOptions(app))
        await server.listen()
        yield* visit(context, `http://127.0.0.1:${server.httpServer.address().port}/`)
        await server.close()
    }
}

// ---- webpack

async function* webpackBuild(context) {
    const { default: webpack } = await load('webpack')
    for (const kind of ['plain', 'inline']) {
        const app = makeApp(context.folder, kind, context.tarball, 'main.js')
        const stats = await new Promise((done, fail) => webpack({ context: app, mode: 'production', entry: './main.js',
            performance: false, optimization: { minimize: false }, // esbuild minimises, in less time
            output: { path: join(app, 'dist') } }, (e, s) => e ? fail(e) : done(s)))
        if (stats.hasErrors() || stats.hasWarnings())
            yield stats.toString({ all: false, errors: true, warnings: true })
        yield* built(context, app)
    }
}

// ---- esbuild

async function* esbuildBuild(context) {
    const esbuild = await load('esbuild')
    const options = app => ({ absWorkingDir: app, entryPoints: { main: 'main.js' }, bundle: true, format: 'esm', outdir: 'dist', minify: true, logLevel: 'silent', loader: { '.wasm': 'file' } })
    for (const kind of ['inline', 'named', 'lost']) {
        const app = makeApp(context.folder, kind, context.tarball, 'main.js')
        await esbuild.build(options(app))
        await esbuild.build({ ...options(app), entryPoints: { worker: `${NAME}/worker.mjs` } })
        cpSync(join(app, 'node_modules', NAME, 'heft.wasm'), join(app, 'dist/heft.wasm'))
        yield* built(context, app, kind === 'lost'
            ? { wasm: { is: true, rule: 'web/module' }, worker: { is: true, rule: 'web/worker' }, opened: 2 } : undefined)
    }
}

// A bundle for Node that is one file.
async function* esbuildForNode(context) {
    const esbuild = await load('esbuild')
    const app = makeApp(context.folder, 'inline', context.tarball)
    writeFileSync(join(app, 'cli.js'), `import { open } from '${NAME}/inline'
        const model = await open(process.argv[2])
        console.log(JSON.stringify({ tensors: model.tensorCount, digest: (await model.hash()).model }))
        process.exit()`)
    await esbuild.build({ absWorkingDir: app, entryPoints: ['cli.js'], bundle: true, format: 'esm', platform: 'node', outfile: 'alone/cli.mjs', logLevel: 'silent' })
    rmSync(join(app, 'node_modules'), { recursive: true })
    const said = execFileSync(process.execPath, [join(app, 'alone/cli.mjs'), join(app, 'public/model.safetensors')], { encoding: 'utf8' })
    yield* differs('the program', JSON.parse(said), { tensors: context.want.tensors, digest: context.want.digest })
}

const TESTS = {
    'Vite builds a page': viteBuild,
    'the development server of Vite': viteServer,
    'webpack builds a page': webpackBuild,
    'esbuild builds a page': esbuildBuild,
    'esbuild builds a program of one file for Node': esbuildForNode
}

async function main(tarball, heft, only) {
    const tests = Object.entries(TESTS).filter(([title]) => !only || title.includes(only))
    console.log(`1..${tests.length}`)
    if (!isInstalled()) {
        tests.forEach(([title], i) => console.log(`ok ${i + 1} - ${title} # SKIP chromium is not installed`))
        return
    }
    const folder = mkdtempSync(join(tmpdir(), 'heft-bundlers-'))
    const browser = await launch()
    try {
        const model = writeSafetensors(join(folder, 'model.safetensors'), [
            ['odd', 'F32', [2, 3], floats(0, -2, 6, NaN, Infinity, 0.5)], ['other', 'U8', [4], Buffer.from([1, 2, 3, 4])]])
        const digest = JSON.parse(execFileSync(heft, ['hash', '--json', model])).model
        const want = { tensors: 2, values: ['0', '-2', '6', 'NaN', 'Infinity', '0.5'], ok: true, digest, remote: 2, fails: 'format' }
        for (const [i, [title, test]] of tests.entries()) {
            const complaints = []
            if (title.includes('Vite') && !(await import('node:util')).styleText) {
                console.log(`ok ${i + 1} - ${title} # SKIP Vite needs Node 20.12, and this is ${process.version}`)
                continue
            }
            try {
                for await (const complaint of test({ folder, browser, tarball: resolve(tarball), want }))
                    complaints.push(complaint)
            } catch (e) {
                complaints.push(String(e.stack || e))
            }
            console.log(`${complaints.length ? 'not ok' : 'ok'} ${i + 1} - ${title}`)
            complaints.forEach(c => console.log(c.replace(/^/gm, '#   ')))
            process.exitCode ||= complaints.length ? 1 : 0
        }
    } finally {
        await browser.close()
        rmSync(folder, { recursive: true, force: true })
    }
    process.exit()
}

await main(...process.argv.slice(2))
