// Debian's nginx with a configuration of its own, on free ports of the loopback interface.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

export const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx'].find(p => existsSync(p))

// The headers of docs/web.md.
const PAGE_HEADERS = `
      add_header Content-Security-Policy "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; manifest-src 'self'; worker-src 'self'; connect-src 'self' https: http://localhost:* http://127.0.0.1:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" always;
      add_header X-Content-Type-Options nosniff always;
      add_header Referrer-Policy no-referrer always;
      add_header Cross-Origin-Opener-Policy same-origin always;`

const OPEN = `
      add_header Access-Control-Allow-Origin * always;
      add_header Access-Control-Allow-Headers "Range, If-Range, If-Match" always;
      add_header Access-Control-Expose-Headers "Content-Range, Content-Length, Accept-Ranges, ETag, Last-Modified" always;
      add_header Cache-Control "no-cache" always;
      if ($request_method = OPTIONS) { return 204; }`

const KINDS = {
    page: PAGE_HEADERS,
    ranges: OPEN,
    whole: OPEN + '\n      max_ranges 0;',
    closed: '', // other pages may not read anything
    slow: OPEN + '\n      limit_rate 200k;'
}

function freePort() {
    return new Promise((done, fail) => {
        const server = createServer()
        server.on('error', fail)
        server.listen(0, '127.0.0.1', () => {
            const { port } = server.address()
            server.close(() => done(port))
        })
    })
}

function configuration(folder, roots, ports) {
    const servers = Object.entries(KINDS).map(([kind, lines]) => `
    server {
      listen 127.0.0.1:${ports[kind]};
      root ${kind === 'page' ? roots.page : roots.models};
      access_log ${folder}/${kind}.log requests;
      location / {${lines}
      }
    }`)
    return `
  daemon off;
  master_process off;
  pid ${folder}/nginx.pid;
  error_log ${folder}/error.log;
  events { worker_connections 256; }
  http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    client_body_temp_path ${folder}/body;
    proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi;
    scgi_temp_path ${folder}/scgi;
    log_format requests '$request_method $uri $status $body_bytes_sent';
    ${servers.join('')}
  }
`
}

// Start nginx; return { page, ranges, whole, closed, slow } (addresses), and stop().
export async function startServers(folder, roots) {
    mkdirSync(folder)
    const ports = {}
    for (const kind of Object.keys(KINDS))
        ports[kind] = await freePort()
    const file = join(folder, 'nginx.conf')
    writeFileSync(file, configuration(folder, roots, ports))
    const nginx = spawn(NGINX, ['-p', folder, '-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    nginx.stderr.on('data', text => { said += text })
    const addresses = Object.fromEntries(Object.entries(ports).map(([kind, port]) => [kind, `http://127.0.0.1:${port}/`]))
    for (;;) {
        if (nginx.exitCode !== null)
            throw new Error(`nginx ended with ${nginx.exitCode}: ${said}`)
        if (await fetch(addresses.page).then(r => r.arrayBuffer(), () => null))
            break
        await new Promise(done => setTimeout(done, 30))
    }
    return { ...addresses, stop: () => new Promise(done => { nginx.on('exit', done); nginx.kill('SIGTERM') }) }
}
