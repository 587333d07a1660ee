/**
 * What differs between browsers and Node. Each entry of the package (heft.mjs, node.mjs, inline.mjs) and each worker
 * states its own with usePlatform(); members:
 *
 *   random             an object with getRandomValues()
 *   moduleBytes(kind)  the bytes of a WebAssembly module: "small", "simd" (small, with vectors) or "full"
 *   bytesAt(address)   the bytes of a file that prepare({ wasm }) names
 *   startWorker(at)    a worker: { post(message), end(), rest(), wake(), listen(onMessage, onError) }; `at` is what
 *                      prepare({ worker }) names, or undefined
 *   openPath(text)     an input, if a text or URL is the path of a file; otherwise null
 *   isDirect(spec)     whether a worker can read a source itself
 *   processors()       how many workers can run at the same time
 *   canShare()         whether threads can share memory
 *   mayPin(url)        whether a request may have If-Range without the leave of the server
 *   zstd()             a decoder of zstd, or null
 */
export const platform = {};

export function usePlatform(chosen) {
    Object.assign(platform, chosen);
}
