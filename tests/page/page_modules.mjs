// Imports modules of the page. Their names end with .js, which older releases of Node take for modules
// only below a package.json that says so: they are copied beside one.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

let copy

export function load(site, name) {
    if (!copy) {
        copy = mkdtempSync(join(tmpdir(), 'heft-page-'))
        process.on('exit', () => rmSync(copy, { recursive: true }))
        cpSync(site, copy, { recursive: true })
        writeFileSync(join(copy, 'package.json'), '{"type": "module"}\n')
    }
    return import(pathToFileURL(join(copy, name)))
}
