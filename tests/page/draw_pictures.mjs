// draw_pictures.mjs PAGE OUT: write OUT/page-light.png and OUT/page-dark.png, the pictures of the README. PAGE is the
// page in one file, build-web/heft-inspector.html. The model is made here and has equal bytes each time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { launch } from './browser.mjs'
import { writeSafetensors } from './model_files.mjs'

const LAYERS = 16, HIDDEN = 96, FEED = 256, VOCABULARY = 2048
const SIZE = { width: 1280, height: 900 }

// Deviations of the roles, and how they change from the first layer to the last.
const ROLES = {
    'self_attn.q_proj': [[HIDDEN, HIDDEN], 0.03, 0.6], 'self_attn.k_proj': [[HIDDEN, HIDDEN], 0.034, 0.5],
    'self_attn.v_proj': [[HIDDEN, HIDDEN], 0.016, 1.6], 'self_attn.o_proj': [[HIDDEN, HIDDEN], 0.014, 1.9],
    'mlp.gate_proj': [[FEED, HIDDEN], 0.024, 1.2], 'mlp.up_proj': [[FEED, HIDDEN], 0.02, 1.1],
    'mlp.down_proj': [[HIDDEN, FEED], 0.018, 1.4]
}

// Numbers between 0 and 1 that are the same each time.
function numbers(seed) {
    let state = seed
    return () => {
        state = Math.imul(state, 1664525) + 1013904223 >>> 0
        return (state + 0.5) / 2 ** 32
    }
}

const next = numbers(7)
const normal = () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next())

function bf16(shape, deviation) {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => normal() * deviation)
    const words = new Uint32Array(values.buffer)
    return ['BF16', shape, Buffer.from(Uint16Array.from(words, w => w >>> 16).buffer)]
}

function model() {
    const tensors = { 'model.embed_tokens.weight': bf16([VOCABULARY, HIDDEN], 0.02) }
    for (let i = 0; i < LAYERS; i++) {
        for (const [role, [shape, deviation, growth]] of Object.entries(ROLES))
            tensors[`model.layers.${i}.${role}.weight`] =
                bf16(shape, deviation * growth ** (i / LAYERS) * (0.9 + 0.2 * next()))
        for (const norm of ['input_layernorm', 'post_attention_layernorm'])
            tensors[`model.layers.${i}.${norm}.weight`] = bf16([HIDDEN], 0.04)
    }
    tensors['model.norm.weight'] = bf16([HIDDEN], 0.04)
    tensors['lm_head.weight'] = bf16([VOCABULARY, HIDDEN], 0.02)
    return tensors
}

async function draw(browser, page, path, colorScheme, out) {
    const context = await browser.newContext({ colorScheme, viewport: SIZE, serviceWorkers: 'block' })
    const visit = await context.newPage()
    await visit.goto(page)
    await visit.setInputFiles('#file-input', path)
    await visit.waitForSelector('.matrix td')
    await visit.waitForLoadState('networkidle')
    await visit.waitForTimeout(1500) // values of the matrix come after the first picture
    await visit.screenshot({ path: join(out, `page-${colorScheme}.png`) })
    await context.close()
}

const [page, out] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'heft-picture-'))
const browser = await launch()
try {
    const path = join(folder, 'story-teller-3m.safetensors')
    writeSafetensors(path, Object.entries(model()).map(([name, rest]) => [name, ...rest]))
    for (const scheme of ['light', 'dark'])
        await draw(browser, pathToFileURL(resolve(page)).href, path, scheme, resolve(out))
} finally {
    await browser.close()
    rmSync(folder, { recursive: true })
}
