// Asks the worker (model_worker.js); every question can be cancelled.

import { isOneFile, ownScript } from "./own_files.js";

export class Client {
  constructor() {
    this.worker = new Worker(ownScript("model_worker.js"), { type: isOneFile ? "classic" : "module", name: "heft" });
    this.questions = new Map();
    this.next = 1;
    this.worker.addEventListener("message", ({ data }) => this.heard(data));
    this.worker.addEventListener("error", (e) => this.failed(e));
  }

  heard({ ready, id, progress, error, result }) {
    this.isReady = true;
    if (ready) performance.mark("heft-ready"); // for tests and the curious
    const question = this.questions.get(id);
    if (!question) return;
    if (progress) {
      question.onProgress?.(progress);
      return;
    }
    this.questions.delete(id);
    if (error) question.reject(Object.assign(new Error(error.message), error));
    else question.resolve(result);
  }

  failed(event) {
    event.preventDefault();
    const message = event.message || "a script of this page could not be loaded";
    for (const { reject } of this.questions.values()) reject(new Error(message));
    this.questions.clear();
    if (!this.isReady) this.problem = message; // the worker has not started
  }

  // Return a promise of the answer.  A signal cancels the work and rejects with an AbortError.
  ask(method, args = {}, { signal, onProgress } = {}) {
    const id = this.next++;
    if (this.problem) return Promise.reject(new Error(`${this.problem}; load the page again`));
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.worker.postMessage({ id, cancel: true });
        this.questions.delete(id);
        reject(new DOMException("cancelled", "AbortError"));
      };
      if (signal?.aborted) {
        reject(new DOMException("cancelled", "AbortError"));
        return;
      }
      signal?.addEventListener("abort", stop, { once: true });
      const ended = (f) => (value) => {
        signal?.removeEventListener("abort", stop);
        f(value);
      };
      this.questions.set(id, { resolve: ended(resolve), reject: ended(reject), onProgress });
      this.worker.postMessage({ id, method, args });
    });
  }
}

// Whether work was cancelled, or the file was closed meanwhile.
export const isCancelled = (e) => e?.name === "AbortError" || e?.status === "cancelled";
