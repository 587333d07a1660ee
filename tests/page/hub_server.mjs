// A server of the loopback interface that answers as the Hugging Face hub does: the list of the files of a
// repository, its files, large ones by a redirect to a signed address, tokens, and refusals.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

export const SIGNATURE = 'signed-SECRET'

const EXPOSED = 'ETag, Content-Range, X-Linked-Etag, X-Error-Code, X-Error-Message'
const digest = bytes => createHash('sha256').update(bytes).digest('hex')

function send(answer, method, status, headers, body = '') {
    const bytes = Buffer.from(body)
    answer.writeHead(status, { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED, 'content-length': bytes.length, ...headers })
    answer.end(method === 'HEAD' ? undefined : bytes)
}

function sendRange(answer, { method, headers }, bytes) {
    const etag = `"${digest(bytes).slice(0, 32)}"`
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
    if (first === undefined)
        return send(answer, method, 200, { etag }, bytes)
    const end = Math.min(last ? Number(last) + 1 : bytes.length, bytes.length)
    if (Number(first) >= end)
        return send(answer, method, 416, { 'content-range': `bytes */${bytes.length}` })
    return send(answer, method, 206, { etag, 'content-range': `bytes ${first}-${end - 1}/${bytes.length}` }, bytes.subarray(Number(first), end))
}

const refuse = (answer, method, status, code, text) => send(answer, method, status, { 'x-error-code': code, 'x-error-message': text }, text)

// repositories: { "owner/name": { sha, files: { path: bytes }, token } }.  Return { url, asked, plan, stop() }: the requests
// so far, and a function that may answer a request itself: { status, headers }.
export async function startHub(repositories) {
    const hub = { repositories, asked: [], plan: null }
    const server = createServer((request, answer) => {
        const { method } = request
        const path = decodeURIComponent(new URL(request.url, hub.url).pathname)
        hub.asked.push(path)
        const planned = hub.plan?.(path)
        if (planned)
            return send(answer, method, planned.status, planned.headers)
        const [, list, signed, name, rest] = /^\/(?:(api\/models\/)|(signed\/))?([^/]+\/[^/]+)\/(.*)$/.exec(path) ?? []
        const repository = repositories[name]
        if (signed)
            return sendRange(answer, request, repository.files[rest])
        if (!repository || repository.token && request.headers.authorization !== `Bearer ${repository.token}`)
            return refuse(answer, method, 401, 'RepoNotFound', 'Repository not found')
        const { sha, files } = repository
        if (list)
            return send(answer, method, 200, {}, JSON.stringify({ sha, siblings: Object.keys(files).map(rfilename => ({ rfilename, size: files[rfilename].length })) }))
        const [, file] = /^resolve\/[^/]+\/(.*)$/.exec(rest) ?? []
        if (!files[file])
            return refuse(answer, method, 404, 'EntryNotFound', 'Entry not found')
        if (file.endsWith('.json'))
            return sendRange(answer, request, files[file])
        return send(answer, method, 302, { location: `${hub.url}/signed/${name}/${file}?Signature=${SIGNATURE}`, 'x-linked-etag': `"${digest(files[file])}"`, 'x-linked-size': files[file].length })
    })
    await new Promise(done => server.listen(0, '127.0.0.1', done))
    hub.url = `http://127.0.0.1:${server.address().port}`
    hub.stop = () => {
        server.close()
        server.closeAllConnections()
    }
    return hub
}
