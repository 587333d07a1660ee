/** A server on the loopback interface whose behaviour a test chooses. */
import http from "node:http";

function range(header, size) {
    const m = /^bytes=(\d+)-(\d*)$/.exec(header ?? "");
    return m ? [Number(m[1]), Math.min(m[2] ? Number(m[2]) : size - 1, size - 1)] : null;
}

/**
 * Serve `bytes`. options: ranges (true), etag(n) for request n, truncate(n), status(n), said: X-Error-Message of a status, length(n): the bytes of
 * an answer, for the bytes n that it should have; isStated (true): answers state their length.
 * Returns { url, log, close }; log has the range of each request.
 */
export async function serve(bytes, options = {}) {
    const log = [];
    const server = http.createServer((request, response) => {
        const n = log.length, asked = options.ranges === false ? null : range(request.headers.range, bytes.length);
        log.push(request.headers.range ?? request.method);
        const etag = options.etag?.(n) ?? '"v1"', status = options.status?.(n);
        response.on("error", () => {});
        if (status)
            return response.writeHead(status, options.said ? { "x-error-message": options.said } : {}).end("no");
        const current = request.headers["if-range"] === undefined || request.headers["if-range"] === etag;
        const [from, to] = asked && current ? asked : [0, bytes.length - 1];
        const wanted = to + 1 - from, body = bytes.subarray(from, from + (options.length?.(wanted) ?? wanted));
        const headers = { etag, ...(options.isStated === false ? {} : { "content-length": body.length }) };
        if (asked && current)
            headers["content-range"] = `bytes ${from}-${to}/${bytes.length}`;
        response.writeHead(asked && current ? 206 : 200, headers);
        if (options.truncate?.(n)) {
            response.write(body.subarray(0, body.length / 2));
            return setTimeout(() => response.destroy(), 20);
        }
        response.end(body);
    });
    await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
    return { log, url: `http://127.0.0.1:${server.address().port}/model.bin`,
             close: () => new Promise(resolve => {
                 server.closeAllConnections?.();
                 server.close(resolve);
             }) };
}
